// Functions of schemas, and of what names in texts mean.
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/relation_name.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/expr_builder.h"

namespace tessera {
namespace {

std::vector<std::string> PathOf(const Dialect& dialect) {
  std::vector<std::string> path;
  if (dialect.relations == nullptr || dialect.relations->path.empty()) return {kTheSchema};
  for (const std::string& schema : dialect.relations->path) path.push_back(schema.empty() ? kTheSchema : schema);
  return path;
}

/// As an array's text has an element.
std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

Result<ExprPtr> ExpressionBinder::BindCurrentSchema(int position) {
  return MakeConstant(Value::Text(PathOf(dialect())[0]), position);
}

Result<ExprPtr> ExpressionBinder::BindCurrentSchemas(ExprPtr implicit, int position) {
  const std::string path = Listed(PathOf(dialect()));
  return BindText("CASE WHEN x THEN '{pg_catalog," + path + "}' ELSE '{" + path + "}' END",
                  ExprList(std::move(implicit)), position);
}

Result<ExprPtr> ExpressionBinder::BindVisible(ExprPtr oid, int position) {
  const Snapshot* const relations = dialect().relations;
  const bool all = relations == nullptr || relations->names.schemas.empty();
  const std::string found = all ? "TRUE" : "NOT EXISTS (SELECT 1 FROM pg_catalog.tessera_hidden AS h WHERE h.oid = x)";
  return BindText("CASE WHEN x IS NOT NULL THEN " + found + " END", ExprList(std::move(oid)), position);
}

Result<ExprPtr> ExpressionBinder::BindSerialSequence(ExprPtr table, ExprPtr column, int position) {
  const auto is_text = [](const Expr& e) { return IsConstant(e) && !e.constant.null; };
  if (!is_text(*table) || !is_text(*column))
    return Unsupported("pg_get_serial_sequence of what is not constant is not supported", position);
  const Snapshot* const relations = dialect().relations;
  if (relations == nullptr) return MakeNull(SqlType::Text(), position);
  NoteMoment();
  const std::string name = NameOfText(table->constant.text, relations);
  const auto found = relations->Find(name);
  if (found == nullptr)
    return SqlError(ErrorKind::kUndefinedTable, "table \"" + name + "\" does not exist", table->position);
  if (found->schema.Find(column->constant.text) < 0)
    return SqlError(ErrorKind::kUndefinedColumn,
                    "column \"" + column->constant.text + "\" of table \"" + name + "\" does not exist",
                    column->position);
  for (const Sequence& s : relations->names.sequences) {
    if (s.table_id != found->id || s.column != column->constant.text) continue;
    return MakeConstant(Value::Text(ShownSchema(s.name) + "." + TextOfName(BaseName(s.name))), position);
  }
  return MakeNull(SqlType::Text(), position);
}

}  // namespace tessera
