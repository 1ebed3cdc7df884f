// Rows of the catalog's table of constraints.
#include "tablet/constraint_row.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "tablet/enum_type.h"

namespace tessera {

std::vector<ConstraintRow> ConstraintsOf(const TableSchema& schema) {
  std::vector<ConstraintRow> rows;
  for (const CheckConstraint& check : schema.checks) rows.push_back({"check", check.name, check.text});
  for (const UniqueKey& key : schema.unique_keys) {
    std::string columns;
    for (const int column : key.columns) columns += (columns.empty() ? "" : " ") + std::to_string(column);
    rows.push_back({"unique", key.name, columns});
  }
  for (size_t column = 0; column < schema.columns.size(); ++column) {
    if (const auto& text = schema.columns[column].generated_text)
      rows.push_back({"generated", std::to_string(column), *text});
    if (const auto& text = schema.columns[column].default_expression)
      rows.push_back({"default", std::to_string(column), *text});
    if (const SqlType& type = schema.columns[column].type; type.id == TypeId::kEnum)
      rows.push_back({"enum", std::to_string(column), EnumText(EnumOf(type))});
  }
  return rows;
}
bool AddConstraint(const ConstraintRow& row, TableSchema* schema) {
  const auto number = [&](std::string_view text, int* column) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *column);
    return error == std::errc() && end == text.data() + text.size() && *column >= 0 &&
           static_cast<size_t>(*column) < schema->columns.size();
  };
  if (row.kind == "check") {
    schema->checks.push_back({row.name, row.value});
    return true;
  }
  if (row.kind == "generated" || row.kind == "default" || row.kind == "enum") {
    int number_of = -1;
    if (!number(row.name, &number_of)) return false;
    ColumnSchema& column = schema->columns[static_cast<size_t>(number_of)];
    EnumType type;
    if (row.kind == "generated") column.generated_text = row.value;
    if (row.kind == "default") column.default_expression = row.value;
    if (row.kind != "enum") return true;
    if (column.type.id != TypeId::kEnum || !ReadEnum(row.value, &type)) return false;
    column.type = EnumSqlType(type);
    return true;
  }
  if (row.kind != "unique") return false;
  UniqueKey key{row.name, {}};
  for (std::string_view rest = row.value; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    int column = -1;
    if (!number(rest.substr(0, end), &column)) return false;
    key.columns.push_back(column);
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  schema->unique_keys.push_back(std::move(key));
  return true;
}

}  // namespace tessera
