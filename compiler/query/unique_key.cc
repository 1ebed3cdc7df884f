#include "compiler/query/unique_key.h"

#include <algorithm>
#include <utility>

#include "compiler/query/expr_builder.h"
#include "compiler/query/query_walk.h"

namespace tessera {
namespace {

/// Derived tables of more relations are not looked into.
constexpr size_t kMostRelations = 8;

/// What follows from known columns of a block: columns of inner relations, by its conditions, and rows of relations. The
/// row of a left-joined relation may be the one of NULLs.
class KnownRows {
 public:
  KnownRows(const Query& q, std::set<ColumnNumber> columns, const UniqueColumns& assumed, int levels)
      : q_(q), assumed_(assumed), levels_(levels), columns_(std::move(columns)) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const ExprPtr& c : q.conjuncts) changed |= Equate(*c);
      for (int r = 0; r < static_cast<int>(q.relations.size()); ++r) {
        if (GivesRows(Of(r).join) && !rows_.contains(r) && IsOneRow(r)) changed = rows_.insert(r).second;
      }
    }
  }

  bool AreAll() const {
    for (int r = 0; r < static_cast<int>(q_.relations.size()); ++r) {
      if (GivesRows(Of(r).join) && !rows_.contains(r)) return false;
    }
    return true;
  }

 private:
  const Relation& Of(int r) const { return q_.relations[static_cast<size_t>(r)]; }
  bool IsKnown(const Expr& e) const {
    bool known = true;
    ForEachColumn(e, [&](const Expr& c) {
      known &= c.column != kMarkColumn && (columns_.contains(NumberOf(c)) || rows_.contains(c.relation));
    });
    return known;
  }
  /// f(column, other side) for each bare column that `e` says is equal to something.
  template <class F>
  static void ForEachSide(const Expr& e, F f) {
    if (!IsFunction(e, Function::kEq) || IsVolatile(e)) return;
    for (size_t side = 0; side < 2; ++side) {
      const Expr& c = *e.args[side];
      if (c.kind == Expr::Kind::kColumn && c.column != kMarkColumn && !c.type.IsFloat()) f(c, *e.args[1 - side]);
    }
  }
  /// Notes a column of an inner relation that equals what is known.
  bool Equate(const Expr& e) {
    bool changed = false;
    ForEachSide(e, [&](const Expr& c, const Expr& other) {
      if (Of(c.relation).join == JoinKind::kInner && IsKnown(other)) changed |= columns_.insert(NumberOf(c)).second;
    });
    return changed;
  }
  bool IsOneRow(int r) const {
    const Relation& relation = Of(r);
    const auto is_known = [&](int column) { return columns_.contains({r, column}); };
    if (relation.join == JoinKind::kInner) return IsUnique(r, is_known);
    // NULL as a primary key is that of the row of NULLs.
    if (relation.table != nullptr && HasUniqueKey(relation, is_known, levels_)) return true;
    // Whether a row matches depends on all that its condition reads.
    std::set<int> equated;
    for (const ExprPtr& e : relation.on) {
      bool reads_known_rows = true;
      ForEachColumn(*e, [&](const Expr& c) { reads_known_rows &= c.relation == r || rows_.contains(c.relation); });
      if (!reads_known_rows || IsVolatile(*e)) return false;
      ForEachSide(*e, [&](const Expr& c, const Expr& other) {
        if (c.relation == r && IsKnown(other)) equated.insert(c.column);
      });
    }
    return IsUnique(r, [&](int column) { return equated.contains(column); });
  }
  template <class F>
  bool IsUnique(int r, F is_known) const {
    return (r == assumed_.relation && std::all_of(assumed_.columns.begin(), assumed_.columns.end(), is_known)) ||
           HasUniqueKey(Of(r), is_known, levels_);
  }

  const Query& q_;
  const UniqueColumns& assumed_;
  const int levels_;
  std::set<ColumnNumber> columns_;
  std::set<int> rows_;  ///< relations
};

}  // namespace

bool HasUniqueKey(const Relation& relation, const std::function<bool(int column)>& is_known, int levels) {
  if (relation.table != nullptr) {
    const TableSchema& schema = relation.table->schema;
    if (!schema.primary_key.empty() && std::ranges::all_of(schema.primary_key, is_known)) return true;
    // (Rows with a NULL in another key may be many.)
    const auto is_set = [&](int c) { return schema.columns[static_cast<size_t>(c)].not_null && is_known(c); };
    return std::ranges::any_of(schema.unique_keys,
                               [&](const UniqueKey& key) { return std::ranges::all_of(key.columns, is_set); });
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
  if (columns.empty() || levels == 0 || inner.relations.size() > kMostRelations) return false;
  return DetermineRows(inner, std::move(columns), {}, levels - 1);
}

bool DetermineRows(const Query& q, std::set<ColumnNumber> columns, const UniqueColumns& assumed, int levels) {
  return KnownRows(q, std::move(columns), assumed, levels).AreAll();
}

}  // namespace tessera
