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

/// Makes CSV of it, with the same delimiter and the same NULL if CSV can have these. Then most lines are CSV as they are.
class CopyTextReader {
 public:
  explicit CopyTextReader(const CopyTextFormat& format);

  /// Appends the rows that are whole now.
  void Read(std::string_view text, std::string* csv);
  /// The last line, if nothing ends it.
  void End(std::string* csv);

  /// How the CSV is to be read.
  void SetFormat(CopyFormat* format) const;

 private:
  /// Reads the lines that are whole in `text`, of which the first `searched` bytes have no end of a line, and returns where
  /// the rest begins.
  size_t Lines(std::string_view text, size_t searched, std::string* csv);
  /// Whether each of some whole lines is CSV as it is.
  bool IsCsv(std::string_view lines) const;
  void Line(std::string_view line, std::string* csv);
  void Field(std::string_view field, std::string* csv) const;

  const CopyTextFormat format_;
  bool is_like_csv_;  ///< delimiter and NULL of the CSV are those of the text
  CopyTextFormat csv_;
  std::string rest_;     ///< of a line
  size_t searched_ = 0;  ///< so much of it has no end of a line
  bool ended_ = false;   ///< by \. on a line of its own
};

/// Rows from `first` to before `last`, a line each.
void AppendCopyText(const RowBatch& batch, size_t first, size_t last, const CopyTextFormat& format, std::string* out);
/// One field, which is not NULL.
void AppendCopyField(std::string_view text, char delimiter, std::string* out);

}  // namespace tessera
