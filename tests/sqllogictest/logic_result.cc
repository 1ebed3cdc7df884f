#include "tests/sqllogictest/logic_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "shell/statistics_text.h"
#include "tests/sqllogictest/md5.h"

namespace tessera {
namespace {

constexpr size_t kShownLines = 20;

double NumberOf(const ColumnVector& column, size_t row) {
  switch (column.type.storage()) {
    case StorageClass::kFloat:
      return column.Float(row);
    case StorageClass::kInt:
    case StorageClass::kWide:
    case StorageClass::kText: {
      std::string text;
      AppendText(column, row, &text);
      return text == "true" ? 1 : std::strtod(text.c_str(), nullptr);
    }
  }
  return 0;
}

std::string IntegerText(const ColumnVector& column, size_t row) {
  if (column.type.id == TypeId::kBoolean) return column.fixed[row] != 0 ? "1" : "0";
  if (column.type.storage() == StorageClass::kFloat) {
    const double v = column.Float(row);
    return std::fabs(v) < 9e18 ? fmt::format("{}", static_cast<int64_t>(v)) : fmt::format("{:.0f}", v);
  }
  std::string text;
  AppendText(column, row, &text);
  if (column.type.id == TypeId::kDecimal) {
    text = text.substr(0, text.find('.'));
    return text == "-0" ? "0" : text;
  }
  if (column.type.storage() == StorageClass::kText) return fmt::format("{}", std::strtoll(text.c_str(), nullptr, 10));
  return text;
}

std::string ValueText(char type, const ColumnVector& column, size_t row) {
  if (column.IsNull(row)) return "NULL";
  if (type == 'I') return IntegerText(column, row);
  if (type == 'R') return fmt::format("{:.3f}", NumberOf(column, row));
  std::string text;
  AppendText(column, row, &text);
  if (text.empty()) return "(empty)";
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '@';
  }
  return text;
}

bool SameValue(char type, const std::string& expected, const std::string& actual) {
  if (expected == actual) return true;
  if (type != 'R' || expected == "NULL" || actual == "NULL") return false;
  char* end = nullptr;
  const double e = std::strtod(expected.c_str(), &end);
  if (end == expected.c_str() || *end != 0) return false;
  if (fmt::format("{:.3f}", e) == actual) return true;
  const double a = std::strtod(actual.c_str(), nullptr);
  return std::fabs(a - e) <= 1e-9 * std::max(std::fabs(a), std::fabs(e));
}

std::vector<std::string> Split(const std::string& line, bool tabs) {
  std::vector<std::string> out;
  size_t begin = 0;
  while (begin <= line.size()) {
    const size_t end = std::min(tabs ? line.find('\t', begin) : line.find_first_of(" \t", begin), line.size());
    if (tabs || end > begin) out.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

/// The expected lines as values; whole rows on a line are taken apart if there is only one way to read them.
std::vector<std::string> ExpectedValues(const std::vector<std::string>& lines, size_t columns, size_t values) {
  if (columns < 2 || lines.size() == values || lines.size() * columns != values) return lines;
  const bool tabs =
      std::any_of(lines.begin(), lines.end(), [](const std::string& l) { return l.find('\t') != std::string::npos; });
  std::vector<std::string> out;
  for (const std::string& line : lines) {
    std::vector<std::string> row = Split(line, tabs);
    if (row.size() != columns) return lines;
    for (std::string& value : row) out.push_back(std::move(value));
  }
  return out;
}

std::string Lines(const std::vector<std::string>& lines, size_t columns) {
  std::string out;
  for (size_t i = 0; i < lines.size(); i += columns) {
    if (i / columns == kShownLines) return out + fmt::format("    ... {} values in all\n", lines.size());
    out += "   ";
    for (size_t k = i; k < std::min(i + columns, lines.size()); ++k) out += " " + lines[k];
    out += '\n';
  }
  return out;
}

}  // namespace

Status LogicResult::Begin(const std::vector<vm::ResultColumn>& columns) {
  begun_ = true;
  columns_ = columns.size();
  return Status::Ok();
}

Status LogicResult::Rows(RowBatch&& batch) {
  if (types_.size() != batch.columns.size()) return Status::Ok();  // compared after the statement
  for (size_t row = 0; row < batch.rows; ++row) {
    for (size_t i = 0; i < batch.columns.size(); ++i) values_.push_back(ValueText(types_[i], batch.columns[i], row));
  }
  return Status::Ok();
}

Status LogicResult::Text(const std::string& text) {
  begun_ = true;
  columns_ = 1;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    values_.push_back(begin == end ? "(empty)" : text.substr(begin, end - begin));
    begin = end + 1;
  }
  return Status::Ok();
}

Status LogicResult::Analyzed(const Analysis& analysis) { return Text("\n" + StatisticsText(analysis)); }

void SortLogicValues(SortMode mode, size_t columns, std::vector<std::string>* values) {
  if (mode == SortMode::kValues || (mode == SortMode::kRows && columns == 1)) {
    std::sort(values->begin(), values->end());
    return;
  }
  if (mode != SortMode::kRows || columns == 0 || values->size() % columns != 0) return;
  std::vector<std::vector<std::string>> rows(values->size() / columns);
  for (size_t i = 0; i < values->size(); ++i) rows[i / columns].push_back(std::move((*values)[i]));
  std::sort(rows.begin(), rows.end());
  values->clear();
  for (std::vector<std::string>& row : rows) {
    for (std::string& value : row) values->push_back(std::move(value));
  }
}

std::string LogicHash(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += value + '\n';
  return fmt::format("{} values hashing to {}", values.size(), Md5Hex(text));
}

std::string CompareLogicResult(const LogicRecord& record, size_t columns, int64_t hash_threshold,
                               std::vector<std::string>* values) {
  if (record.types.size() != columns) {
    return fmt::format("  expected {} columns, got {}\n", record.types.size(), columns);
  }
  SortLogicValues(record.sort, columns, values);
  if (record.expected.size() == 1 && record.expected[0].find(" values hashing to ") != std::string::npos) {
    const std::string hash = LogicHash(*values);
    if (hash == record.expected[0]) return {};
    return fmt::format("  expected\n    {}\n  got\n    {}\n{}", record.expected[0], hash, Lines(*values, columns));
  }
  std::vector<std::string> expected = ExpectedValues(record.expected, columns, values->size());
  // Files made by a program are sorted already; people may write rows in any order.
  SortLogicValues(record.sort, columns, &expected);
  bool same = expected.size() == values->size();
  for (size_t i = 0; same && i < expected.size(); ++i) {
    // Sorted values have no column any more; then every column is as lenient as the most lenient.
    const char type = record.sort == SortMode::kValues && record.types.find('R') != std::string::npos
                          ? 'R'
                          : record.types[i % columns];
    same = SameValue(type, expected[i], (*values)[i]);
  }
  if (same) return {};
  const bool long_result = hash_threshold > 0 && static_cast<int64_t>(values->size()) > hash_threshold;
  return fmt::format("  expected\n{}  got\n{}{}", Lines(expected, expected.size() % columns == 0 ? columns : 1),
                     Lines(*values, columns), long_result ? "    " + LogicHash(*values) + "\n" : "");
}

}  // namespace tessera
