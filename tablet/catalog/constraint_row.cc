// Rows of the catalog's table of constraints.
#include "tablet/catalog/constraint_row.h"

#include <algorithm>
#include <charconv>
#include <iterator>
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

constexpr std::string_view kActions[] = {"no_action", "restrict", "cascade", "set_null", "set_default"};

/// Columns, actions, when it is checked, and the names of the other table and its columns, each with its length before it.
std::string ForeignKeyText(const ForeignKey& key) {
  const auto action = [](ForeignKey::Action a) { return std::string(kActions[static_cast<size_t>(a)]); };
  const auto counted = [](const std::string& name) { return std::to_string(name.size()) + ":" + name + ","; };
  std::string text = NumbersText(key.columns) + "/" + action(key.on_delete) + "/" + action(key.on_update) + "/" +
                     (key.deferred     ? "deferred"
                      : key.deferrable ? "deferrable"
                                       : "immediate") +
                     "/" + counted(key.referenced);
  for (const std::string& column : key.to) text += counted(column);
  return text;
}

bool ReadNumber(std::string_view text, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= 0;
}

/// Numbers with blanks between, each less than `columns`.
bool ReadNumbers(std::string_view text, size_t columns, std::vector<int>* out) {
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    int column = -1;
    if (!ReadNumber(rest.substr(0, end), &column) || static_cast<size_t>(column) >= columns) return false;
    out->push_back(column);
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return true;
}

bool ReadForeignKey(std::string_view text, size_t columns, ForeignKey* key) {
  std::string_view parts[4];
  for (std::string_view& part : parts) {
    const size_t end = text.find('/');
    if (end == std::string_view::npos) return false;
    part = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  const auto read_action = [](std::string_view name, ForeignKey::Action* action) {
    const auto at = std::ranges::find(kActions, name);
    *action = static_cast<ForeignKey::Action>(at - std::begin(kActions));
    return at != std::end(kActions);
  };
  key->deferred = parts[3] == "deferred";
  key->deferrable = key->deferred || parts[3] == "deferrable";
  if (!ReadNumbers(parts[0], columns, &key->columns) || !read_action(parts[1], &key->on_delete) ||
      !read_action(parts[2], &key->on_update) || (!key->deferrable && parts[3] != "immediate"))
    return false;
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t colon = text.find(':');
    int length = 0;
    if (colon == std::string_view::npos || !ReadNumber(text.substr(0, colon), &length)) return false;
    text.remove_prefix(colon + 1);
    const auto bytes = static_cast<size_t>(length);
    if (bytes >= text.size() || text[bytes] != ',') return false;
    names.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes + 1);
  }
  if (key->columns.empty() || names.size() != key->columns.size() + 1) return false;
  key->referenced = names[0];
  key->to.assign(names.begin() + 1, names.end());
  return true;
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
  for (const ForeignKey& key : schema.foreign_keys) rows.push_back({"foreign", key.name, ForeignKeyText(key)});
  if (!schema.comment.empty()) rows.push_back({"comment", "", schema.comment});
  for (size_t column = 0; column < schema.columns.size(); ++column) {
    if (const std::string& text = schema.columns[column].comment; !text.empty())
      rows.push_back({"comment", std::to_string(column), text});
  }
  if (const auto& query = schema.materialized)
    rows.push_back({"materialized", query->populated ? "populated" : "", query->text});
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
  const size_t count = schema->columns.size();
  if (row.kind == "check") {
    schema->checks.push_back({row.name, row.value});
    return true;
  }
  if (row.kind == "comment" && row.name.empty()) {
    schema->comment = row.value;
    return true;
  }
  if (row.kind == "generated" || row.kind == "default" || row.kind == "enum" || row.kind == "comment") {
    int number_of = -1;
    if (!ReadNumber(row.name, &number_of) || static_cast<size_t>(number_of) >= count) return false;
    ColumnSchema& column = schema->columns[static_cast<size_t>(number_of)];
    EnumType type;
    if (row.kind == "generated") column.generated_text = row.value;
    if (row.kind == "default") column.default_expression = row.value;
    if (row.kind == "comment") column.comment = row.value;
    if (row.kind != "enum") return true;
    if (column.type.id != TypeId::kEnum || !ReadEnum(row.value, &type)) return false;
    column.type = EnumSqlType(type);
    return true;
  }
  if (row.kind == "foreign") {
    ForeignKey& key = schema->foreign_keys.emplace_back();
    key.name = row.name;
    return ReadForeignKey(row.value, count, &key);
  }
  if (row.kind == "materialized") {
    if (schema->materialized || row.value.empty()) return false;
    schema->materialized = {row.value, row.name == "populated"};
    return true;
  }
  if (row.kind != "unique" && row.kind != "cluster" && row.kind != "distribute") return false;
  std::vector<int> columns;
  if (!ReadNumbers(row.value, count, &columns)) return false;
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
