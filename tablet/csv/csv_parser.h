// A block of CSV records to a row batch.
//
// First the block is indexed: the positions of all delimiters and line feeds outside quotes, found 64 bytes at a time.
// Then each column is parsed from top to bottom in a loop of its own type, which is faster than going along the rows:
// the loop's branches are the same for every field.
//
// Start at: CsvParser. A CsvParser is immutable; Parse() may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/csv/csv_file.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/value_parser.h"

namespace tessera {

/// The fields of the first record of a file, without their quotes.
std::vector<std::string> FirstRecord(const CsvBlock& block, const CopyFromOptions& options);

class CsvParser {
 public:
  /// Errors: kSql if the options contradict themselves or the schema.
  static Result<CsvParser> Create(const TableSchema& schema, const CopyFromOptions& options);
  FileRows Parse(const CsvBlock& block) const;
  size_t fields() const { return columns_.size(); }

 private:
  friend std::vector<std::string> FirstRecord(const CsvBlock& block, const CopyFromOptions& options);
  struct Index;
  struct Bad;
  class Fields;
  CsvParser(const TableSchema& schema, const CopyFromOptions& options) : schema_(schema), options_(options) {}
  static size_t TextBegin(const CsvBlock& block);
  void FindFieldEnds(const CsvBlock& block, Index* index) const;
  void FindRecords(const CsvBlock& block, Index* index, FileRows* result) const;
  bool IsRead(size_t field) const {
    return options_.read.empty() || options_.read[static_cast<size_t>(columns_[field])] != 0;
  }
  /// The number without what the options let stand in it.
  std::string_view PlainNumber(std::string_view text, std::string* scratch) const;
  void ParseColumn(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const;
  template <class ParseFunction>
  void ParseFixed(const Fields& fields, size_t field, ParseFunction parse, ColumnVector* out, Bad* bad) const;
  /// Dates and moments in a format of the options; false: there is none for the type.
  bool ParseByFormat(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const;
  void ParseWide(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const;
  void ParseText(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const;

  TableSchema schema_;
  CopyFromOptions options_;
  std::vector<int> columns_;         ///< of the fields
  std::vector<int> absent_columns_;  ///< that have no field
};

}  // namespace tessera
