#include "compiler/bind/set_list.h"

#include <optional>
#include <string>
#include <utility>

#include "compiler/bind/named_table.h"
#include "compiler/bind/row_rules.h"
#include "compiler/bind/sequence_binder.h"
#include "compiler/bind/sequence_values.h"
#include "compiler/bind/table_binder.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/type_rules.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/schema_check.h"

namespace tessera {
namespace {

/// The value that `target` of SET gives: where several columns are set at once, that of its place.
Result<const ParseNode*> ValueOf(const ParseNode& target) {
  const ParseNode& value = *target.Get(Field::k_val);
  if (!value.Is(Tag::kMultiAssignRef)) return &value;
  const ParseNode& source = *value.Get(Field::k_source);
  const int64_t columns = value.Number(Field::k_ncolumns), place = value.Number(Field::k_colno);
  if (source.Is(Tag::kSubLink)) {
    return Unsupported("SET of several columns from a subquery is not supported", source.location(),
                       "Write SET a = (SELECT ...), b = (SELECT ...), or take them from a table of FROM.");
  }
  if (!source.Is(Tag::kRowExpr)) {
    if (columns == 1) return &source;
    return SqlError(ErrorKind::kInvalidParameterValue,
                    "source for a multiple-column UPDATE item must be a row: (value, ...)", source.FirstLocation());
  }
  const ParseNode* const items = source.Get(Field::k_args);
  if (items == nullptr || static_cast<int64_t>(items->size()) != columns)
    return SqlError(ErrorKind::kSyntax, "number of columns does not match number of values", source.location());
  const ParseNode* item = items->first();
  for (int64_t i = 1; i < place; ++i) item = item->next();
  return item;
}

/// The new value of a column; nullptr for one that is computed of others, where DEFAULT is said.
Result<ExprPtr> NewValue(const ParseNode& value, const ColumnSchema& column, ExpressionBinder* binder) {
  if (value.Is(Tag::kSetToDefault)) {
    if (column.generated_text) return ExprPtr();
    const std::optional<std::string> sequence =
        column.default_expression ? SequenceOfDefault(*column.default_expression) : std::nullopt;
    if (sequence && binder->dialect().sequence_calls != nullptr) {
      NoteMoment();
      return MakeSequenceValue({*sequence, true, value.location()}, binder->dialect().sequence_calls);
    }
    if (column.default_expression) {
      return Unsupported("DEFAULT of a column whose default is computed for each row is not supported in UPDATE",
                         value.location(), "Write the expression.");
    }
    return MakeConstant(DefaultOf(column), value.location());
  }
  if (column.generated_text) {
    return SqlError(ErrorKind::kGeneratedAlways, "column \"" + column.name + "\" can only be updated to DEFAULT",
                    value.FirstLocation(), "It is a generated column.");
  }
  SqlType type = column.type;
  if (type.id == TypeId::kText) type.length = 0;  // a text that is too long is an error when it is stored
  TESSERA_ASSIGN(ExprPtr e, binder->Bind(value));
  return binder->Resolve(std::move(e), type);
}

}  // namespace

Result<std::vector<int>> ListedColumns(const ParseNode* list, const TableInfo& table) {
  std::vector<int> columns;
  if (list == nullptr) {
    for (size_t i = 0; i < table.schema.columns.size(); ++i) columns.push_back(static_cast<int>(i));
    return columns;
  }
  std::vector<bool> seen(table.schema.columns.size());
  for (const ParseNode& target : *list) {
    const std::string_view name = target.Text(Field::k_name);
    if (target.Get(Field::k_indirection) != nullptr) {
      return Unsupported("a subscript or field of a column is not supported", target.location());
    }
    TESSERA_ASSIGN(const int column, FindTableColumn(table, name, target.location()));
    if (seen[static_cast<size_t>(column)]) {
      return SqlError(ErrorKind::kDuplicateColumn, "column \"" + std::string(name) + "\" specified more than once",
                      target.location());
    }
    seen[static_cast<size_t>(column)] = true;
    columns.push_back(column);
  }
  return columns;
}

Status BindSetList(const ParseNode& targets, const TableInfo& table, const NameScope& scope, const char* statement,
                   QueryBlock* block, std::vector<ExprPtr>* values) {
  ExpressionBinder binder(&block->context, &scope, Clause::kSelect);
  std::vector<bool> is_set(table.schema.columns.size());
  values->resize(is_set.size());
  for (const ParseNode& target : targets) {
    const std::string_view name = target.Text(Field::k_name);
    if (target.Get(Field::k_indirection) != nullptr)
      return Unsupported("a subscript or field of a column is not supported", target.location());
    TESSERA_ASSIGN(const int column, FindTableColumn(table, name, target.location()));
    const auto c = static_cast<size_t>(column);
    if (is_set[c])
      return SqlError(ErrorKind::kSyntax, "multiple assignments to same column \"" + std::string(name) + "\"",
                      target.location());
    is_set[c] = true;
    TESSERA_ASSIGN(const ParseNode* value, ValueOf(target));
    if (!value->Is(Tag::kSetToDefault))
      TESSERA_TRY(CheckIdentityUpdate(table, column, *block->context.snapshot, target.location()));
    TESSERA_ASSIGN((*values)[c], NewValue(*value, table.schema.columns[c], &binder));
    if (!block->query->aggregates.empty() || !block->windows.empty()) {
      return SqlError(ErrorKind::kGrouping,
                      "aggregate and window functions are not allowed in " + std::string(statement),
                      value->FirstLocation(), "Compute them in a subquery.");
    }
  }
  return {};
}

Result<ExprPtr> AsColumn(ExprPtr e, const ColumnSchema& column, ExpressionBinder* binder) {
  SqlType type = column.type;
  if (type.id == TypeId::kText) type.length = 0;
  TESSERA_ASSIGN(e, binder->Resolve(std::move(e), type));
  const SqlType from = e->type;
  if (from == type || (from.id == TypeId::kText && type.id == TypeId::kText)) return e;
  if (FindCast(from, type) > CastContext::kAssignment) {
    return SqlError(ErrorKind::kDatatypeMismatch,
                    "column \"" + column.name + "\" is of type " + column.type.ToString() +
                        " but expression is of type " + from.ToString(),
                    e->position, "You will need to rewrite or cast the expression.");
  }
  return binder->Cast(std::move(e), type);
}

Status AddNewValues(std::vector<ExprPtr> values, const TableInfo& target, const Dialect& dialect, Query* query,
                    RowRules* rules) {
  const TableSchema& schema = target.schema;
  std::vector<int> given;
  for (size_t c = 0; c < values.size(); ++c) {
    const ColumnSchema& column = schema.columns[c];
    if (column.generated_text) continue;
    const int number = static_cast<int>(c);
    if (values[c] == nullptr) values[c] = MakeColumn(0, number, column.type, !column.not_null, -1);
    given.push_back(number);
    query->outputs.push_back({std::move(values[c]), column.name});
  }
  query->visible = static_cast<int>(given.size());
  TESSERA_ASSIGN(*rules, MakeRowRules(schema, given, dialect));
  return FitToTable(query, target, given, dialect);
}

void AddRowNumber(const TableInfo& target, Query* query) {
  query->outputs.push_back({MakeColumn(0, RowNumberColumn(target), SqlType::Of(TypeId::kBigint), false, -1), "row"});
  query->visible = static_cast<int>(query->outputs.size());
}

Status GivenToGenerated(const ColumnSchema& column, int position) {
  return SqlError(ErrorKind::kGeneratedAlways, "cannot insert a non-DEFAULT value into column \"" + column.name + "\"",
                  position, "It is a generated column: leave it out.");
}

}  // namespace tessera
