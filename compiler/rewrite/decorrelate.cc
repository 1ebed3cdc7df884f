#include "compiler/rewrite/decorrelate.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "compiler/bind/ranked_rows.h"
#include "compiler/query/correlation.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

/// The value that represents NULL in a key of a join by IS NOT DISTINCT FROM.
ExprPtr AnyValue(const SqlType& type) {
  switch (type.storage()) {
    case StorageClass::kInt:
      return MakeConstant(Value::Int(type, 0), -1);
    case StorageClass::kFloat:
      return MakeConstant(Value::Float(type, 0), -1);
    case StorageClass::kWide:
      return MakeConstant(Value::Wide(type, 0), -1);
    case StorageClass::kText:
      break;
  }
  Value text = Value::Text("");
  text.type = type;
  return MakeConstant(std::move(text), -1);
}

/// Appends "a = b, or both are NULL" as equalities that can be keys of a join.
void AppendSame(ExprPtr a, ExprPtr b, std::vector<ExprPtr>* on) {
  if (a->nullable) {
    const auto filled = [](const Expr& x) {
      ExprPtr e = MakeFunction(Function::kCase, x.type, -1,
                               ExprList(MakeTest(Function::kIsNotNull, x.Clone()), x.Clone(), AnyValue(x.type)));
      e->nullable = false;
      return e;
    };
    ExprPtr null_a = MakeTest(Function::kIsNull, a->Clone()), null_b = MakeTest(Function::kIsNull, b->Clone());
    on->push_back(MakeFunction(Function::kEq, kBoolean, -1, ExprList(std::move(null_a), std::move(null_b))));
    a = filled(*a);
    b = filled(*b);
  }
  on->push_back(MakeFunction(Function::kEq, kBoolean, -1, ExprList(std::move(a), std::move(b))));
}

/// The columns of the block around it that `s` refers to, as columns of that block, each once. (Those of blocks further
/// out stay, until the block itself is unnested.)
std::vector<ExprPtr> OuterColumns(const Query& s) {
  std::vector<ExprPtr> columns;  // of the block
  ForEachOuter(s, 0, [&](const Expr& e, int depth) {
    if (e.index > depth + 1) return;
    ExprPtr c = MakeColumn(e.relation, e.column, e.type, e.nullable, e.position);
    const auto same = [&](const ExprPtr& other) { return other->SameAs(*c); };
    if (std::none_of(columns.begin(), columns.end(), same)) columns.push_back(std::move(c));
  });
  return columns;
}

/// The conditions that relate relation `r` of the block to some of `relations`, and those on it alone; none if no equality
/// is among them, or if it leaves as many rows as there are.
std::vector<const Expr*> RestrictionBy(const Query& block, size_t r, const std::vector<int>& relations) {
  const Relation& by = block.relations[r];
  uint64_t inside = 0;
  for (const int i : relations) inside |= uint64_t{1} << i;
  std::vector<const Expr*> on;
  bool has_key = false, restricts = by.join == JoinKind::kSemi || by.table == nullptr;
  const auto is_within = [&](const Expr& e) {
    return (RelationsOf(e) & ~inside & ~(uint64_t{1} << r)) == 0 && !HasOuter(e) && FindSubquery(e) == nullptr &&
           !IsVolatile(e);
  };
  for (const ExprPtr& e : by.join == JoinKind::kSemi ? by.on : block.conjuncts) {
    if (!is_within(*e)) {
      if (by.join == JoinKind::kSemi) return {};
      continue;
    }
    if ((RelationsOf(*e) >> r & 1) == 0 && by.join == JoinKind::kInner) continue;
    on.push_back(e.get());
    restricts = restricts || IsOver(*e, r);
    has_key = has_key || (IsFunction(*e, Function::kEq) && (RelationsOf(*e) & inside) != 0);
  }
  for (const int i : relations) {
    const Relation& other = block.relations[static_cast<size_t>(i)];
    restricts = restricts || (other.table != nullptr && by.table != nullptr && by.table->rows < other.table->rows);
  }
  return has_key && restricts ? on : std::vector<const Expr*>();
}

/// Other relations of the block leave fewer of the rows of `relations`, those of the domain: these are looked up in them, so
/// that the domain has no values that the block's joins leave out.
void AddRestrictions(const Query& block, const std::vector<int>& relations, Query* domain) {
  for (size_t r = 0; r < block.relations.size() && domain->relations.size() < 64; ++r) {
    const Relation& by = block.relations[r];
    const bool can = (by.join == JoinKind::kSemi || by.join == JoinKind::kInner) && !by.correlated;
    if (!can || std::ranges::count(relations, static_cast<int>(r)) > 0) continue;
    const std::vector<const Expr*> on = RestrictionBy(block, r, relations);
    if (on.empty()) continue;
    Relation semi = CopySource(by);
    semi.join = JoinKind::kSemi;
    for (const Expr* e : on) {
      semi.on.push_back(e->Clone());
      Substitute(&semi.on.back(), [&](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kColumn) return nullptr;
        ExprPtr c = x.Clone();
        const auto at = std::ranges::find(relations, x.relation);
        c->relation =
            static_cast<int>(x.relation == static_cast<int>(r) ? domain->relations.size() : at - relations.begin());
        return c;
      });
    }
    domain->relations.push_back(std::move(semi));
  }
}

/// All values that `columns` of the block take: their relations, filtered by the conditions on these relations alone, and
/// by joins of the block that leave some of their rows out. It stands in the place of the block; what it refers to outward
/// are columns of the blocks around that.
Result<std::shared_ptr<Query>> MakeDomain(const Query& block, const std::vector<ExprPtr>& columns, int position) {
  auto domain = std::make_shared<Query>();
  std::map<int, int> place;  // relation of the block -> of the domain
  // Their relations, and those that the conditions of their outer joins refer to.
  std::vector<int> relations;
  const auto add = [&](const Expr& e, auto& self) -> void {
    if (e.kind == Expr::Kind::kColumn && place.emplace(e.relation, static_cast<int>(relations.size())).second) {
      relations.push_back(e.relation);
    }
    for (const ExprPtr& a : e.args) self(*a, self);
  };
  for (const ExprPtr& c : columns) add(*c, add);
  for (size_t i = 0; i < relations.size(); ++i) {
    const Relation& from = block.relations[static_cast<size_t>(relations[i])];
    for (const ExprPtr& e : from.on) add(*e, add);
    if (from.correlated && RefersToNext(*from.query)) {
      return CannotDecorrelate("a column of a derived table that itself refers to tables beside it", position,
                               "Join with the table in the subquery itself.");
    }
    domain->relations.push_back(CopyRelation(from));
    if (from.correlated) domain->relations.back().query = CopyQuery(*from.query);
  }
  const auto renumber = [&](const Expr& x) -> ExprPtr {
    if (x.kind != Expr::Kind::kColumn) return nullptr;
    ExprPtr c = x.Clone();
    c->relation = place.at(x.relation);
    return c;
  };
  const auto inside = [&](const Expr& x, auto& self) -> bool {
    if (x.kind == Expr::Kind::kColumn) return place.contains(x.relation);
    if (x.kind == Expr::Kind::kOuter || x.kind == Expr::Kind::kSubquery) return false;
    return std::all_of(x.args.begin(), x.args.end(), [&](const ExprPtr& a) { return self(*a, self); });
  };
  for (Relation& r : domain->relations) {
    for (ExprPtr& e : r.on) Substitute(&e, renumber);
  }
  for (const ExprPtr& e : block.conjuncts) {
    if (!inside(*e, inside) || IsVolatile(*e)) continue;
    domain->conjuncts.push_back(e->Clone());
    Substitute(&domain->conjuncts.back(), renumber);
  }
  AddRestrictions(block, relations, domain.get());
  for (const ExprPtr& c : columns) domain->outputs.push_back({renumber(*c), "outer"});
  domain->visible = static_cast<int>(domain->outputs.size());
  domain->distinct = true;
  return domain;
}

/// Makes a subquery one over all values of the outer columns at once: the domain, whose columns take their place, is
/// joined in its block and in correlated derived tables inside.
class DomainPusher {
 public:
  DomainPusher(const std::vector<ExprPtr>& columns, std::shared_ptr<Query> domain, int position)
      : columns_(columns), domain_(std::move(domain)), position_(position) {}

  /// The outer columns are `level` blocks out of `s`. Returns the first of the outputs that have the domain's columns.
  /// `one_row`: a grouping without keys has a row for each of the values, as it has one without any row.
  Result<int> Push(Query* s, int level, bool one_row) {
    const auto n = static_cast<int>(columns_.size());
    TESSERA_ASSIGN(const ColumnPlace own, PushInside(s, level));
    const size_t before = s->group_by.size();
    const bool fills = one_row && s->grouped && before == 0;
    const auto below = [&](const Expr& x) -> ExprPtr { return IsOuter(x, level) ? own.Column(Number(x), x) : nullptr; };
    const auto above = [&](const Expr& x) -> ExprPtr {
      if (!IsOuter(x, level)) return nullptr;
      return MakeLeaf(Expr::Kind::kGroup, static_cast<int>(before + Number(x)), x.type, x.nullable);
    };
    for (Relation& r : s->relations) {
      for (ExprPtr& e : r.on) Substitute(&e, below);
    }
    for (ExprPtr& e : s->conjuncts) Substitute(&e, below);
    for (ExprPtr& e : s->group_by) Substitute(&e, below);
    for (Aggregate& a : s->aggregates) {
      if (a.argument != nullptr) Substitute(&a.argument, below);
      for (AggregateOrder& o : a.order) Substitute(&o.expr, below);
    }
    for (ExprPtr& e : s->having) Substitute(&e, above);
    for (Output& o : s->outputs) s->grouped ? Substitute(&o.expr, above) : Substitute(&o.expr, below);

    // The domain's columns come before outputs that are not visible, and windows stay the last.
    const int first = s->windows.empty() ? s->visible : static_cast<int>(s->outputs.size() - s->windows.size());
    for (int i = 0; i < n; ++i) {
      ExprPtr e = own.Column(static_cast<size_t>(i), *columns_[static_cast<size_t>(i)]);
      if (s->grouped) {
        ExprPtr key = std::move(e);
        e = MakeLeaf(Expr::Kind::kGroup, static_cast<int>(before) + i, key->type, key->nullable);
        s->group_by.push_back(std::move(key));
      }
      s->outputs.insert(s->outputs.begin() + first + i, Output{std::move(e), "outer"});
    }
    s->visible += n;
    const auto shift = [&](int* output) {
      if (*output >= first) *output += n;
    };
    for (OrderKey& k : s->order_by) shift(&k.output);
    shift(&s->repeat);
    if (!s->windows.empty()) {
      for (int i = n; i-- > 0;) s->order_by.insert(s->order_by.begin(), OrderKey{first + i, false, false});
      for (Window& w : s->windows) w.partition_keys += n;
      TESSERA_TRY(CheckKeys(s->order_by.size()));
    }
    for (const auto& more : s->union_all) TESSERA_TRY(Push(more.get(), level, one_row).status());
    if (fills) FillGroups(level, s);
    if (s->limit >= 0 || s->offset > 0) TESSERA_TRY(Bound(s, first));
    return first;
  }

 private:
  /// Where a block has the domain's columns.
  struct ColumnPlace {
    int relation = -1, column = 0;
    ExprPtr Column(size_t i, const Expr& like) const {
      return MakeColumn(relation, column + static_cast<int>(i), like.type, like.nullable, like.position);
    }
  };

  /// The domain as a derived table of a block that is `levels` levels inside the block of the columns.
  Relation Domain(int level) const {
    const bool correlated = RefersOutward(*domain_);
    std::shared_ptr<Query> query = domain_;
    if (correlated) {
      query = CopyQuery(*domain_);
      MoveInward(query.get(), level + 1);
    }
    Relation relation = DerivedTable(std::move(query));
    relation.alias = "domain";
    relation.correlated = correlated;
    return relation;
  }

  static bool IsOuter(const Expr& x, int level) { return x.kind == Expr::Kind::kOuter && x.index == level; }
  size_t Number(const Expr& x) const {
    size_t i = 0;
    while (columns_[i]->relation != x.relation || columns_[i]->column != x.column) ++i;
    return i;
  }
  Status CheckKeys(size_t keys) const {
    if (keys <= vm::kMaxKeys) return {};
    return CannotDecorrelate("a window or LIMIT over so many columns", position_, "");
  }

  /// Correlated derived tables of the block get the domain, and their columns of it are equal. One of them, or else the
  /// domain itself, has those of the block.
  Result<ColumnPlace> PushInside(Query* s, int level) {
    ColumnPlace own;
    std::vector<std::pair<size_t, int>> others;
    for (size_t r = 0; r < s->relations.size(); ++r) {
      Relation& relation = s->relations[r];
      if (!relation.correlated || !RefersTo(*relation.query, level)) continue;
      std::shared_ptr<Query> copy = CopyQuery(*relation.query);
      if (copy->limit < 0 && copy->offset == 0 && copy->windows.empty()) copy->order_by.clear();
      TESSERA_ASSIGN(const int first, Push(copy.get(), level + 1, true));
      const auto n = static_cast<int>(columns_.size());
      const auto shift = [&](Expr& x, auto& self) -> void {
        if (x.kind == Expr::Kind::kColumn && x.relation == static_cast<int>(r) && x.column >= first) x.column += n;
        for (const ExprPtr& a : x.args) self(*a, self);
      };
      ForEachRoot(*s, [&](ExprPtr& e) { shift(*e, shift); });
      for (int i = 0; i < n; ++i) {
        relation.column_names.insert(relation.column_names.begin() + first + i, "outer");
        relation.column_types.insert(relation.column_types.begin() + first + i, columns_[static_cast<size_t>(i)]->type);
      }
      relation.correlated = RefersOutward(*copy);
      relation.query = std::move(copy);
      if (relation.join == JoinKind::kInner && own.relation < 0) {
        own = {static_cast<int>(r), first};
      } else {
        others.emplace_back(r, first);
      }
    }
    if (own.relation < 0) {
      if (s->relations.size() >= 64)
        return Unsupported("a query of more than 64 tables and subqueries is not supported", position_);
      own.relation = static_cast<int>(s->relations.size());
      s->relations.push_back(Domain(level));
    }
    for (const auto& [r, first] : others) {
      Relation& relation = s->relations[r];
      const ColumnPlace there{static_cast<int>(r), first};
      std::vector<ExprPtr>& on = relation.join == JoinKind::kInner ? s->conjuncts : relation.on;
      for (size_t i = 0; i < columns_.size(); ++i)
        AppendSame(own.Column(i, *columns_[i]), there.Column(i, *columns_[i]), &on);
    }
    return own;
  }

  /// Whether the derived table of a block refers to what is `level` blocks out of that block.
  static bool RefersTo(const Query& derived, int level) {
    bool found = false;
    ForEachOuter(derived, 1, [&](const Expr& e, int depth) { found = found || e.index == depth + level; });
    return found;
  }

  /// A grouping whose keys are the domain's columns alone has no group for values
  /// without rows: they are brought back.
  void FillGroups(int level, Query* s) const {
    const size_t keys = columns_.size();
    auto filled = std::make_unique<Query>();
    filled->relations.push_back(Domain(level));
    filled->visible = s->visible;
    filled->order_by = std::move(s->order_by);
    filled->distinct = std::exchange(s->distinct, false);
    filled->limit = std::exchange(s->limit, -1);
    filled->offset = std::exchange(s->offset, 0);
    filled->union_all = std::exchange(s->union_all, {});
    const ColumnPlace own{0, 0};
    const auto column = [&](const Expr& x) -> ExprPtr {
      if (x.kind == Expr::Kind::kGroup) return own.Column(static_cast<size_t>(x.index), x);
      if (x.kind != Expr::Kind::kAggregate) return nullptr;
      ExprPtr value = MakeColumn(1, static_cast<int>(keys) + x.index, x.type, true, x.position);
      if (!IsCount(s->aggregates[static_cast<size_t>(x.index)])) return value;
      ExprPtr there = MakeTest(Function::kIsNotNull, value->Clone());
      ExprPtr count =
          MakeFunction(Function::kCase, x.type, x.position,
                       ExprList(std::move(there), std::move(value), MakeConstant(Value::Int(x.type, 0), x.position)));
      count->nullable = false;
      return count;
    };
    for (Output& o : s->outputs) Substitute(&o.expr, column);
    for (ExprPtr& e : s->having) Substitute(&e, column);
    filled->outputs = std::exchange(s->outputs, {});
    filled->conjuncts = std::exchange(s->having, {});
    for (size_t i = 0; i < keys; ++i) {
      const Expr& key = *s->group_by[i];
      s->outputs.push_back({MakeLeaf(Expr::Kind::kGroup, static_cast<int>(i), key.type, key.nullable), "key"});
    }
    for (size_t a = 0; a < s->aggregates.size(); ++a) {
      const Aggregate& x = s->aggregates[a];
      s->outputs.push_back({MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(a), x.type, !IsCount(x)), "aggregate"});
    }
    s->visible = static_cast<int>(s->outputs.size());
    // (What it refers to further out is one block further.)
    MoveInward(s, 1);
    auto grouped = std::make_shared<Query>(std::move(*s));
    const bool correlated = RefersOutward(*grouped);
    std::vector<ExprPtr> on;
    for (size_t i = 0; i < keys; ++i)
      AppendSame(own.Column(i, *columns_[i]), ColumnPlace{1, 0}.Column(i, *columns_[i]), &on);
    Relation groups = DerivedTable(std::move(grouped));
    groups.alias = "groups";
    groups.join = JoinKind::kLeft;
    groups.on = std::move(on);
    groups.unique = true;
    groups.correlated = correlated;
    filled->relations.push_back(std::move(groups));
    *s = std::move(*filled);
  }

  /// LIMIT and OFFSET count the rows of each of the domain's values.
  Status Bound(Query* s, int first) const {
    RowRanking r;
    r.partition_keys = static_cast<int>(columns_.size());
    for (int i = 0; i < r.partition_keys; ++i) r.order.push_back({first + i, false, false});
    r.order.insert(r.order.end(), s->order_by.begin(), s->order_by.end());
    TESSERA_TRY(CheckKeys(r.order.size()));
    const int64_t offset = std::exchange(s->offset, 0), limit = std::exchange(s->limit, -1);
    r.least = offset + 1;
    r.most = limit < 0 || limit > INT64_MAX - offset ? INT64_MAX : offset + limit;
    s->order_by.clear();
    KeepRanked(std::move(r), s);
    return {};
  }

  const std::vector<ExprPtr>& columns_;
  const std::shared_ptr<Query> domain_;
  const int position_;
};

}  // namespace

Status CannotDecorrelate(const std::string& what, int position, const std::string& hint) {
  return Unsupported("a correlated subquery with " + what + " cannot be decorrelated", position, hint);
}

void MoveOutward(ExprPtr* e) {
  Expr& x = **e;
  if (x.kind == Expr::Kind::kOuter) {
    // A column that is still an outer one, in a condition of ON, is replaced when the block itself is unnested.
    if (--x.index == 0) x.kind = Expr::Kind::kColumn;
  }
  for (ExprPtr& a : x.args) MoveOutward(&a);
}

Result<IndependentQuery> Decorrelate(const Query& block, std::unique_ptr<Query> s, int position, bool own_outputs) {
  const bool bounded = s->limit >= 0 || s->offset > 0;
  if (!bounded) {
    s->outputs.resize(static_cast<size_t>(s->visible));
    s->order_by.clear();
  }
  IndependentQuery out;
  std::vector<ExprPtr> local, correlated;
  for (ExprPtr& e : s->conjuncts) (HasOuter(*e) ? correlated : local).push_back(std::move(e));
  s->conjuncts = std::move(local);
  const auto outward = [](const Output& o) { return HasOuter(*o.expr); };
  const bool outputs_outward = std::any_of(s->outputs.begin(), s->outputs.end(), outward);
  std::vector<Output> outputs = std::move(s->outputs);
  s->outputs.clear();
  const bool simple = !bounded && !s->grouped && !s->distinct && s->union_all.empty() && !RefersOutward(*s) &&
                      !(own_outputs && outputs_outward);
  if (simple) {
    // Conditions with outer columns move to the join; the columns that they need become outputs.
    const auto column = [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kColumn) return nullptr;
      size_t i = 0;
      while (i < s->outputs.size() && !s->outputs[i].expr->SameAs(x)) ++i;
      if (i == s->outputs.size()) s->outputs.push_back({x.Clone(), "c" + std::to_string(i)});
      ExprPtr y = SubqueryOutput(static_cast<int>(i), x.type, x.position);
      y->nullable = x.nullable;
      return y;
    };
    for (Output& o : outputs) {
      ExprPtr e = std::move(o.expr);
      if (!HasOuter(*e)) {
        out.outputs.push_back(SubqueryOutput(static_cast<int>(s->outputs.size()), e->type, position));
        out.outputs.back()->nullable = e->nullable;
        s->outputs.push_back({std::move(e), o.name});
        continue;
      }
      Substitute(&e, column);
      MoveOutward(&e);
      out.outputs.push_back(std::move(e));
    }
    for (ExprPtr& e : correlated) {
      Substitute(&e, column);
      MoveOutward(&e);
      out.on.push_back(std::move(e));
    }
    if (s->outputs.empty()) s->outputs.push_back(OneOutput());
    s->visible = static_cast<int>(s->outputs.size());
  } else {
    for (ExprPtr& e : correlated) s->conjuncts.push_back(std::move(e));
    s->outputs = std::move(outputs);
    for (int i = 0; i < s->visible; ++i)
      out.outputs.push_back(SubqueryOutput(i, s->outputs[static_cast<size_t>(i)].expr->type, position));
    TESSERA_TRY(AddDomain(block, s.get(), position, &out.on, true));
  }
  out.query = std::move(s);
  return out;
}

Output OneOutput() { return {MakeConstant(Value::Int(SqlType::Of(TypeId::kInteger), 1), -1), "one"}; }

Status AddDomain(const Query& block, Query* s, int position, std::vector<ExprPtr>* on, bool one_row) {
  const std::vector<ExprPtr> columns = OuterColumns(*s);
  if (columns.empty()) {
    if (s->outputs.empty()) {
      s->outputs.push_back(OneOutput());
      s->visible = 1;
    }
    return Status::Ok();
  }
  TESSERA_ASSIGN(std::shared_ptr<Query> domain, MakeDomain(block, columns, position));
  TESSERA_ASSIGN(const int first, DomainPusher(columns, std::move(domain), position).Push(s, 1, one_row));
  for (size_t i = 0; i < columns.size(); ++i) {
    ExprPtr there = SubqueryOutput(first + static_cast<int>(i), columns[i]->type, position);
    there->nullable = columns[i]->nullable;
    AppendSame(columns[i]->Clone(), std::move(there), on);
  }
  return Status::Ok();
}

}  // namespace tessera
