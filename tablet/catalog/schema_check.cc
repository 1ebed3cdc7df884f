// The rules of names, types, keys and views.
#include "tablet/catalog/schema_check.h"

#include <algorithm>
#include <set>
#include <string>

#include "tablet/chunk/tablet_format.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/interval.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// Empty if it is one.
std::string WhyNotAName(const std::string& name) {
  if (name.empty()) return "needs a name";
  if (name.find('\0') != std::string::npos) return "has a NUL byte in its name";
  if (FindInvalidUtf8(name) != std::string_view::npos) return "has a name that is not UTF-8";
  return {};
}

bool IsStorable(const SqlType& type) {
  if (type.id <= TypeId::kNull || type.id > TypeId::kEnum) return false;
  if (type.id == TypeId::kEnum) return !EnumOf(type).name.empty();
  if (type.length < 0 || (type.length != 0 && type.id != TypeId::kText)) return false;
  if (type.id == TypeId::kDecimal) return type.precision >= 1 && type.precision <= 38 && type.scale <= type.precision;
  return type.precision == 0 && type.scale == 0;
}

}  // namespace

Status CheckSchema(const TableSchema& schema) {
  if (const std::string why = WhyNotAName(schema.name); !why.empty()) {
    return SqlError((schema.name.empty() ? "a table " : "table " + QuoteForMessage(schema.name) + " ") + why);
  }
  const std::string table = "table " + QuoteForMessage(schema.name);
  if (schema.columns.empty()) return SqlError(table + " needs at least one column");
  if (schema.columns.size() > kGreatestColumns) {
    return SqlError(ErrorKind::kTooManyColumns,
                    table + " has more than " + std::to_string(kGreatestColumns) + " columns");
  }
  if (schema.tablet_rows > kGreatestTabletRows) {
    return SqlError(ErrorKind::kInvalidParameterValue,
                    "tablet_rows must be 1 to " + std::to_string(kGreatestTabletRows));
  }
  std::set<std::string_view> names;
  for (const ColumnSchema& column : schema.columns) {
    const std::string quoted = QuoteForMessage(column.name);
    if (const std::string why = WhyNotAName(column.name); !why.empty()) {
      return SqlError((column.name.empty() ? "a column" : "column " + quoted) + " of " + table + " " + why);
    }
    if (!names.insert(column.name).second)
      return SqlError(ErrorKind::kDuplicateColumn, "column " + quoted + " is specified twice");
    if (!IsStorable(column.type)) return SqlError("column " + quoted + " cannot have type " + column.type.ToString());
    if (column.default_text && !ParseValue(*column.default_text, column.type).ok())
      return SqlError("column " + quoted + " has a DEFAULT that is no " + column.type.ToString());
  }
  std::set<int> key;
  for (int column : schema.primary_key) {
    if (column < 0 || static_cast<size_t>(column) >= schema.columns.size() || !key.insert(column).second) {
      return SqlError("the primary key of " + table + " names a column twice or one that is not there");
    }
  }
  std::set<std::string_view> constraints;
  for (const CheckConstraint& check : schema.checks) {
    if (!constraints.insert(check.name).second)
      return SqlError(ErrorKind::kDuplicateObject,
                      "constraint " + QuoteForMessage(check.name) + " of " + table + " is specified twice");
  }
  for (const UniqueKey& unique : schema.unique_keys) {
    std::set<int> columns(unique.columns.begin(), unique.columns.end());
    const bool known = std::all_of(unique.columns.begin(), unique.columns.end(), [&](int column) {
      return column >= 0 && static_cast<size_t>(column) < schema.columns.size();
    });
    if (columns.empty() || columns.size() != unique.columns.size() || !known || !constraints.insert(unique.name).second)
      return SqlError("the unique constraint " + QuoteForMessage(unique.name) + " of " + table + " is not well formed");
  }
  for (const ForeignKey& reference : schema.foreign_keys) {
    const std::set<int> columns(reference.columns.begin(), reference.columns.end());
    const bool known =
        !columns.empty() && *columns.begin() >= 0 && static_cast<size_t>(*columns.rbegin()) < schema.columns.size();
    if (!known || columns.size() != reference.columns.size() || reference.to.size() != reference.columns.size() ||
        !constraints.insert(reference.name).second)
      return SqlError("the foreign key " + QuoteForMessage(reference.name) + " of " + table + " is not well formed");
  }
  return {};
}

Status CheckView(const ViewSchema& view) {
  if (const std::string why = WhyNotAName(view.name); !why.empty())
    return SqlError((view.name.empty() ? "a view " : "view " + QuoteForMessage(view.name) + " ") + why);
  const std::string name = "view " + QuoteForMessage(view.name);
  if (view.columns.empty() || view.columns.size() > kGreatestColumns)
    return SqlError(ErrorKind::kTooManyColumns,
                    name + " has no columns, or more than " + std::to_string(kGreatestColumns));
  if (view.query.empty() || FindInvalidUtf8(view.query) != std::string_view::npos)
    return SqlError(name + " has no query");
  std::set<std::string_view> names;
  for (const ViewColumn& column : view.columns) {
    const std::string quoted = QuoteForMessage(column.name);
    if (const std::string why = WhyNotAName(column.name); !why.empty())
      return SqlError((column.name.empty() ? "a column" : "column " + quoted) + " of " + name + " " + why, -1,
                      "Name it in the query: SELECT x AS name.");
    if (!names.insert(column.name).second)
      return SqlError(ErrorKind::kDuplicateColumn, "column " + quoted + " of " + name + " is specified twice", -1,
                      "Name it in the query: SELECT x AS name.");
  }
  return {};
}

Status CheckType(const EnumType& type) {
  if (const std::string why = WhyNotAName(type.name); !why.empty()) return SqlError("a type " + why);
  if (type.labels.size() > kMostLabels)
    return SqlError("an ENUM has at most " + std::to_string(kMostLabels) + " values");
  const auto is_control = [](char c) { return c >= 0 && c < ' '; };
  std::set<std::string_view> labels;
  for (const std::string& label : type.labels) {
    const std::string quoted = QuoteForMessage(label);
    if (label.size() > kMostLabelBytes)
      return SqlError("invalid enum label " + quoted, -1,
                      "It has at most " + std::to_string(kMostLabelBytes) + " bytes.");
    if (FindInvalidUtf8(label) != std::string_view::npos || std::any_of(label.begin(), label.end(), is_control))
      return SqlError("invalid enum label " + quoted, -1, "It is UTF-8 without control characters.");
    if (!labels.insert(label).second)
      return SqlError(ErrorKind::kDuplicateObject, "enum label " + quoted + " is used more than once");
  }
  return {};
}

Status CheckMacro(const Macro& macro) {
  if (const std::string why = WhyNotAName(macro.name); !why.empty()) return SqlError("a macro " + why);
  if (macro.definition.empty() || FindInvalidUtf8(macro.definition) != std::string_view::npos)
    return SqlError("the definition of macro " + QuoteForMessage(macro.name) + " is not a text");
  return {};
}

Status CheckUnchanged(const TableSchema& compiled, const TableSchema& now) {
  const auto same_column = [](const ColumnSchema& a, const ColumnSchema& b) {
    return a.name == b.name && a.type == b.type && a.not_null == b.not_null && a.default_text == b.default_text &&
           a.default_expression == b.default_expression && a.generated_text == b.generated_text;
  };
  const auto same_check = [](const CheckConstraint& a, const CheckConstraint& b) {
    return a.name == b.name && a.text == b.text;
  };
  // (Keys are the load's own matter, and tablet_rows may be chosen by any load.)
  if (compiled.name == now.name && std::ranges::equal(compiled.columns, now.columns, same_column) &&
      std::ranges::equal(compiled.checks, now.checks, same_check) && compiled.foreign_keys == now.foreign_keys)
    return {};
  return {ErrorKind::kSerializationFailure, "table \"" + compiled.name + "\" was changed by another process",
          "Run the statement again."};
}

Value DefaultOf(const ColumnSchema& column) {
  if (!column.default_text) return Value::Null(column.type);
  Result<Value> value = ParseValue(*column.default_text, column.type);
  return value.ok() ? std::move(value).value() : Value::Null(column.type);
}

}  // namespace tessera
