// The options of COPY.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/time_zone.h"

namespace tessera {

/// Computes the generated columns of new rows and tests their CHECK constraints: what needs SQL's expressions. The second
/// argument is the number of the first row, from 1, for messages. Errors: kConstraint.
using RowRules = std::function<Status(RowBatch*, uint64_t)>;

/// How a file has its characters. UTF-16 is told by its byte order mark, in either order; without one it is little-endian.
enum class TextEncoding : uint8_t { kUtf8, kUtf16, kLatin1 };

class LoadRanks;
struct TableSchema;

/// Which format COPY is said to have.
enum class CopyForm : uint8_t {
  kUnsaid,  ///< CSV, or text with a client (session/copy_client.h)
  kCsv,
  kText,    ///< of PostgreSQL: from and to the standard streams, or a client
  kBinary,  ///< of PostgreSQL: from and to a client
};

/// How the text of a file is cut into fields. A quote or escape that is the NUL byte: there is none.
struct CopyFormat {
  char delimiter = ',';
  bool header = false;
  std::string null_string;  ///< an unquoted field equal to this is NULL
  char quote = '"';
  char escape = '"';
  CopyForm form = CopyForm::kUnsaid;
  bool has_delimiter = false, has_null = false;  ///< it is said what these are, which for the text format are others
};

struct CopyFromOptions {
  CopyFormat format;
  std::vector<int> columns;        ///< column numbers in the order of the fields; empty: all. Others become NULL.
  const TimeZone* zone = nullptr;  ///< of moments that do not say their own; nullptr: UTC
  int threads = 1;
  /// Set by another thread to stop; the copy then ends with kCancelled and changes nothing. May be nullptr.
  const std::atomic<bool>* cancel = nullptr;
  /// Called with (bytes done, bytes in all), from any thread, often. May be empty.
  std::function<void(uint64_t, uint64_t)> progress;
  /// The table as the statement was compiled for it: another one by now is an error. nullptr: any table is right.
  const TableSchema* schema = nullptr;
  RowRules rules;              ///< for each batch, one after the other, before it is added; empty: there are none
  LoadRanks* ranks = nullptr;  ///< processes that may take part (shared_load.h); nullptr: there are no others
  // What no process but this one may load:
  uint64_t skip_lines = 0;  ///< at the start of the file, before the header
  TextEncoding encoding = TextEncoding::kUtf8;
  char decimal = '.';                         ///< between the whole part of a number and its fraction
  char thousands = 0;                         ///< may stand between digits of the whole part; 0: nothing may
  std::string date_format, timestamp_format;  ///< as strptime of C has them, with %f; "": the forms of ISO 8601
  bool ignore_errors = false;                 ///< records with an error are left out
  std::atomic<uint64_t>* ignored = nullptr;   ///< gets how many were; may be nullptr
  std::vector<uint8_t> read;                  ///< by column: 0: nothing reads it, it becomes NULL; empty: all are read
  bool guessed = false;                       ///< types are those of a sample: an error says what can be done
};

}  // namespace tessera
