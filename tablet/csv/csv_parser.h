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
#include "tablet/csv/copy_options.h"
#include "tablet/csv/csv_file.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/value_parser.h"

namespace tessera {

/// The first thing wrong in a block.
struct CsvError {
  ErrorCode code = ErrorCode::kSql;
  uint64_t line = 0;   ///< physical lines before the record's first, in the block
  std::string column;  ///< empty if the error is not one column's
  std::string message;
};

struct ParsedBlock {
  RowBatch batch;      ///< the rows before the error, if there is one
  uint64_t lines = 0;  ///< physical lines in the block
  std::optional<CsvError> error;
};

/// The fields of the first record of a file, without their quotes.
std::vector<std::string> FirstRecord(const CsvBlock& block, const CopyFromOptions& options);

class CsvParser {
 public:
  /// Errors: kSql if the options contradict themselves or the schema.
  static Result<CsvParser> Create(const TableSchema& schema, const CopyFromOptions& options);
  ParsedBlock Parse(const CsvBlock& block) const;
  size_t fields() const { return columns_.size(); }

 private:
  friend std::vector<std::string> FirstRecord(const CsvBlock& block, const CopyFromOptions& options);
  struct Index;
  struct Bad;
  class Fields;
  CsvParser(const TableSchema& schema, const CopyFromOptions& options) : schema_(schema), options_(options) {}
  static size_t TextBegin(const CsvBlock& block);
  void FindFieldEnds(const CsvBlock& block, Index* index) const;
  void FindRecords(const CsvBlock& block, Index* index, std::optional<CsvError>* error) const;
  void ParseColumn(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const;
  template <class ParseFunction>
  void ParseFixed(const Fields& fields, size_t field, ParseFunction parse, ColumnVector* out, Bad* bad) const;
  void ParseWide(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const;
  void ParseText(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const;

  TableSchema schema_;
  CopyFromOptions options_;
  std::vector<int> columns_;         ///< of the fields
  std::vector<int> absent_columns_;  ///< that have no field
};

}  // namespace tessera
