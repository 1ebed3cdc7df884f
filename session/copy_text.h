// The text format of PostgreSQL's COPY: a line a row, a tab between fields, \N for NULL, and a backslash before what would be
// taken for these. Clients write and read it; the loader reads CSV.
//
// Start at: CopyTextReader, AppendCopyText. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tablet/load/copy_options.h"
#include "tablet/values/row_batch.h"

namespace tessera {

struct CopyTextFormat {
  char delimiter = '\t';
  std::string null_string = "\\N";
};
/// As COPY says it.
inline CopyTextFormat TextFormatOf(const CopyFormat& said) {
  CopyTextFormat format;
  if (said.has_delimiter) format.delimiter = said.delimiter;
  if (said.has_null) format.null_string = said.null_string;
  return format;
}

/// Makes CSV of it: NULL is an empty field, and every other field has quotes.
class CopyTextReader {
 public:
  explicit CopyTextReader(const CopyTextFormat& format) : format_(format) {}

  /// Appends the rows that are whole now.
  void Read(std::string_view text, std::string* csv);
  /// The last line, if nothing ends it.
  void End(std::string* csv);

  /// How the CSV is to be read.
  static void SetFormat(CopyFormat* format);

 private:
  /// Reads the lines that are whole in `text`, of which the first `searched` bytes have no end of a line, and returns where
  /// the rest begins.
  size_t Lines(std::string_view text, size_t searched, std::string* csv);
  void Line(std::string_view line, std::string* csv);
  void Field(std::string_view field, std::string* csv) const;

  const CopyTextFormat format_;
  std::string rest_;     ///< of a line
  size_t searched_ = 0;  ///< so much of it has no end of a line
  bool ended_ = false;   ///< by \. on a line of its own
};

void AppendCopyText(const RowBatch& batch, size_t row, const CopyTextFormat& format, std::string* out);
/// One field, which is not NULL.
void AppendCopyField(std::string_view text, char delimiter, std::string* out);

}  // namespace tessera
