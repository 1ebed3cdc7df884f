// Reading the first line, and comparing names.
#include "tablet/csv/csv_header.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/lower_case.h"
#include "tablet/csv/csv_file.h"
#include "tablet/csv/csv_parser.h"
#include "tablet/values/utf8.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

/// The fields of the first record of the file; none if it is empty. A record that ends inside quotes is left to the load,
/// which says where it is.
Result<std::vector<std::string>> ReadNames(const std::string& file, const CopyFromOptions& options) {
  constexpr size_t kFirstBlock = size_t{64} << 10;
  TESSERA_ASSIGN(CsvFile csv, CsvFile::Open(file));
  csv.Configure(options, kFirstBlock);
  CsvBlock block;
  TESSERA_TRY(csv.Read(&block));
  if (block.size == 0 || block.unterminated) return std::vector<std::string>();
  return FirstRecord(block, options);
}

bool IsSameName(std::string_view a, std::string_view b) {
  a = TrimBlanks(a);
  b = TrimBlanks(b);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

std::string List(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) out += (i > 0 ? ", " : "") + QuoteForMessage(names[i]);
  return out + (names.size() > kShown ? ", ..." : "");
}

/// The columns that the names are, each once; empty if a name is none of them.
std::vector<int> ColumnsOf(const std::vector<std::string>& names, const TableSchema& schema,
                           const std::vector<int>& columns) {
  std::vector<int> found;
  std::vector<bool> taken(columns.size());
  for (const std::string& name : names) {
    size_t at = columns.size();
    for (const bool exactly : {true, false}) {
      for (size_t i = 0; i < columns.size() && at == columns.size(); ++i) {
        const std::string& column = schema.columns[static_cast<size_t>(columns[i])].name;
        if (!taken[i] && (exactly ? column == name : IsSameName(column, name))) at = i;
      }
    }
    if (at == columns.size()) return {};
    taken[at] = true;
    found.push_back(columns[at]);
  }
  return found;
}

/// What is wrong with names that have to be those of the columns, one by one; "" if nothing is.
std::string Mismatch(const std::vector<std::string>& names, const std::vector<std::string>& columns) {
  if (names.size() != columns.size()) {
    return "wrong number of fields in header line: got " + std::to_string(names.size()) + ", expected " +
           std::to_string(columns.size());
  }
  for (size_t i = 0; i < names.size(); ++i) {
    // (A column that has just this name is meant by it, and not one in other letters.)
    const bool is_another =
        names[i] != columns[i] && std::find(columns.begin(), columns.end(), names[i]) != columns.end();
    if (is_another || !IsSameName(names[i], columns[i])) {
      return "column name mismatch in header line field " + std::to_string(i + 1) + ": got " +
             QuoteForMessage(names[i]) + ", expected " + QuoteForMessage(columns[i]);
    }
  }
  return {};
}

}  // namespace

Status FollowHeader(const std::string& file, const TableSchema& schema, bool must_match, CopyFromOptions* options,
                    std::string* warning) {
  TESSERA_ASSIGN(std::vector<std::string> names, ReadNames(file, *options));
  if (names.empty()) return {};
  std::vector<int> columns = options->columns;
  for (size_t c = 0; options->columns.empty() && c < schema.columns.size(); ++c) columns.push_back(static_cast<int>(c));
  // dbgen ends each line with a delimiter.
  if (names.size() == columns.size() + 1 && names.back().empty()) names.pop_back();
  std::vector<std::string> expected;
  for (const int c : columns) expected.push_back(schema.columns[static_cast<size_t>(c)].name);
  if (must_match) {
    const std::string mismatch = Mismatch(names, expected);
    if (mismatch.empty()) return {};
    return {ErrorCode::kSql, QuoteForMessage(file) + ", line 1: " + mismatch,
            "HEADER without MATCH reads columns in another order by their names."};
  }
  // A wrong number of fields is an error of the first record.
  const std::vector<int> found = ColumnsOf(names, schema, columns);
  if (found.size() == columns.size()) {
    if (found != columns) options->columns = found;
    return {};
  }
  *warning = "the header of " + QuoteForMessage(file) + " is " + List(names) + ", but the columns are " +
             List(expected) + ": they are read by position";
  return {};
}

}  // namespace tessera
