// x IN (list) where the list is long and x is no stored column: a subquery over the rows of the list, which is joined by
// hash. As a test it would compare each row with each element: 32,000 of them take some 20 us a row.
#include <algorithm>
#include <utility>

#include "compiler/bind/expression_binder.h"
#include "compiler/query/correlation.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

bool IsUntyped(const Expr& e) { return e.type.id == TypeId::kNull; }

/// With fewer elements it takes as long to compare with all of them.
constexpr size_t kLongList = 256;
/// Lists of a block that are joined: a block has 64 tables and subqueries at most.
constexpr int kMostJoined = 16;

/// Whether a condition on the column becomes a test of a stored table's codes, where that is merged into the block.
bool IsStored(const Relation& relation, int column) {
  if (relation.table != nullptr) return true;
  const Query& q = *relation.query;
  if (q.grouped || q.distinct || q.limit >= 0 || q.offset > 0 || !q.union_all.empty() || q.repeat >= 0 || q.folds() ||
      !q.windows.empty() || q.is_working || q.working != nullptr)
    return false;
  const Expr& of = *q.outputs[static_cast<size_t>(column)].expr;
  return of.kind == Expr::Kind::kColumn && of.column >= 0 &&
         IsStored(q.relations[static_cast<size_t>(of.relation)], of.column);
}

/// Whether hashes find its equals: intervals are equal by their lengths.
bool HasHash(const SqlType& type) { return type.id != TypeId::kInterval && type.id != TypeId::kNull; }

/// A query of rows of constants. `types`: of its columns.
std::shared_ptr<Query> QueryOfRows(std::vector<std::vector<ExprPtr>> rows, const std::vector<SqlType>& types,
                                   int position) {
  std::vector<bool> nullable(types.size());
  std::shared_ptr<Query> all;
  for (std::vector<ExprPtr>& row : rows) {
    auto one = std::make_unique<Query>();
    for (size_t c = 0; c < row.size(); ++c) {
      nullable[c] = nullable[c] || row[c]->constant.null;
      one->outputs.push_back({std::move(row[c]), "element"});
    }
    one->visible = static_cast<int>(types.size());
    if (all == nullptr) {
      all = std::move(one);
    } else {
      all->union_all.push_back(std::move(one));
    }
  }
  auto reader = std::make_shared<Query>();
  Relation list = DerivedTable(std::move(all));
  list.alias = "list";
  list.column_types = types;
  for (size_t c = 0; c < types.size(); ++c)
    reader->outputs.push_back({MakeColumn(0, static_cast<int>(c), types[c], nullable[c], position), "element"});
  reader->visible = static_cast<int>(types.size());
  reader->relations.push_back(std::move(list));
  return reader;
}

}  // namespace

bool ExpressionBinder::IsJoinedList(const std::vector<const Expr*>& tested, size_t elements) const {
  const bool clause = clause_ == Clause::kWhere || clause_ == Clause::kHaving || clause_ == Clause::kSelect;
  // (Where another branch may be taken for a row, the join would test it all the same.)
  if (elements <= kLongList || !clause || in_aggregate_ > 0 || in_window_ || may_skip_ > in_and_) return false;
  if (context_->snapshot == nullptr || (context_->grouping != nullptr && context_->grouping->used)) return false;
  if (context_->joined_lists >= kMostJoined) return false;
  if (tested.size() == 1 && tested[0]->kind == Expr::Kind::kColumn && tested[0]->relation >= 0 &&
      IsStored((*context_->relations)[static_cast<size_t>(tested[0]->relation)], tested[0]->column))
    return false;
  return std::ranges::all_of(tested, [](const Expr* x) {
    return HasHash(x->type) && !IsConstant(*x) && !HasOuter(*x) && !IsVolatile(*x) && FindSubquery(*x) == nullptr;
  });
}

Result<ExprPtr> ExpressionBinder::InRows(std::vector<ExprPtr> tested, std::vector<std::vector<ExprPtr>> rows,
                                         int position) {
  ++context_->joined_lists;
  std::vector<SqlType> types;
  for (const ExprPtr& x : tested) {
    types.push_back(x->type);
    if (x->type.id == TypeId::kText) types.back().length = 0;
  }
  std::shared_ptr<Query> query = QueryOfRows(std::move(rows), types, position);
  std::vector<ExprPtr> args, compared;
  if (tested.size() == 1) {
    TESSERA_ASSIGN(ExprPtr x, Copy(*tested[0]));
    args.push_back(std::move(x));
  }
  for (size_t c = 0; c < tested.size(); ++c) {
    ExprPtr y = SubqueryOutput(static_cast<int>(c), types[c], position);
    y->nullable = query->outputs[c].expr->nullable;
    TESSERA_ASSIGN(ExprPtr equal, Comparison(Function::kEq, std::move(tested[c]), std::move(y), position));
    compared.push_back(std::move(equal));
  }
  ExprPtr condition = compared.size() == 1 ? std::move(compared[0])
                                           : MakeFunction(Function::kAnd, kBoolean, position, std::move(compared));
  const bool nullable = condition->nullable;
  args.insert(args.begin(), std::move(condition));
  return MakeSubquery(Subquery::Kind::kAny, std::move(query), kBoolean, nullable, position, std::move(args));
}

Result<bool> ExpressionBinder::AlignRows(const std::vector<ExprPtr>& tested, std::vector<std::vector<ExprPtr>>* rows) {
  for (std::vector<ExprPtr>& row : *rows) {
    if (row.size() != tested.size()) return false;
    for (size_t c = 0; c < row.size(); ++c) {
      const SqlType& type = tested[c]->type;
      ExprPtr& e = row[c];
      // (A literal may have more digits than a DECIMAL.)
      if (!IsConstant(*e) || IsUntyped(*tested[c]) || (IsUntyped(*e) && type.id == TypeId::kDecimal)) return false;
      TESSERA_ASSIGN(e, Resolve(std::move(e), type.id == TypeId::kText ? SqlType::Text() : type));
      if (e->constant.null) {
        e = MakeNull(type, e->position);
        continue;
      }
      const AlignedConstant aligned = AlignConstant(Function::kEq, type, e->constant);
      const bool exact = aligned.kind == AlignedConstant::Kind::kExact && aligned.value.type.scale == type.scale &&
                         aligned.value.type.storage() == type.storage();
      if (!exact) return false;
      e = MakeConstant(aligned.value, e->position);
    }
  }
  return true;
}

}  // namespace tessera
