#include "compiler/bind/merge_binder.h"

#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/query_block.h"
#include "compiler/bind/row_rules.h"
#include "compiler/bind/set_list.h"
#include "compiler/bind/with_clause.h"
#include "compiler/query/conditions.h"
#include "compiler/query/correlation.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/fold.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/random_calls.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/schema_check.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);

/// What a WHEN is about: rows of both, of the source alone, of the target alone.
enum class When : uint8_t { kMatched, kNotMatched, kBySource };

bool IsMark(const ParseNode& node) {
  const ParseNode* const text = node.Is(Tag::kA_Const) ? node.Get(Field::k_sval) : nullptr;
  return text != nullptr && text->Text(Field::k_sval) == kBySource;
}

When WhenOf(const ParseNode& when) {
  if (when.Number(Field::k_matched) == 0) return When::kNotMatched;
  const ParseNode* const condition = when.Get(Field::k_condition);
  const bool marked =
      condition != nullptr &&
      (IsMark(*condition) || (condition->Is(Tag::kBoolExpr) && IsMark(*condition->Get(Field::k_args)->first())));
  return marked ? When::kBySource : When::kMatched;
}

/// The parts of the condition, of which one must be true; none: there is no condition.
std::vector<const ParseNode*> ConditionOf(const ParseNode& when) {
  const ParseNode* const condition = when.Get(Field::k_condition);
  if (condition == nullptr || IsMark(*condition)) return {};
  if (WhenOf(when) != When::kBySource) return {condition};
  std::vector<const ParseNode*> parts;
  for (const ParseNode& part : *condition->Get(Field::k_args)) {
    if (!parts.empty() || !IsMark(part)) parts.push_back(&part);
  }
  return parts;
}

class MergeBinder {
 public:
  MergeBinder(const Dialect& dialect, QueryBlock* block, Statement* out)
      : dialect_(dialect), block_(*block), out_(*out), table_(*out->target) {
    for (Branches* branches : {&joined_, &left_}) branches->values.resize(table_.schema.columns.size());
  }

  /// `source`: the names that are there without a row of the target; `target`: those without a row of the source. `left`:
  /// the query of the rows of the target that have none; nullptr: there is no WHEN for them.
  Status Bind(const ParseNode& clauses, const NameScope& source, const NameScope& target, Query* left) {
    bool ended[3] = {false, false, false};
    for (const ParseNode& when : clauses) {
      const When kind = WhenOf(when);
      const NameScope& scope = kind == When::kMatched ? block_.scope : kind == When::kNotMatched ? source : target;
      if (ended[static_cast<size_t>(kind)]) {
        return SqlError(ErrorKind::kSyntax, "unreachable WHEN clause specified after unconditional WHEN clause",
                        PositionOfWhen(when), "The first WHEN whose condition is true is done.");
      }
      ended[static_cast<size_t>(kind)] = ConditionOf(when).empty();
      TESSERA_ASSIGN(ExprPtr condition, BindCondition(when, scope));
      Branches& branches = kind == When::kBySource ? left_ : joined_;
      branches.actions.push_back(condition->Clone());
      branches.actions.push_back(
          MakeConstant(Value::Int(kBigint, static_cast<int64_t>(out_.change.merge_actions.size()) + 1), -1));
      TESSERA_TRY(BindAction(when, scope, *condition, &branches));
      if (!block_.query->aggregates.empty() || !block_.windows.empty()) {
        return SqlError(ErrorKind::kGrouping, "aggregate and window functions are not allowed in MERGE",
                        PositionOfWhen(when), "Compute them in a subquery.");
      }
    }
    TESSERA_TRY(AddOutputs(&joined_, block_.query.get()));
    return left != nullptr ? AddOutputs(&left_, left) : Status::Ok();
  }

 private:
  /// Of the rows of one query: of each column the branches of a CASE, and the same of the action.
  struct Branches {
    std::vector<std::vector<ExprPtr>> values;
    std::vector<ExprPtr> actions;
  };

  static int PositionOfWhen(const ParseNode& when) { return when.FirstLocation(); }

  ExprPtr RowNumber() const { return MakeColumn(0, RowNumberColumn(table_), kBigint, true, -1); }

  /// Of the rows that come to this WHEN and are its own.
  Result<ExprPtr> BindCondition(const ParseNode& when, const NameScope& scope) {
    const Function test = WhenOf(when) == When::kNotMatched ? Function::kIsNull : Function::kIsNotNull;
    ExprPtr own = MakeFunction(test, kBoolean, -1, ExprList(RowNumber()));
    ExpressionBinder binder(&block_.context, &scope, Clause::kWhere);
    ExprPtr e;
    for (const ParseNode* part : ConditionOf(when)) {
      TESSERA_ASSIGN(ExprPtr bound, binder.BindBoolean(*part, "argument of WHEN"));
      if (IsVolatile(*bound)) {
        return Unsupported("random() in a condition of WHEN is not supported", part->FirstLocation(),
                           "Compute it in the source: USING (SELECT random() AS r, ...).");
      }
      e = e == nullptr ? std::move(bound)
                       : MakeFunction(Function::kOr, kBoolean, -1, ExprList(std::move(e), std::move(bound)));
    }
    if (e == nullptr) return own;
    return MakeFunction(Function::kAnd, kBoolean, -1, ExprList(std::move(own), std::move(e)));
  }

  Status BindAction(const ParseNode& when, const NameScope& scope, const Expr& condition, Branches* branches) {
    const std::string_view command = when.Text(Field::k_commandType);
    MergeAction& action = out_.change.merge_actions.emplace_back();
    std::vector<ExprPtr> row(table_.schema.columns.size());
    if (command == "CMD_UPDATE") {
      action.kind = MergeAction::Kind::kUpdate;
      TESSERA_TRY(BindSetList(*when.Get(Field::k_targetList), table_, scope, "MERGE", &block_, &row));
      TESSERA_TRY(CompleteUpdate(&row, &action));
    } else if (command == "CMD_INSERT") {
      action.kind = MergeAction::Kind::kInsert;
      TESSERA_TRY(BindInsert(when, scope, &row, &action));
    } else if (command == "CMD_DELETE") {
      action.kind = MergeAction::Kind::kDelete;
    }
    for (size_t c = 0; c < row.size(); ++c) {
      const SqlType type = StoredType(c);
      branches->values[c].push_back(condition.Clone());
      branches->values[c].push_back(row[c] != nullptr ? std::move(row[c]) : MakeNull(type, -1));
    }
    return {};
  }

  Status CompleteUpdate(std::vector<ExprPtr>* row, MergeAction* action) {
    ExpressionBinder binder(&block_.context, nullptr, Clause::kSelect);
    std::vector<int> given;
    for (size_t c = 0; c < row->size(); ++c) {
      const ColumnSchema& column = table_.schema.columns[c];
      const int number = static_cast<int>(c);
      if (column.generated_text) continue;
      given.push_back(number);
      if ((*row)[c] == nullptr) (*row)[c] = binder.Column(0, number, -1);
      TESSERA_ASSIGN((*row)[c], AsColumn(std::move((*row)[c]), column, &binder));
    }
    TESSERA_ASSIGN(action->rules, MakeRowRules(table_.schema, given, dialect_));
    return {};
  }

  Status BindInsert(const ParseNode& when, const NameScope& scope, std::vector<ExprPtr>* row, MergeAction* action) {
    const ParseNode* const list = when.Get(Field::k_targetList);
    const ParseNode* const values = when.Get(Field::k_values);  // nullptr: DEFAULT VALUES
    TESSERA_ASSIGN(const std::vector<int> columns, ListedColumns(list, table_));
    const size_t count = values != nullptr ? values->size() : 0;
    if (count > columns.size())
      return SqlError(ErrorKind::kSyntax, "INSERT has more expressions than target columns", values->FirstLocation());
    if (count < columns.size() && list != nullptr && values != nullptr)
      return SqlError(ErrorKind::kSyntax, "INSERT has more target columns than expressions", list->FirstLocation());
    ExpressionBinder binder(&block_.context, &scope, Clause::kSelect);
    std::vector<int> given;
    const ParseNode* value = count > 0 ? values->first() : nullptr;
    for (size_t i = 0; i < count; ++i, value = value->next()) {
      const auto c = static_cast<size_t>(columns[i]);
      const ColumnSchema& column = table_.schema.columns[c];
      if (value->Is(Tag::kSetToDefault)) continue;
      if (column.generated_text) return GivenToGenerated(column, value->FirstLocation());
      TESSERA_ASSIGN(ExprPtr e, binder.Bind(*value));
      TESSERA_ASSIGN((*row)[c], AsColumn(std::move(e), column, &binder));
      given.push_back(columns[i]);
    }
    for (size_t c = 0; c < row->size(); ++c) {
      if ((*row)[c] == nullptr) {
        TESSERA_ASSIGN((*row)[c], AsColumn(MakeConstant(DefaultOf(table_.schema.columns[c]), -1),
                                           table_.schema.columns[c], &binder));
      }
    }
    TESSERA_ASSIGN(action->rules, MakeRowRules(table_.schema, given, dialect_));
    return {};
  }

  /// A text that is too long is an error when it is stored; a cast would cut it.
  SqlType StoredType(size_t column) const {
    SqlType type = table_.schema.columns[column].type;
    if (type.id == TypeId::kText) type.length = 0;
    return type;
  }

  Status AddOutputs(Branches* of, Query* query) {
    const auto add = [&](std::vector<ExprPtr> branches, ExprPtr otherwise, const SqlType& type,
                         const std::string& name) -> Status {
      branches.push_back(std::move(otherwise));
      TESSERA_ASSIGN(ExprPtr e, Fold(MakeFunction(Function::kCase, type, -1, std::move(branches)), false));
      query->outputs.push_back({std::move(e), name});
      return {};
    };
    for (size_t c = 0; c < of->values.size(); ++c) {
      const SqlType type = StoredType(c);
      TESSERA_TRY(add(std::move(of->values[c]), MakeNull(type, -1), type, table_.schema.columns[c].name));
    }
    TESSERA_TRY(add(std::move(of->actions), MakeConstant(Value::Int(kBigint, 0), -1), kBigint, "action"));
    query->outputs.push_back({RowNumber(), "row"});
    query->visible = static_cast<int>(query->outputs.size());
    return {};
  }

  const Dialect& dialect_;
  QueryBlock& block_;
  Statement& out_;
  const TableInfo& table_;
  Branches joined_, left_;
};

/// The rows of the target, relation 0, that have none of the source, relation 1, by `condition`.
std::unique_ptr<Query> RowsLeft(const Query& joined, const Expr& condition) {
  auto left = std::make_unique<Query>();
  for (const Relation& relation : joined.relations) left->relations.push_back(CopySource(relation));
  left->relations[1].join = JoinKind::kAnti;
  SplitConjuncts(condition.Clone(), &left->relations[1].on);
  return left;
}

/// The rows of both, which have the same columns.
std::unique_ptr<Query> RowsOfBoth(std::unique_ptr<Query> one, std::unique_ptr<Query> other) {
  std::shared_ptr<Query> rows = std::move(one);
  rows->union_all.push_back(std::move(other));
  auto all = std::make_unique<Query>();
  all->relations.push_back(DerivedTable(std::move(rows)));
  const Relation& relation = all->relations[0];
  for (size_t c = 0; c < relation.column_types.size(); ++c) {
    all->outputs.push_back(
        {MakeColumn(0, static_cast<int>(c), relation.column_types[c], true, -1), relation.column_names[c]});
  }
  all->visible = static_cast<int>(all->outputs.size());
  return all;
}

/// The error of a form that WHEN NOT MATCHED excludes, or nothing.
Status CheckSource(const Query& query, const Expr& condition, bool by_source, const ParseNode& on) {
  if (FindSubquery(condition) != nullptr) {
    return Unsupported("a subquery in ON of MERGE with WHEN NOT MATCHED is not supported", on.FirstLocation(),
                       "Compute it in the source: USING (SELECT (SELECT ...) AS x, ...).");
  }
  if (by_source && query.relations.size() != 2) {
    return Unsupported("a join in USING of MERGE with WHEN NOT MATCHED BY SOURCE is not supported", on.FirstLocation(),
                       "Write USING (SELECT ... FROM a JOIN b ON ...) AS s.");
  }
  return {};
}

}  // namespace

Status BindMerge(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                 Statement* out) {
  out->kind = Statement::Kind::kMerge;
  const ParseNode& relation = *node.Get(Field::k_relation);
  TESSERA_ASSIGN(const std::shared_ptr<const TableInfo> table, FindTable(relation, snapshot));
  out->table = table->schema.name;
  out->target = NumberRows(*table);
  QueryBlock block(sql, &dialect, snapshot);
  if (const ParseNode* with = node.Get(Field::k_withClause)) TESSERA_TRY(BindWith(*with, &block));
  FromBinder from(&block);
  TESSERA_TRY(from.BindTarget(relation, out->target));
  const NameScope target = std::exchange(block.scope, {});
  TESSERA_TRY(from.BindOne(*node.Get(Field::k_sourceRelation)));
  const NameScope source = std::exchange(block.scope, target);
  block.scope.columns.insert(block.scope.columns.end(), source.columns.begin(), source.columns.end());
  TESSERA_TRY(AddVariables(source, &block.scope));

  ExpressionBinder binder(&block.context, &block.scope, Clause::kOn);
  const ParseNode& on = *node.Get(Field::k_joinCondition);
  TESSERA_ASSIGN(ExprPtr condition, binder.BindBoolean(on, "argument of ON"));
  const ParseNode& clauses = *node.Get(Field::k_mergeWhenClauses);
  bool has[3] = {false, false, false};
  for (const ParseNode& when : clauses) has[static_cast<size_t>(WhenOf(when))] = true;
  const auto& [matched, not_matched, by_source] = has;
  if (not_matched || by_source) TESSERA_TRY(CheckSource(*block.query, *condition, by_source, on));
  std::unique_ptr<Query> left = by_source ? RowsLeft(*block.query, *condition) : nullptr;
  if (!not_matched) {
    SplitConjuncts(std::move(condition), &block.query->conjuncts);
  } else {
    Relation& joined = block.query->relations[0];
    joined.join = JoinKind::kLeft;
    SplitConjuncts(std::move(condition), &joined.on);
  }
  TESSERA_TRY(MergeBinder(dialect, &block, out).Bind(clauses, source, target, left.get()));
  out->query = block.Take();
  if (left == nullptr) return {};
  out->query = matched || not_matched ? RowsOfBoth(std::move(out->query), std::move(left)) : std::move(left);
  return {};
}

}  // namespace tessera
