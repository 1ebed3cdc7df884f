// What a query says of the files that it reads: their names, and how they are to be read where that is not guessed.
//
// Start at: FileSpec. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tablet/load/copy_options.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {

/// What an option calls an encoding, in any case; nothing: it is none that can be read.
std::optional<TextEncoding> EncodingNamed(std::string_view name);
inline constexpr char kEncodings[] = "Encodings are UTF-8, UTF-16 and Latin-1.";

enum class FileFormat : uint8_t {
  kFromName,  ///< what the name ends in says it, or the first bytes
  kCsv,
  kJson,  ///< a value a line
  kParquet,
  kArrow,   ///< Arrow IPC: a file or a stream
  kSqlite,  ///< an SQLite database, of which one table is read
};

/// What the ending of a file's name says, in any case; kFromName: nothing.
FileFormat FormatOfName(std::string_view name);
/// Whether Arrow reads and writes it.
inline bool IsColumnar(FileFormat format) { return format == FileFormat::kParquet || format == FileFormat::kArrow; }

/// A column that has one value in all rows of a file.
struct FileConstant {
  int column = 0;  ///< of the table
  Value value;
};

struct FileSpec {
  static constexpr int64_t kSampledRows = 20480;

  std::vector<std::string> patterns;  ///< names, in which *, ? and [...] stand for others; at least one
  FileFormat format = FileFormat::kFromName;
  std::string table;  ///< kSqlite: the one that is read
  // Nothing: it is guessed.
  std::optional<char> delimiter, quote, escape;
  std::optional<bool> header;
  std::optional<TextEncoding> encoding;
  std::optional<std::vector<std::string>> names;       ///< of the columns, from the first on
  std::vector<std::pair<std::string, SqlType>> types;  ///< by name; "": those of the first columns, in their order
  std::string null_string;
  uint64_t skip_lines = 0;
  int64_t sampled_rows = kSampledRows;  ///< that types are guessed from; -1: all
  char decimal = '.', thousands = 0;
  std::string date_format, timestamp_format;
  bool all_text = false;
  bool ignore_errors = false;
  bool filename = false;           ///< the last column is the file's name
  bool hive_partitioning = false;  ///< values in the names of folders are columns
  bool union_by_name = false;      ///< columns of several files are those of the same name

  /// Equal for those that read the same files in the same way.
  std::string Key() const;
};

}  // namespace tessera
