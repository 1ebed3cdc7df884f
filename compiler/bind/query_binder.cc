// Binding a SELECT: its clauses in their order; here WHERE, DISTINCT, QUALIFY and ORDER BY.
#include "compiler/bind/query_binder.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "compiler/bind/array_binder.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/grouping.h"
#include "compiler/bind/grouping_sets.h"
#include "compiler/bind/limit.h"
#include "compiler/bind/query_block.h"
#include "compiler/bind/ranked_rows.h"
#include "compiler/bind/select_list.h"
#include "compiler/bind/set_operation.h"
#include "compiler/bind/split_windows.h"
#include "compiler/bind/with_clause.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/fold.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/query_copy.h"
#include "tablet/values/array_type.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

Status RefuseUnsupported(const ParseNode& select, std::string_view sql) {
  // Clauses have no position in the tree, so their keyword is searched.
  const auto keyword = [&](std::string_view word) { return FindKeyword(sql, 0, word); };
  if (select.Get(Field::k_intoClause) != nullptr) return Unsupported("SELECT INTO is not supported", keyword("into"));
  if (select.Get(Field::k_lockingClause) != nullptr) {
    return Unsupported("FOR UPDATE and FOR SHARE are not supported", keyword("for"));
  }
  return {};
}

/// ORDER BY of a set operation takes its columns only, because an expression would have to be that of one arm.
Status RefuseOrderBy(const ParseNode& node, const QueryBlock& block, const char* operation) {
  std::string_view name;
  if (!IsBareName(node, &name)) {
    return SqlError("ORDER BY of " + std::string(operation) + " takes names and positions of its columns only",
                    node.FirstLocation(), "Put it into a derived table: SELECT ... FROM (...) AS t ORDER BY ...");
  }
  std::vector<std::string_view> names;
  for (const Output& o : block.query->outputs) names.push_back(o.name);
  const std::string nearest = NearestName(name, names);
  return SqlError(ErrorKind::kUndefinedColumn, "column \"" + std::string(name) + "\" does not exist", node.location(),
                  nearest.empty()
                      ? "ORDER BY of " + std::string(operation) + " takes the names of the first arm's columns."
                      : "Perhaps you meant column \"" + nearest + "\".");
}

/// A key for an output that is not a constant, unless there is one.
void AddOrderKey(OrderKey key, int output, Query* query) {
  if (IsConstant(*query->outputs[static_cast<size_t>(output)].expr)) return;
  key.output = output;
  const auto same = [&](const OrderKey& k) { return k.output == output; };
  if (std::none_of(query->order_by.begin(), query->order_by.end(), same)) query->order_by.push_back(key);
}

/// The output that an expression of ORDER BY or DISTINCT ON means, which may be a new one; -1 if it is a constant.
/// `operation`: the set operation that the block is, or nullptr.
Result<int> OutputOf(const ParseNode& node, const char* clause, const char* operation, QueryBlock* block) {
  Query& query = *block->query;
  // As in PostgreSQL an output of that name has precedence over a column of FROM.
  TESSERA_ASSIGN(int output, OutputByPosition(node, *block, clause));
  if (output < 0) {
    TESSERA_ASSIGN(output, OutputByName(node, *block, clause));
  }
  if (output >= 0) return output;
  if (operation != nullptr) return RefuseOrderBy(node, *block, operation);
  ExpressionBinder binder(&block->context, &block->scope, Clause::kOrderBy);
  binder.SetOutputs(&query.outputs);
  TESSERA_ASSIGN(ExprPtr e, binder.BindTyped(node));
  if (IsConstant(*e)) return -1;
  for (size_t i = 0; i < query.outputs.size(); ++i) {
    if (query.outputs[i].expr->SameAs(*e)) return static_cast<int>(i);
  }
  if (query.distinct) {
    return SqlError(ErrorKind::kColumnReference, "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    node.location() >= 0 ? node.location() : e->position);
  }
  query.outputs.push_back({std::move(e), ""});
  return static_cast<int>(query.outputs.size()) - 1;
}

/// The output by which rows are ordered where they are ordered by `output`: of an INTERVAL its length, after the others.
int OrderedOutput(int output, Query* query) {
  const Expr& e = *query->outputs[static_cast<size_t>(output)].expr;
  if (e.type.id != TypeId::kInterval) return output;
  ExprPtr length = OrderedForm(e.Clone());
  for (size_t i = 0; i < query->outputs.size(); ++i) {
    if (query->outputs[i].expr->SameAs(*length)) return static_cast<int>(i);
  }
  query->outputs.push_back({std::move(length), ""});
  return static_cast<int>(query->outputs.size()) - 1;
}

/// The same of an array, whose text is in another order. Errors: there can be no other output.
Result<int> OrderedArray(int output, bool alone, QueryBlock* block) {
  Query& query = *block->query;
  const Expr& e = *query.outputs[static_cast<size_t>(output)].expr;
  if (!IsArrayType(e.type) || IsConstant(e)) return output;
  TESSERA_ASSIGN(ExprPtr key, ArrayBinder(&block->context, Clause::kOrderBy).Ordered(CopyWithSubqueries(e)));
  if (query.distinct || alone) {
    return Unsupported("ORDER BY an array beside DISTINCT, or of a set operation, is not supported", e.position,
                       "Put the query into a derived table: SELECT * FROM (...) AS t ORDER BY ...");
  }
  query.outputs.push_back({std::move(key), ""});
  return static_cast<int>(query.outputs.size()) - 1;
}

Status BindOrderBy(const ParseNode& list, const char* operation, QueryBlock* block) {
  Query& query = *block->query;
  for (const ParseNode& sort : list) {
    const ParseNode& node = *sort.Get(Field::k_node);
    if (query.outputs.size() > 2 * kMaxItems) {
      return Unsupported("ORDER BY of more than 4096 expressions is not supported", node.location());
    }
    if (sort.Get(Field::k_useOp) != nullptr) return Unsupported("ORDER BY ... USING is not supported", node.location());
    OrderKey key;
    key.descending = sort.Text(Field::k_sortby_dir) == "SORTBY_DESC";
    const std::string_view nulls = sort.Text(Field::k_sortby_nulls);
    key.nulls_first = nulls == "SORTBY_NULLS_FIRST" || (key.descending && nulls != "SORTBY_NULLS_LAST");
    if (FindMark(block->context, Dialect::Mark::Kind::kAll, node.location()) != nullptr) {
      for (int i = 0; i < query.visible; ++i) AddOrderKey(key, OrderedOutput(i, &query), &query);
      continue;
    }
    TESSERA_ASSIGN(const int output, OutputOf(node, "ORDER BY", operation, block));
    if (output < 0) continue;  // a constant orders nothing
    TESSERA_ASSIGN(const int ordered, OrderedArray(output, operation != nullptr, block));
    AddOrderKey(key, operation == nullptr ? OrderedOutput(ordered, &query) : ordered, &query);
  }
  return {};
}

/// The list of DISTINCT ON, or nullptr.
const ParseNode* DistinctOn(const ParseNode& select) {
  const ParseNode* const list = select.Get(Field::k_distinctClause);
  return list != nullptr && list->first() != nullptr && list->first()->tag() != Tag::kNone ? list : nullptr;
}

/// DISTINCT ON keeps the first row of each partition. Errors: ORDER BY does not begin with its expressions.
Result<RowRanking> BindDistinctOn(const ParseNode& list, QueryBlock* block) {
  Query& query = *block->query;
  std::vector<int> on;
  for (const ParseNode& node : list) {
    TESSERA_ASSIGN(int output, OutputOf(node, "DISTINCT ON", nullptr, block));
    if (output >= 0) output = OrderedOutput(output, &query);
    const bool varies = output >= 0 && !IsConstant(*query.outputs[static_cast<size_t>(output)].expr);
    if (varies && std::find(on.begin(), on.end(), output) == on.end()) on.push_back(output);
  }
  const int position = list.first()->FirstLocation();
  RowRanking r;
  r.order = query.order_by;
  const auto is_on = [&](const OrderKey& k) { return std::find(on.begin(), on.end(), k.output) != on.end(); };
  const auto rest = std::find_if_not(r.order.begin(), r.order.end(), is_on);
  const auto ordered = static_cast<size_t>(rest - r.order.begin());
  if (rest != r.order.end() && (ordered < on.size() || std::any_of(rest, r.order.end(), is_on))) {
    return SqlError(ErrorKind::kColumnReference,
                    "SELECT DISTINCT ON expressions must match initial ORDER BY expressions", position,
                    "ORDER BY them first; what follows says which row of each is kept.");
  }
  for (const int output : on) {
    const auto same = [&](const OrderKey& k) { return k.output == output; };
    if (std::none_of(r.order.begin(), r.order.end(), same)) r.order.push_back({output, false, false});
  }
  r.partition_keys = static_cast<int>(on.size());
  if (r.order.size() > vm::kMaxWindowKeys) {
    return Unsupported(
        "DISTINCT ON and ORDER BY of more than " + std::to_string(vm::kMaxWindowKeys) + " columns are not supported",
        position, "GROUP BY takes more.");
  }
  return r;
}

/// Whether DISTINCT must look at lengths: then it keeps the first row of each.
bool IsDistinctByLength(const Query& query) {
  const auto is_interval = [](const Output& o) { return o.expr->type.id == TypeId::kInterval; };
  return query.distinct && std::any_of(query.outputs.begin(), query.outputs.begin() + query.visible, is_interval);
}

Result<RowRanking> DistinctRows(int position, Query* query) {
  RowRanking r;
  r.order = query->order_by;
  for (int i = 0; i < query->visible; ++i) {
    if (IsConstant(*query->outputs[static_cast<size_t>(i)].expr)) continue;
    const int output = OrderedOutput(i, query);
    const auto same = [&](const OrderKey& k) { return k.output == output; };
    if (std::none_of(r.order.begin(), r.order.end(), same)) r.order.push_back({output, false, false});
  }
  r.partition_keys = static_cast<int>(r.order.size());
  query->distinct = false;
  if (r.order.size() > vm::kMaxWindowKeys) {
    return Unsupported(
        "DISTINCT of an INTERVAL among more than " + std::to_string(vm::kMaxWindowKeys) + " columns is not supported",
        position, "GROUP BY takes more.");
  }
  return r;
}

/// WITH TIES keeps the rows whose rank is one of LIMIT's.
RowRanking Ties(const Query& query) {
  RowRanking r;
  r.function = vm::WindowFunction::kRank;
  r.order = query.order_by;
  r.most = query.limit == 0 ? 0 : query.limit + std::min(query.offset, INT64_MAX - query.limit);
  return r;
}

/// LIMIT n % keeps the first rows, up to n percent of all.
RowRanking FirstPercent(const Query& query, double percent) {
  RowRanking r;
  r.order = query.order_by;
  r.most = query.offset;
  r.percent = percent;
  return r;
}

/// LIMIT and OFFSET that are known only when the query runs.
RowRanking Counted(QueryBlock* block) {
  Query& query = *block->query;
  const auto constant = [](int64_t n) { return MakeConstant(Value::Int(SqlType::Of(TypeId::kBigint), n), -1); };
  RowRanking r;
  r.order = query.order_by;
  r.skipped = std::move(block->offset);
  r.taken = std::move(block->limit);
  const int64_t offset = std::exchange(query.offset, 0), limit = std::exchange(query.limit, -1);
  if (r.skipped == nullptr && offset > 0) r.skipped = constant(offset);
  if (r.taken == nullptr && limit >= 0) r.taken = constant(limit);
  return r;
}

/// Leaves out rows of the split block by their number.
Status KeepRows(RowRanking ranking, int position, QueryBlock* block) {
  block->context.deepest += 2 * kWindowLevels;
  if (block->context.deepest > kMaxNesting) return NestedTooDeeply(position);
  KeepRanked(std::move(ranking), block->query.get());
  return {};
}

Status BindQualify(QueryBlock* block) {
  const ParseNode& list = *block->context.clauses.qualify->Get(Field::k_partitionClause);
  if (list.size() > 1) return SqlError("QUALIFY takes one condition", list.first()->next()->FirstLocation());
  ExpressionBinder binder(&block->context, &block->scope, Clause::kQualify);
  binder.SetOutputs(&block->query->outputs);
  TESSERA_ASSIGN(block->qualify, binder.BindBoolean(*list.first(), "argument of QUALIFY"));
  if (!block->windows.empty()) return {};
  return SqlError("QUALIFY without a window function", block->context.clauses.qualify->location(),
                  "At least one window function must stand in the select list or in QUALIFY; others filter by WHERE.");
}

/// Binds the clauses of a SELECT between its WITH and its ORDER BY.
Status BindSelect(const ParseNode& select, QueryBlock* block) {
  Query& query = *block->query;
  if (const ParseNode* from = select.Get(Field::k_fromClause)) TESSERA_TRY(FromBinder(block).Bind(*from));
  block->context.clauses.targets = select.Get(Field::k_targetList);
  if (const ParseNode* where = select.Get(Field::k_whereClause)) {
    TESSERA_ASSIGN(const bool columns, BindForEachColumn(*where, block));
    if (!columns) {
      ExpressionBinder binder(&block->context, &block->scope, Clause::kWhere);
      TESSERA_ASSIGN(ExprPtr condition, binder.BindBoolean(*where, "argument of WHERE"));
      SplitConjuncts(std::move(condition), &query.conjuncts);
    }
  }
  const ParseNode* group = select.Get(Field::k_groupClause);
  const ParseNode* having = select.Get(Field::k_havingClause);
  block->grouping.used = group != nullptr && HasGroupingSets(*group);
  block->context.has_group_by = group != nullptr && !block->grouping.used && !IsGroupByAll(*group, *block);
  if (const ParseNode* windows = select.Get(Field::k_windowClause)) {
    block->context.clauses.windows = windows;
    for (const ParseNode& w : *windows) {
      if (FindMark(block->context, Dialect::Mark::Kind::kQualify, w.location()) != nullptr)
        block->context.clauses.qualify = &w;
    }
  }
  TESSERA_TRY(BindTargets(select, block));
  query.distinct = select.Get(Field::k_distinctClause) != nullptr && DistinctOn(select) == nullptr;
  if (block->grouping.used) {
    TESSERA_TRY(BindGroupingSets(*group, select.Get(Field::k_groupDistinct) != nullptr, block));
  } else if (group != nullptr) {
    TESSERA_TRY(BindGroupBy(*group, block));
  }
  if (having != nullptr) TESSERA_TRY(BindHaving(*having, block));
  query.grouped = group != nullptr || having != nullptr;
  if (block->context.clauses.qualify != nullptr) TESSERA_TRY(BindQualify(block));
  return ExpressionBinder(&block->context, &block->scope, Clause::kSelect).CheckWindowClause();
}

/// Makes blocks of what is above the rows of a SELECT: its grouping, windows.
Status SplitBlock(QueryBlock* block) {
  Query& query = *block->query;
  query.grouped = query.grouped || !query.aggregates.empty();
  if (block->rows_of != nullptr && (query.grouped || !block->windows.empty())) {
    return Unsupported("a function that makes rows beside aggregates, GROUP BY or window functions is not supported",
                       block->rows_of->location(), "Put it into FROM, or the rest into a derived table.");
  }
  TESSERA_TRY(ReplaceGrouped(block));
  if (block->windows.empty()) return ExpandGroupingSets(block->grouping, &query);
  return SplitWindows(block);
}

}  // namespace

Status QueryBlock::BindClauses(const ParseNode& select) {
  TESSERA_TRY(RefuseUnsupported(select, context.sql));
  if (const ParseNode* with = select.Get(Field::k_withClause)) TESSERA_TRY(BindWith(*with, this));
  const char* const operation = SetOperationName(select);
  TESSERA_TRY(operation != nullptr ? BindSetOperation(select, this) : BindSelect(select, this));
  if (const ParseNode* sort = select.Get(Field::k_sortClause)) TESSERA_TRY(BindOrderBy(*sort, operation, this));
  TESSERA_TRY(BindLimit(select, this));
  RowRanking first_rows;
  const ParseNode* const on = DistinctOn(select);
  if (on != nullptr) {
    TESSERA_ASSIGN(first_rows, BindDistinctOn(*on, this));
  }
  const bool by_length = operation == nullptr && IsDistinctByLength(*query);
  if (by_length) {
    TESSERA_ASSIGN(first_rows, DistinctRows(select.FirstLocation(), query.get()));
  }
  if (operation == nullptr) TESSERA_TRY(SplitBlock(this));
  if (by_length) TESSERA_TRY(KeepRows(std::move(first_rows), select.FirstLocation(), this));
  if (on != nullptr) TESSERA_TRY(KeepRows(std::move(first_rows), on->first()->FirstLocation(), this));
  Query& rows = *query;
  if (limit_percent >= 0) {
    if (offset != nullptr)
      return Unsupported("OFFSET of a subquery beside a percentage is not supported", offset->position);
    return KeepRows(FirstPercent(rows, limit_percent), select.Get(Field::k_limitCount)->FirstLocation(), this);
  }
  const bool ties = select.Text(Field::k_limitOption) == "LIMIT_OPTION_WITH_TIES";
  if (limit != nullptr || offset != nullptr) {
    const ParseNode& count = *select.Get(limit != nullptr ? Field::k_limitCount : Field::k_limitOffset);
    if (ties) return Unsupported("WITH TIES with a subquery is not supported", count.FirstLocation());
    return KeepRows(Counted(this), count.FirstLocation(), this);
  }
  if (!ties || rows.limit < 0) return {};
  RowRanking first = Ties(rows);
  rows.limit = -1;
  return KeepRows(std::move(first), select.Get(Field::k_limitCount)->FirstLocation(), this);
}

Result<std::unique_ptr<Query>> BindQuery(const ParseNode& select, std::string_view sql, const Dialect& dialect,
                                         const Snapshot& snapshot, const std::vector<SqlType>* literal_types) {
  QueryBlock block(sql, &dialect, snapshot);
  block.literal_types = literal_types;
  TESSERA_TRY(block.BindClauses(select));
  return block.Take();
}

}  // namespace tessera
