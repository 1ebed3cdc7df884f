#include "compiler/unique_key.h"

#include <algorithm>
#include <utility>

#include "compiler/expr_builder.h"
#include "compiler/query_walk.h"

namespace tessera {
namespace {

/// What follows from known columns of a block: other columns, and rows of relations.
class KnownRows {
 public:
  KnownRows(const Query& q, std::set<ColumnNumber> columns, const UniqueColumns& assumed)
      : q_(q), assumed_(assumed), columns_(std::move(columns)) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const ExprPtr& c : q.conjuncts) changed |= Equate(*c, [&](int r) { return JoinOf(r) == JoinKind::kInner; });
      for (int r = 0; r < static_cast<int>(q.relations.size()); ++r) {
        if (JoinOf(r) == JoinKind::kLeft) {
          for (const ExprPtr& e : q.relations[static_cast<size_t>(r)].on)
            changed |= Equate(*e, [&](int of) { return of == r; });
        }
        if (GivesRows(JoinOf(r)) && !rows_.contains(r) && IsOneRow(r)) changed = rows_.insert(r).second;
      }
    }
  }

  bool AreAll() const {
    for (int r = 0; r < static_cast<int>(q_.relations.size()); ++r) {
      if (GivesRows(JoinOf(r)) && !rows_.contains(r)) return false;
    }
    return true;
  }

 private:
  JoinKind JoinOf(int r) const { return q_.relations[static_cast<size_t>(r)].join; }
  bool IsKnown(const Expr& e) const {
    bool known = true;
    ForEachColumn(e, [&](const Expr& c) {
      known &= c.column != kMarkColumn && (columns_.contains(NumberOf(c)) || rows_.contains(c.relation));
    });
    return known;
  }
  /// Notes a column of a relation of which `is_of` is true if `e` says that it equals what is known.
  template <class F>
  bool Equate(const Expr& e, F is_of) {
    if (!IsFunction(e, Function::kEq) || IsVolatile(e)) return false;
    bool changed = false;
    for (size_t side = 0; side < 2; ++side) {
      const Expr& c = *e.args[side];
      if (c.kind != Expr::Kind::kColumn || c.column == kMarkColumn || c.type.IsFloat() || !is_of(c.relation)) continue;
      if (IsKnown(*e.args[1 - side])) changed |= columns_.insert(NumberOf(c)).second;
    }
    return changed;
  }
  bool IsOneRow(int r) const {
    const auto is_known = [&](int column) { return columns_.contains({r, column}); };
    return (r == assumed_.relation && std::all_of(assumed_.columns.begin(), assumed_.columns.end(), is_known)) ||
           HasUniqueKey(q_.relations[static_cast<size_t>(r)], is_known);
  }

  const Query& q_;
  const UniqueColumns& assumed_;
  std::set<ColumnNumber> columns_;
  std::set<int> rows_;  ///< relations
};

}  // namespace

bool HasUniqueKey(const Relation& relation, const std::function<bool(int column)>& is_known) {
  if (relation.table != nullptr) {
    const std::vector<int>& key = relation.table->schema.primary_key;
    return !key.empty() && std::all_of(key.begin(), key.end(), is_known);
  }
  const Query& inner = *relation.query;
  if (!inner.union_all.empty() || inner.repeat >= 0 || inner.folds() || inner.is_working) return false;
  // The columns of the joins that are known, and keys of groups, which differ in them.
  std::set<ColumnNumber> columns;
  std::set<int> keys;
  for (int i = 0; i < inner.visible; ++i) {
    const Expr& output = *inner.outputs[static_cast<size_t>(i)].expr;
    if (!is_known(i)) continue;
    if (output.kind == Expr::Kind::kColumn && output.column != kMarkColumn && !output.type.IsFloat())
      columns.insert(NumberOf(output));
    if (output.kind == Expr::Kind::kGroup) keys.insert(output.index);
  }
  if (inner.grouped) return !keys.empty() && keys.size() == inner.group_by.size();
  return !columns.empty() && DetermineRows(inner, std::move(columns));
}

bool DetermineRows(const Query& q, std::set<ColumnNumber> columns, const UniqueColumns& assumed) {
  return KnownRows(q, std::move(columns), assumed).AreAll();
}

}  // namespace tessera
