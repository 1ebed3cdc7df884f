// Bound statements as text.
#include "tests/compiler/bind_fixture.h"

#include <algorithm>
#include <vector>

#include "compiler/bind/binder.h"
#include "compiler/parse/parser.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/rewrite/unnest.h"

namespace tessera {
namespace {

using Names = std::vector<std::vector<std::string>>;

Names NamesOf(const Query& query) {
  Names names;
  for (const Relation& r : query.relations) {
    names.emplace_back();
    for (const std::string& c : r.column_names) names.back().push_back(r.alias + "." + c);
  }
  return names;
}

std::string Typed(const Expr& e, const Names& names) {
  return e.ToString(names) + " : " + e.type.ToString() + (e.nullable ? "?" : "");
}

std::string ShowQuery(const Query& q) {
  const Names names = NamesOf(q);
  std::string out;
  for (const Relation& r : q.relations)
    out += "from " + r.table->schema.name + (r.alias == r.table->schema.name ? "" : " " + r.alias) + "\n";
  for (const ExprPtr& e : q.conjuncts) out += "where " + e->ToString(names) + "\n";
  for (const ExprPtr& e : q.group_by) out += "group " + Typed(*e, names) + "\n";
  for (const Aggregate& a : q.aggregates) {
    out += std::string("aggregate ") + Info(a.function).text + (a.argument == nullptr ? "(*)" : "") +
           (a.distinct ? " distinct" : "");
    if (a.argument != nullptr) out += " " + a.argument->ToString(names);
    out += " : " + a.type.ToString() + "\n";
  }
  for (const ExprPtr& e : q.having) out += "having " + e->ToString(names) + "\n";
  for (size_t i = 0; i < q.outputs.size(); ++i) {
    const Output& o = q.outputs[i];
    out += (static_cast<int>(i) < q.visible ? "output " : "hidden ") + o.name + " = " + Typed(*o.expr, names) + "\n";
  }
  if (q.grouped) out += "grouped\n";
  if (q.distinct) out += "distinct\n";
  for (const OrderKey& k : q.order_by) {
    out += "order " + std::to_string(k.output) + (k.descending ? " desc" : " asc") +
           (k.nulls_first ? " nulls first" : " nulls last") + "\n";
  }
  if (q.limit >= 0) out += "limit " + std::to_string(q.limit) + "\n";
  if (q.offset > 0) out += "offset " + std::to_string(q.offset) + "\n";
  return out;
}

}  // namespace

BindTest::BindTest() {
  AddTable(
      "CREATE TABLE t (s SMALLINT, i INTEGER, b BIGINT, d DECIMAL(12,2), w DECIMAL(30,4), r REAL, f DOUBLE PRECISION, "
      "day DATE, "
      "moment TIMESTAMP, v VARCHAR(10), txt TEXT, flag BOOLEAN, n INTEGER NOT NULL)");
  AddTable("CREATE TABLE u (i INTEGER NOT NULL, x INTEGER, name TEXT)");
}

void BindTest::AddTable(std::string_view create_table) {
  Result<Statement> bound = BindText(create_table);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  auto table = std::make_shared<TableInfo>();
  table->id = static_cast<int64_t>(snapshot_.tables.size()) + 1;
  table->schema = bound->definition.schema;
  table->rows = 2;
  table->statistics.resize(table->schema.columns.size());
  for (ColumnStatistics& s : table->statistics) s.null_count = 1;
  snapshot_.tables.push_back(std::move(table));
  std::sort(snapshot_.tables.begin(), snapshot_.tables.end(),
            [](const auto& a, const auto& b) { return a->schema.name < b->schema.name; });
}

Result<Statement> BindTest::BindText(std::string_view sql) const {
  TESSERA_ASSIGN(const ParsedStatement parsed, Parse(sql));
  TESSERA_ASSIGN(Statement bound, Bind(parsed, sql, snapshot_));
  if (bound.query == nullptr) return bound;
  TESSERA_TRY(Unnest(bound.query.get()));
  Simplify(bound.query.get());
  return bound;
}

std::string BindTest::Error(std::string_view sql) const {
  const Result<Statement> bound = BindText(sql);
  return bound.ok() ? "no error" : FormatError(bound.status(), sql);
}

std::string BindTest::Message(std::string_view sql) const {
  const Result<Statement> bound = BindText(sql);
  return bound.ok() ? "no error" : bound.status().message();
}

std::string BindTest::Expression(std::string_view expression) const {
  const std::string sql = "SELECT " + std::string(expression) + " FROM t";
  const Result<Statement> bound = BindText(sql);
  if (!bound.ok()) return bound.status().message();
  return Typed(*bound->query->outputs[0].expr, NamesOf(*bound->query));
}

std::string BindTest::Constant(std::string_view expression) const {
  const std::string sql = "SELECT " + std::string(expression);
  const Result<Statement> bound = BindText(sql);
  if (!bound.ok()) return bound.status().message();
  const Expr& e = *bound->query->outputs[0].expr;
  if (e.kind != Expr::Kind::kConstant) return "not folded: " + Typed(e, {});
  return Typed(e, {});
}

std::string BindTest::Where(std::string_view condition) const {
  const std::string sql = "SELECT 1 FROM t WHERE " + std::string(condition);
  const Result<Statement> bound = BindText(sql);
  if (!bound.ok()) return bound.status().message();
  std::string out;
  for (const ExprPtr& e : bound->query->conjuncts) {
    if (!out.empty()) out += " & ";
    out += e->ToString(NamesOf(*bound->query));
  }
  return out.empty() ? "nothing" : out;
}

std::string BindTest::Show(std::string_view sql) const {
  const Result<Statement> bound = BindText(sql);
  if (!bound.ok()) return bound.status().message();
  return bound->query != nullptr ? ShowQuery(*bound->query) : "no query";
}

std::string BindTest::TypeOf(std::string_view expression) const {
  const std::string sql = "SELECT " + std::string(expression) + " FROM t";
  const Result<Statement> bound = BindText(sql);
  if (!bound.ok()) return "-";
  return bound->query->outputs[0].expr->type.ToString();
}

}  // namespace tessera
