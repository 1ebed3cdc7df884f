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

class LoadRanks;
struct TableSchema;

struct CopyFromOptions {
  char delimiter = ',';
  bool header = false;
  std::string null_string;  ///< an unquoted field equal to this is NULL
  char quote = '"';
  char escape = '"';
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
};

struct CopyToOptions {
  char delimiter = ',';
  bool header = false;
  std::string null_string;
  char quote = '"';
  char escape = '"';
};

}  // namespace tessera
