#include "compiler/bind/with_clause.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/inner_block.h"
#include "compiler/bind/limit.h"
#include "compiler/bind/unreached_branch.h"
#include "compiler/parse/parser.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/type_rules.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

Status RefuseOuterColumnsOf(const Query& query, int position) {
  return UnreachedBranch::active() ? Status::Ok() : RefuseOuterColumns(query, "a query of WITH", position);
}

/// Levels of nesting that the blocks around the arms count as, as QueryBlock's.
constexpr int kLevels = 8;

/// A block that reads the visible columns of another one, which may have an order and a limit.
std::unique_ptr<Query> Reader(std::shared_ptr<Query> rows) {
  auto reader = std::make_unique<Query>();
  for (int i = 0; i < rows->visible; ++i) {
    const Output& o = rows->outputs[static_cast<size_t>(i)];
    reader->outputs.push_back({MakeColumn(0, i, o.expr->type, o.expr->nullable, o.expr->position), o.name});
  }
  reader->visible = rows->visible;
  reader->height = rows->height;
  reader->relations.push_back(DerivedTable(std::move(rows)));
  return reader;
}

/// One row, which stands for the rows of the last turn.
std::shared_ptr<Query> WorkingTable(const Query& first) {
  auto table = std::make_shared<Query>();
  for (const Output& o : first.outputs) table->outputs.push_back({MakeNull(o.expr->type, -1), o.name});
  table->visible = static_cast<int>(table->outputs.size());
  table->is_working = true;
  return table;
}

/// Gives the outputs of the step the types of the first rows.
Status GiveTypes(const Query& first, const std::string& name, int position, QueryBlock* block, Query* step) {
  ExpressionBinder binder(&block->context, nullptr, Clause::kSelect);
  for (size_t c = 0; c < first.outputs.size(); ++c) {
    ExprPtr& e = step->outputs[c].expr;
    const SqlType type = first.outputs[c].expr->type;
    if (e->type == type) continue;
    const std::optional<SqlType> both = UnifyTypes(type, e->type);
    const bool text = type.id == TypeId::kText && e->type.id == TypeId::kText;
    if (!text && (!both || *both != type)) {
      const SqlType overall = both.value_or(e->type);
      return SqlError("recursive query \"" + name + "\" column " + std::to_string(c + 1) + " has type " +
                          type.ToString() + " in its first part, but " + overall.ToString() + " in the other",
                      e->position >= 0 ? e->position : position, "Cast it in the part before UNION.");
    }
    TESSERA_ASSIGN(e, binder.Coerce(std::move(e), type, CastContext::kExplicit));
  }
  return {};
}

/// Whether `body` reads a table of this name, somewhere in it.
bool ReadsTable(const ParseNode& body, std::string_view name) {
  if (body.Is(Tag::kSelectStmt)) {
    // Its own WITH may give the name another meaning.
    if (const ParseNode* with = body.Get(Field::k_withClause)) {
      for (const ParseNode& cte : *with->Get(Field::k_ctes)) {
        if (cte.Text(Field::k_ctename) == name)
          return with->Get(Field::k_recursive) == nullptr && ReadsTable(*cte.Get(Field::k_ctequery), name);
      }
    }
  }
  if (body.Is(Tag::kRangeVar) && body.Get(Field::k_schemaname) == nullptr && body.Text(Field::k_relname) == name)
    return true;
  for (const ParseNode& n : body) {
    if (ReadsTable(n, name)) return true;
  }
  return false;
}

/// Binds a query of WITH that reads itself as `name`. `columns`: its column names; the first ones may be given, the others
/// are added. Errors: it is no UNION whose right arm alone reads it; types of the arms that do not fit.
///
///   Query                 the first rows: the left arm of UNION
///     union_all[0]        the step, the right arm, over the working table
///     working             the working table: the rows of the last turn
Result<std::unique_ptr<Query>> BindRecursive(const ParseNode& body, const std::string& name, int position,
                                             std::vector<std::string>* columns, QueryBlock* block) {
  const ParseNode *const left = body.Get(Field::k_larg), *const right = body.Get(Field::k_rarg);
  const ParseNode* const with = body.Get(Field::k_withClause);
  if (with != nullptr && ReadsTable(*with, name)) {
    return Unsupported("a WITH inside recursive query \"" + name + "\" that reads it is not supported", position,
                       "Write it as (WITH ... SELECT ...) after UNION.");
  }
  if (body.Text(Field::k_op) != "SETOP_UNION" || ReadsTable(*left, name) || !ReadsTable(*right, name)) {
    return SqlError("recursive query \"" + name + "\" is not of the form: first rows UNION [ALL] rows made of them",
                    position);
  }
  if (const ParseNode* sort = body.Get(Field::k_sortClause)) {
    return Unsupported("ORDER BY of a recursive query is not supported", sort->FirstLocation(),
                       "Put it into the query that reads \"" + name + "\".");
  }
  QueryBlock around(block->context, nullptr);  // of its WITH and its LIMIT
  if (with != nullptr) TESSERA_TRY(BindWith(*with, &around));
  TESSERA_TRY(BindLimit(body, &around));
  if (around.limit != nullptr || around.offset != nullptr) {
    return Unsupported("LIMIT of a recursive query by a subquery is not supported", position,
                       "Put it into the query that reads \"" + name + "\".");
  }
  if (around.limit_percent >= 0) {
    return Unsupported("LIMIT of a recursive query by a percentage is not supported", position,
                       "Put it into the query that reads \"" + name + "\".");
  }
  TESSERA_ASSIGN(std::unique_ptr<Query> first, BindQueryBlock(*left, &around.context, nullptr));
  TESSERA_TRY(RefuseOuterColumnsOf(*first, position));
  first = Reader(std::move(first));
  const auto width = static_cast<size_t>(first->visible);
  for (size_t c = columns->size(); c < width; ++c) columns->push_back(first->outputs[c].name);
  const bool distinct = body.Get(Field::k_all) == nullptr;
  for (const Output& o : first->outputs) {
    if (distinct && o.expr->type.id == TypeId::kInterval)
      return Unsupported("UNION of INTERVAL is not supported", position, "UNION ALL, and GROUP BY around it.");
  }

  // The name means the rows of the last turn, as long as the step is bound.
  std::shared_ptr<Query> working = WorkingTable(*first);
  around.ctes.queries[name] = {working, *columns};
  TESSERA_ASSIGN(std::unique_ptr<Query> step, BindQueryBlock(*right, &around.context, nullptr));
  TESSERA_TRY(RefuseOuterColumnsOf(*step, position));
  if (static_cast<size_t>(step->visible) != width) {
    return SqlError(ErrorKind::kSyntax,
                    "each arm of UNION must have the same number of columns: " + std::to_string(width) + " and " +
                        std::to_string(step->visible),
                    right->FirstLocation());
  }
  step = Reader(std::move(step));
  TESSERA_TRY(GiveTypes(*first, name, position, &around, step.get()));
  first->distinct = step->distinct = distinct;
  first->height = std::max(first->height, step->height) + kLevels;
  first->working = std::move(working);
  first->union_all.push_back(std::move(step));
  block->context.deepest = std::max(block->context.deepest, around.context.deepest);
  const int64_t limit = around.query->limit, offset = around.query->offset;
  if (limit < 0 && offset == 0) return first;
  if (limit >= 0 && limit <= INT64_MAX - offset) first->turn_limit = limit + offset;
  std::unique_ptr<Query> kept = Reader(std::move(first));
  kept->limit = limit;
  kept->offset = offset;
  kept->height += kLevels;
  return kept;
}

}  // namespace

Status BindWith(const ParseNode& with, QueryBlock* block) {
  const bool recursive = with.Get(Field::k_recursive) != nullptr;
  for (const ParseNode& node : *with.Get(Field::k_ctes)) {
    const int position = node.location();
    CteScope::Cte cte;
    const std::string name(node.Text(Field::k_ctename));
    if (block->ctes.queries.contains(name)) {
      return SqlError(ErrorKind::kDuplicateAlias, "WITH query name \"" + name + "\" specified more than once",
                      position);
    }
    const ParseNode& body = *node.Get(Field::k_ctequery);
    if (!body.Is(Tag::kSelectStmt))
      return Unsupported("WITH of a statement other than SELECT is not supported", position);
    if (block->context.nesting > kMaxNesting) return NestedTooDeeply(position);
    if (const ParseNode* names = node.Get(Field::k_aliascolnames)) {
      for (const ParseNode& n : *names) cte.columns.emplace_back(n.Text(Field::k_sval));
    }
    const size_t named = cte.columns.size();
    if (recursive && ReadsTable(body, name)) {
      TESSERA_ASSIGN(cte.query, BindRecursive(body, name, position, &cte.columns, block));
    } else {
      TESSERA_ASSIGN(cte.query, BindQueryBlock(body, &block->context, nullptr));
    }
    const auto width = static_cast<size_t>(cte.query->visible);
    if (named > width) {
      return SqlError("WITH query \"" + name + "\" has " + std::to_string(width) + " columns available but " +
                          std::to_string(named) + " columns specified",
                      position);
    }
    for (size_t i = cte.columns.size(); i < width; ++i) cte.columns.push_back(cte.query->outputs[i].name);
    block->ctes.queries.emplace(name, std::move(cte));
  }
  return {};
}

}  // namespace tessera
