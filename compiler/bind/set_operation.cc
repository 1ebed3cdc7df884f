#include "compiler/bind/set_operation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/inner_block.h"
#include "compiler/bind/select_list.h"
#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/type_rules.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

const SqlType kInteger = SqlType::Of(TypeId::kInteger), kBigint = SqlType::Of(TypeId::kBigint);

bool IsAll(const ParseNode& operation) { return operation.Get(Field::k_all) != nullptr; }

/// Whether a set operation or VALUES has no clause of its own after or before it, so that its arms may be arms of what
/// is around it.
bool IsBare(const ParseNode& select) {
  for (const Field f : {Field::k_withClause, Field::k_sortClause, Field::k_limitCount, Field::k_limitOffset}) {
    if (select.Get(f) != nullptr) return false;
  }
  return true;
}

/// Whether the arms of `left`, the left arm of `operation`, may be arms of `operation` itself: A UNION B UNION C has
/// three arms, and A EXCEPT B EXCEPT C are the rows of A that are in neither B nor C.
bool ContinuesIn(const ParseNode& left, const ParseNode& operation) {
  const std::string_view op = operation.Text(Field::k_op);
  if (left.Text(Field::k_op) != op || op == "SETOP_INTERSECT" || !IsBare(left)) return false;
  return IsAll(left) == IsAll(operation) || (op == "SETOP_UNION" && IsAll(left));
}

/// An arm that stands for BY NAME before the next one.
bool IsByName(const ParseNode& arm) {
  const ParseNode* const from = arm.Get(Field::k_fromClause);
  return from != nullptr && from->first()->Is(Tag::kRangeVar) && from->first()->Text(Field::k_relname) == kByName;
}

struct Arm {
  std::unique_ptr<Query> query;
  bool is_first = false;  ///< of INTERSECT and EXCEPT: rows to choose from, not to compare with
  int position = -1;
};

/// The query block of a row of VALUES, a list of expressions.
Result<std::unique_ptr<Query>> BindRowBlock(const ParseNode& items, BindContext* outer) {
  QueryBlock block(*outer, nullptr);
  TESSERA_TRY(BindRow(items, &block));
  outer->deepest = std::max(outer->deepest, block.context.deepest);
  return block.Take();
}

class SetOperationBinder {
 public:
  SetOperationBinder(const ParseNode& select, QueryBlock* block)
      : select_(select), block_(*block), name_(SetOperationName(select)), op_(select.Text(Field::k_op)) {}

  Status Bind() {
    TESSERA_TRY(BindArms());
    TESSERA_TRY(CheckWidths());
    for (Arm& a : arms_) Trim(a.query.get());
    for (size_t c = 0; c < width_; ++c) TESSERA_TRY(FindType(c));
    for (Arm& a : arms_) TESSERA_TRY(GiveTypes(&a));
    if (IsChoice()) AddArmColumns();
    Relation rows = Append();
    if (!IsChoice()) {
      Read(std::move(rows), op_ == "SETOP_UNION" && !IsAll(select_), block_.query.get());
    } else if (!IsAll(select_)) {
      Choose(std::move(rows), block_.query.get());
    } else {
      auto groups = std::make_shared<Query>();
      Repeat(std::move(rows), groups.get());
      Read(Inside(std::move(groups)), false, block_.query.get());
    }
    return {};
  }

 private:
  /// Whether it chooses among the rows of the first arm.
  bool IsChoice() const { return op_ == "SETOP_INTERSECT" || op_ == "SETOP_EXCEPT"; }

  // ---- Arms

  Status BindArms() {
    if (op_.empty() || op_ == "SETOP_NONE") return BindRows(select_, false);
    // A chain of operations nests to the left, as deep as it is long.
    std::vector<const ParseNode*> right;
    const ParseNode* left = &select_;
    do {
      right.push_back(left->Get(Field::k_rarg));
      left = left->Get(Field::k_larg);
    } while (ContinuesIn(*left, select_));
    TESSERA_TRY(BindArm(*left, true));
    for (size_t i = right.size(); i-- > 0;) {
      if (!IsByName(*right[i])) {
        TESSERA_TRY(BindArm(*right[i], false));
        continue;
      }
      if (i == 0) return Unsupported("UNION BY NAME in a recursive query is not supported", arms_[0].position);
      --i;
      if (arms_.size() > 1) TESSERA_TRY(CheckWidths());
      TESSERA_TRY(BindArm(*right[i], false));
      TESSERA_TRY(MatchNames());
    }
    return {};
  }

  /// BY NAME: the columns of the last arm take the places of those before that have their names, and others follow. Where
  /// an arm has no such column it is NULL.
  Status MatchNames() {
    const auto names_of = [](const Query& q) {
      std::vector<std::string> names;
      for (int i = 0; i < q.visible; ++i) names.push_back(q.outputs[static_cast<size_t>(i)].name);
      return names;
    };
    const auto place = [](const std::vector<std::string>& names, const std::string& name) {
      return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    std::vector<std::string> names = names_of(*arms_[0].query);
    const std::vector<std::string> last = names_of(*arms_.back().query);
    for (const std::vector<std::string>* list : {&std::as_const(names), &last}) {
      for (size_t i = 0; i < list->size(); ++i) {
        if (place(*list, (*list)[i]) == i) continue;
        return SqlError("UNION BY NAME: column \"" + (*list)[i] + "\" is there twice in one arm", arms_.back().position,
                        "Give one of them another name.");
      }
    }
    const size_t before = names.size();
    for (const std::string& name : last) {
      if (place(names, name) == names.size()) names.push_back(name);
    }
    for (Arm& a : arms_) {
      const bool is_last = &a == &arms_.back();
      if (!is_last && names.size() == before) continue;
      Rearrange(
          names,
          is_last ? last : std::vector<std::string>(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(before)),
          &a);
    }
    return {};
  }

  /// Gives the arm, whose columns are called `from`, columns `names`.
  static void Rearrange(const std::vector<std::string>& names, const std::vector<std::string>& from, Arm* a) {
    if (HasBounds(*a->query)) {
      // LIMIT chooses among the rows as they are.
      for (Output& o : a->query->outputs) {
        if (o.expr->type.id == TypeId::kNull) o.expr = MakeTyped(std::move(o.expr));
      }
      std::shared_ptr<Query> inner = std::move(a->query);
      MoveInward(inner.get(), 1);
      const bool correlated = RefersOutward(*inner);
      a->query = SelectAll(std::move(inner));
      a->query->relations[0].correlated = correlated;
    }
    Query& q = *a->query;
    Trim(&q);
    std::vector<Output> outputs;
    for (const std::string& name : names) {
      const auto at = static_cast<size_t>(std::find(from.begin(), from.end(), name) - from.begin());
      if (at < from.size()) {
        outputs.push_back(std::move(q.outputs[at]));
      } else {
        outputs.push_back({MakeNull(SqlType::Of(TypeId::kNull), -1), name});
      }
    }
    q.outputs = std::move(outputs);
    q.visible = static_cast<int>(q.outputs.size());
  }

  /// A literal without a type as a text.
  static ExprPtr MakeTyped(ExprPtr literal) {
    const int position = literal->position;
    if (literal->constant.null) return MakeNull(SqlType::Text(), position);
    return MakeConstant(Value::Text(literal->constant.text), position);
  }

  Status BindArm(const ParseNode& select, bool is_first) {
    if (select.Get(Field::k_valuesLists) != nullptr && IsBare(select)) return BindRows(select, is_first);
    const int position = select.FirstLocation();
    if (block_.context.nesting > kMaxNesting) return NestedTooDeeply(position);
    TESSERA_ASSIGN(std::unique_ptr<Query> query, BindArmBlock(select, &block_.context));
    arms_.push_back({std::move(query), is_first, position});
    return {};
  }

  /// The rows of VALUES, each an arm.
  Status BindRows(const ParseNode& select, bool is_first) {
    if (block_.context.nesting > kMaxNesting) return NestedTooDeeply(select.FirstLocation());
    const size_t before = arms_.size();
    for (const ParseNode& list : *select.Get(Field::k_valuesLists)) {
      const ParseNode& items = list.Is(Tag::kList) ? *list.Get(Field::k_items) : list;
      TESSERA_ASSIGN(std::unique_ptr<Query> row, BindRowBlock(items, &block_.context));
      if (arms_.size() > before && row->visible != arms_.back().query->visible)
        return SqlError(ErrorKind::kSyntax, "VALUES lists must all be the same length", items.FirstLocation());
      arms_.push_back({std::move(row), is_first, items.FirstLocation()});
    }
    return {};
  }

  Status CheckWidths() {
    width_ = static_cast<size_t>(arms_[0].query->visible);
    for (const Arm& a : arms_) {
      const auto width = static_cast<size_t>(a.query->visible);
      if (width == width_) continue;
      // The first column without a counterpart, or the arm.
      const int at = width > width_ ? a.query->outputs[width_].expr->position : a.position;
      return SqlError(ErrorKind::kSyntax,
                      "each arm of " + std::string(name_) + " must have the same number of columns: " +
                          std::to_string(width_) + " and " + std::to_string(width),
                      at >= 0 ? at : a.position);
    }
    return {};
  }

  /// The order of an arm's rows means nothing, unless LIMIT chooses by it.
  static void Trim(Query* arm) {
    if (HasBounds(*arm)) return;
    arm->order_by.clear();
    arm->outputs.resize(static_cast<size_t>(arm->visible));
  }
  static bool HasBounds(const Query& q) { return q.limit >= 0 || q.offset > 0; }

  // ---- Types

  /// The type of a column: the one that all arms' types become as branches of a CASE.
  Status FindType(size_t c) {
    SqlType common;
    bool same = true;
    for (const Arm& a : arms_) {
      const Expr& e = *a.query->outputs[c].expr;
      const std::optional<SqlType> both = UnifyTypes(common, e.type);
      if (!both) {
        return SqlError(
            ErrorKind::kDatatypeMismatch,
            std::string(name_) + " types " + common.ToString() + " and " + e.type.ToString() + " cannot be matched",
            e.position >= 0 ? e.position : a.position, "Cast one of them.");
      }
      common = *both;
      same = same && e.type == arms_[0].query->outputs[c].expr->type;
    }
    if (common.id == TypeId::kNull) {
      common = LiteralType(block_, c);
    } else if (common.id == TypeId::kText && !same) {
      common.length = 0;
    }
    types_.push_back(common);
    return {};
  }

  Status GiveTypes(Arm* arm) {
    bool same = true;
    ExpressionBinder binder(&block_.context, nullptr, Clause::kSelect);
    for (size_t c = 0; c < width_; ++c) {
      ExprPtr& e = arm->query->outputs[c].expr;
      TESSERA_ASSIGN(e, binder.Resolve(std::move(e), types_[c]));
      same = same && e->type == types_[c];
    }
    // LIMIT chooses among the rows as they are, and casts may make values equal that differ for DISTINCT.
    if (HasBounds(*arm->query) || (arm->query->distinct && !same)) {
      auto outside = std::make_unique<Query>();
      Read(Inside(std::move(arm->query)), false, outside.get());
      arm->query = std::move(outside);
    }
    for (size_t c = 0; c < width_; ++c) {
      ExprPtr& e = arm->query->outputs[c].expr;
      if (e->type == types_[c]) continue;
      TESSERA_ASSIGN(e, binder.Coerce(std::move(e), types_[c], CastContext::kExplicit));
    }
    return {};
  }

  // ---- The blocks

  /// The column is 0 in rows to choose from and 1 in rows to compare with, so that its sum counts the latter.
  void AddArmColumns() {
    for (Arm& a : arms_) {
      a.query->outputs.push_back({MakeConstant(Value::Int(kInteger, a.is_first ? 0 : 1), -1), "arm"});
      ++a.query->visible;
    }
  }

  /// The first arm, with all others after it.
  Relation Append() {
    std::shared_ptr<Query> rows = std::move(arms_[0].query);
    for (size_t i = 1; i < arms_.size(); ++i) rows->union_all.push_back(std::move(arms_[i].query));
    Relation relation = DerivedTable(std::move(rows));
    // An arm's own type may be a narrower one that the machine holds in the same way: Coerce makes no cast of it.
    std::copy(types_.begin(), types_.end(), relation.column_types.begin());
    relation.correlated = RefersOutward(*relation.query);
    return relation;
  }

  /// A relation over a query that stands one block further in than it was bound.
  static Relation Inside(std::shared_ptr<Query> query) {
    MoveInward(query.get(), 1);
    const bool correlated = RefersOutward(*query);
    Relation relation = DerivedTable(std::move(query));
    relation.correlated = correlated;
    return relation;
  }

  /// Makes `reader` the block that reads the first `width_` columns of `rows`; each row once, if `distinct`.
  void Read(Relation rows, bool distinct, Query* reader) const {
    rows.alias = name_;
    std::transform(rows.alias.begin(), rows.alias.end(), rows.alias.begin(),
                   [](char c) { return static_cast<char>(c - 'A' + 'a'); });
    reader->relations.push_back(std::move(rows));
    const Relation& r = reader->relations.back();
    reader->grouped = distinct;
    for (size_t i = 0; i < width_; ++i) {
      const auto column = static_cast<int>(i);
      const int position = r.query->outputs[i].expr->position;
      ExprPtr e = MakeColumn(0, column, r.column_types[i], ExpressionBinder::IsNullable(r, column), position);
      if (distinct && e->type.id == TypeId::kInterval) {
        // Intervals of one length are one row, which shows one of them.
        Aggregate least;
        least.function = AggregateFunction::kMin;
        least.type = e->type;
        least.argument = e->Clone();
        ExprPtr one =
            MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(reader->aggregates.size()), e->type, e->nullable);
        one->position = position;
        reader->aggregates.push_back(std::move(least));
        reader->group_by.push_back(OrderedForm(std::exchange(e, std::move(one))));
      } else if (distinct) {
        ExprPtr key = MakeLeaf(Expr::Kind::kGroup, column, e->type, e->nullable);
        key->position = position;
        reader->group_by.push_back(std::exchange(e, std::move(key)));
      }
      reader->outputs.push_back({std::move(e), r.column_names[i]});
    }
    reader->visible = static_cast<int>(width_);
  }

  ExprPtr AggregateOfArm(AggregateFunction function, const SqlType& type, Query* groups) const {
    Aggregate a;
    a.function = function;
    a.type = type;
    if (function != AggregateFunction::kCountStar)
      a.argument = MakeColumn(0, static_cast<int>(width_), kInteger, false, -1);
    groups->aggregates.push_back(std::move(a));
    return MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(groups->aggregates.size()) - 1, type, true);
  }

  static ExprPtr Test(Function f, ExprPtr x, int64_t than) {
    const SqlType type = x->type;
    return MakeFunction(f, SqlType::Of(TypeId::kBoolean), -1,
                        ExprList(std::move(x), MakeConstant(Value::Int(type, than), -1)));
  }

  /// INTERSECT and EXCEPT: each row once, if both arms have it, or if only the first has.
  void Choose(Relation rows, Query* groups) const {
    Read(std::move(rows), true, groups);
    const bool intersect = op_ == "SETOP_INTERSECT";
    groups->having.push_back(
        Test(Function::kEq, AggregateOfArm(AggregateFunction::kMax, kInteger, groups), intersect ? 1 : 0));
    if (!intersect) return;
    groups->having.push_back(Test(Function::kEq, AggregateOfArm(AggregateFunction::kMin, kInteger, groups), 0));
  }

  /// INTERSECT ALL and EXCEPT ALL: of n rows in the first arm and m in the others, the lesser of n and m, or n - m.
  void Repeat(Relation rows, Query* groups) const {
    Read(std::move(rows), true, groups);
    const ExprPtr all = AggregateOfArm(AggregateFunction::kCountStar, kBigint, groups);
    const ExprPtr other = AggregateOfArm(AggregateFunction::kSum, kBigint, groups);
    const auto first = [&] {
      return MakeFunction(Function::kSub, kBigint, -1, ExprList(all->Clone(), other->Clone()));
    };
    ExprPtr times;  // below 1 for rows that do not stand in the result
    if (op_ == "SETOP_INTERSECT") {
      ExprPtr less = MakeFunction(Function::kLt, SqlType::Of(TypeId::kBoolean), -1, ExprList(first(), other->Clone()));
      times = MakeFunction(Function::kCase, kBigint, -1, ExprList(std::move(less), first(), other->Clone()));
    } else {
      times = MakeFunction(Function::kSub, kBigint, -1, ExprList(first(), other->Clone()));
    }
    groups->repeat = static_cast<int>(groups->outputs.size());
    groups->outputs.push_back({std::move(times), "times"});
  }

  const ParseNode& select_;
  QueryBlock& block_;
  const char* const name_;
  const std::string_view op_;
  std::vector<Arm> arms_;
  size_t width_ = 0;            ///< columns of the result
  std::vector<SqlType> types_;  ///< of these
};

}  // namespace

const char* SetOperationName(const ParseNode& select) {
  const std::string_view op = select.Text(Field::k_op);
  if (op == "SETOP_UNION") return "UNION";
  if (op == "SETOP_INTERSECT") return "INTERSECT";
  if (op == "SETOP_EXCEPT") return "EXCEPT";
  return select.Get(Field::k_valuesLists) != nullptr ? "VALUES" : nullptr;
}

Status BindSetOperation(const ParseNode& select, QueryBlock* block) { return SetOperationBinder(select, block).Bind(); }

}  // namespace tessera
