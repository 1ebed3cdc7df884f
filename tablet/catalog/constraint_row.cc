// Rows of the catalog's table of constraints.
#include "tablet/catalog/constraint_row.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "tablet/catalog/buckets.h"
#include "tablet/values/enum_type.h"

namespace tessera {
namespace {

/// With blanks between.
std::string NumbersText(const std::vector<int>& numbers) {
  std::string text;
  for (const int n : numbers) text += (text.empty() ? "" : " ") + std::to_string(n);
  return text;
}

/// The character that stands for bucket 0; the next ones stand for the others.
constexpr char kFirstBucket = '0';

}  // namespace

std::vector<ConstraintRow> ConstraintsOf(const TableSchema& schema) {
  std::vector<ConstraintRow> rows;
  for (const CheckConstraint& check : schema.checks) rows.push_back({"check", check.name, check.text});
  for (const UniqueKey& key : schema.unique_keys) rows.push_back({"unique", key.name, NumbersText(key.columns)});
  for (size_t column = 0; column < schema.columns.size(); ++column) {
    if (const auto& text = schema.columns[column].generated_text)
      rows.push_back({"generated", std::to_string(column), *text});
    if (const auto& text = schema.columns[column].default_expression)
      rows.push_back({"default", std::to_string(column), *text});
    if (const SqlType& type = schema.columns[column].type; type.id == TypeId::kEnum)
      rows.push_back({"enum", std::to_string(column), EnumText(EnumOf(type))});
  }
  if (!schema.cluster_by.empty()) rows.push_back({"cluster", "", NumbersText(schema.cluster_by)});
  if (!schema.distribute_by.empty()) rows.push_back({"distribute", "", NumbersText(schema.distribute_by)});
  return rows;
}

std::vector<ConstraintRow> ConstraintsOf(const TableRecord& table) {
  std::vector<ConstraintRow> rows = ConstraintsOf(table.schema);
  if (table.schema.distribute_by.empty()) return rows;
  std::string buckets;
  for (const TabletRecord& tablet : table.tablets) buckets += static_cast<char>(kFirstBucket + tablet.bucket);
  rows.push_back({kBucketsRow, "", std::move(buckets)});
  return rows;
}

bool SetBuckets(std::string_view buckets, TableRecord* table) {
  const size_t expected = table->schema.distribute_by.empty() ? 0 : table->tablets.size();
  if (buckets.size() != expected) return false;
  for (size_t t = 0; t < buckets.size(); ++t) {
    const int bucket = buckets[t] - kFirstBucket;
    if (bucket < 0 || bucket >= kBuckets) return false;
    table->tablets[t].bucket = static_cast<uint8_t>(bucket);
  }
  return true;
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
  if (row.kind != "unique" && row.kind != "cluster" && row.kind != "distribute") return false;
  std::vector<int> columns;
  for (std::string_view rest = row.value; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    int column = -1;
    if (!number(rest.substr(0, end), &column)) return false;
    columns.push_back(column);
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  if (row.kind == "unique") {
    schema->unique_keys.push_back({row.name, std::move(columns)});
    return true;
  }
  std::vector<int>& list = row.kind == "cluster" ? schema->cluster_by : schema->distribute_by;
  if (columns.empty() || !list.empty()) return false;
  list = std::move(columns);
  return true;
}

}  // namespace tessera
