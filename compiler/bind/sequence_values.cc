#include "compiler/bind/sequence_values.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/row_rules.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_walk.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

const SqlType kBigint = SqlType::Of(TypeId::kBigint);

size_t CallOf(const Expr& e) { return static_cast<size_t>(e.args[0]->constant.i64); }

bool HasCall(const Expr& e) {
  return IsFunction(e, Function::kSequenceValue) ||
         std::ranges::any_of(e.args, [](const ExprPtr& a) { return HasCall(*a); });
}

/// Looks for calls in a query and all blocks in it.
class CallFinder {
 public:
  /// The position of one; -2: there is none.
  int Find(const Query& query) {
    Visit(query);
    return found_;
  }

 private:
  void Visit(const Query& query) {
    if (!seen_.insert(&query).second) return;
    ForEachRoot(query, [&](const ExprPtr& e) { Visit(*e); });
    for (const Relation& r : query.relations) {
      if (r.query != nullptr) Visit(*r.query);
    }
    for (const auto& arm : query.union_all) Visit(*arm);
  }
  void Visit(const Expr& e) {
    if (IsFunction(e, Function::kSequenceValue)) found_ = e.position;
    if (e.subquery != nullptr) Visit(*e.subquery->query);
    for (const ExprPtr& a : e.args) Visit(*a);
  }

  std::set<const Query*> seen_;
  int found_ = -2;
};

Status Refused(int position) {
  return Unsupported("nextval for each row of a query is not supported elsewhere than in its outermost select list",
                     position, "Not beside DISTINCT, ORDER BY its value, window functions and set operations either.");
}

/// What is computed of a row when it has come.
struct Finish {
  struct Value {
    size_t output;
    ExprPtr expr;  ///< its columns are outputs
  };
  std::vector<Value> values;
  size_t shown = 0, carried = 0;  ///< outputs that stay, and those after them that do not
  SequenceCalls calls;
  SequenceSource* source = nullptr;

  /// A call has one value in a row, however often it stands there.
  Status Compute(RowBatch* batch) const {
    std::vector<ColumnVector> made(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      made[i].type = values[i].expr->type;
      made[i].zone = batch->columns[values[i].output].zone;
    }
    std::vector<std::pair<bool, int64_t>> taken(calls.size());
    const RowSequences value_of = [&](size_t call) -> Result<int64_t> {
      auto& [known, value] = taken[call];
      if (known) return value;
      const std::string& name = calls[call].sequence;
      Result<int64_t> next = calls[call].takes_next ? source->Next(name) : source->Current(name);
      if (!next.ok()) return next.status().At(calls[call].position);
      known = true;
      value = *next;
      return value;
    };
    for (size_t row = 0; row < batch->rows; ++row) {
      taken.assign(calls.size(), {});
      for (size_t i = 0; i < values.size(); ++i) {
        TESSERA_ASSIGN(tessera::Value value, ComputeRow(*values[i].expr, *batch, row, &value_of));
        value.type = made[i].type;
        made[i].Append(value);
      }
    }
    for (size_t i = 0; i < values.size(); ++i) batch->columns[values[i].output] = std::move(made[i]);
    const auto first = batch->columns.begin() + static_cast<std::ptrdiff_t>(shown);
    batch->columns.erase(first, first + static_cast<std::ptrdiff_t>(carried));
    return Status::Ok();
  }
};

/// What `e` is made of beside calls and constants becomes columns, of the outputs that are added to `carried`.
void Carry(ExprPtr* e, size_t shown, std::vector<Output>* carried) {
  if (IsConstant(**e) || IsFunction(**e, Function::kSequenceValue)) return;
  if (HasCall(**e)) {
    for (ExprPtr& a : (*e)->args) Carry(&a, shown, carried);
    return;
  }
  auto same = std::ranges::find_if(*carried, [&](const Output& o) { return o.expr->SameAs(**e); });
  const auto number = static_cast<int>(shown + static_cast<size_t>(same - carried->begin()));
  ExprPtr column = MakeColumn(0, number, (*e)->type, (*e)->nullable, (*e)->position);
  if (same == carried->end()) carried->push_back({std::move(*e), ""});
  *e = std::move(column);
}

bool MayFinish(const Statement& s) {
  using Kind = Statement::Kind;
  if (s.kind == Kind::kInsert) return s.change.on_conflict == nullptr;
  if (s.kind == Kind::kCreateTable) return !s.definition.schema.materialized;
  constexpr Kind kOthers[] = {Kind::kSelect, Kind::kUpdate, Kind::kMerge, Kind::kCopyTo, Kind::kSetVariable};
  return std::ranges::find(kOthers, s.kind) != std::end(kOthers);
}

/// currval without nextval of its sequence is a constant.
Status ReplaceFixed(const SequenceCalls& calls, const Dialect& dialect, Query* query) {
  std::map<size_t, int64_t> fixed;
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto takes = [&](const SequenceCall& c) { return c.takes_next && c.sequence == calls[i].sequence; };
    if (std::ranges::any_of(calls, takes)) continue;
    const Result<int64_t> value = dialect.takes_values ? dialect.sequences->Current(calls[i].sequence) : 0;
    if (!value.ok()) return value.status().At(calls[i].position);
    fixed[i] = *value;
  }
  if (fixed.empty()) return Status::Ok();
  ForEachRoot(*query, [&](ExprPtr& e) {
    Substitute(&e, [&](const Expr& x) -> ExprPtr {
      if (!IsFunction(x, Function::kSequenceValue)) return nullptr;
      const auto found = fixed.find(CallOf(x));
      return found == fixed.end() ? nullptr : MakeConstant(Value::Int(kBigint, found->second), x.position);
    });
  });
  return Status::Ok();
}

}  // namespace

ExprPtr MakeSequenceValue(SequenceCall call, SequenceCalls* calls) {
  const int position = call.position;
  const auto number = static_cast<int64_t>(calls->size());
  calls->push_back(std::move(call));
  ExprPtr e = MakeFunction(Function::kSequenceValue, kBigint, position,
                           ExprList(MakeConstant(Value::Int(kBigint, number), position)));
  e->nullable = false;
  return e;
}

Status FinishSequenceValues(const SequenceCalls& calls, const Dialect& dialect, Statement* statement) {
  if (calls.empty()) return Status::Ok();
  if (statement->query == nullptr) return Refused(calls[0].position);
  Query& query = *statement->query;
  TESSERA_TRY(ReplaceFixed(calls, dialect, &query));
  auto finish = std::make_shared<Finish>();
  finish->shown = static_cast<size_t>(query.visible);
  finish->calls = calls;
  finish->source = dialect.sequences;
  std::vector<Output> carried;
  for (size_t i = 0; i < finish->shown; ++i) {
    ExprPtr& e = query.outputs[i].expr;
    if (!HasCall(*e)) continue;
    const bool ordered = std::ranges::count(query.order_by, static_cast<int>(i), &OrderKey::output) > 0;
    if (ordered || query.distinct || !MayFinish(*statement)) return Refused(e->position);
    ExprPtr none = MakeNull(e->type, e->position);
    Carry(&e, finish->shown, &carried);
    finish->values.push_back({i, std::exchange(e, std::move(none))});
  }
  finish->carried = carried.size();
  CallFinder finder;
  int left = finder.Find(query);
  if (statement->change.returning != nullptr) left = std::max(left, finder.Find(*statement->change.returning));
  if (statement->change.on_conflict != nullptr && statement->change.on_conflict->updates != nullptr)
    left = std::max(left, finder.Find(*statement->change.on_conflict->updates));
  if (left > -2) return Refused(left);
  if (finish->values.empty()) return Status::Ok();
  for (OrderKey& key : query.order_by) {
    if (key.output >= query.visible) key.output += static_cast<int>(carried.size());
  }
  query.visible += static_cast<int>(carried.size());
  query.outputs.insert(query.outputs.begin() + static_cast<std::ptrdiff_t>(finish->shown),
                       std::make_move_iterator(carried.begin()), std::make_move_iterator(carried.end()));
  // The statement changes the database of the sequence.
  const auto of_session = [](const SequenceCall& call) { return IsTemporaryName(call.sequence); };
  if (statement->table.empty() && std::ranges::all_of(calls, of_session)) statement->table = calls[0].sequence;
  statement->carried = static_cast<int>(finish->carried);
  statement->finish = [finish](RowBatch* batch, uint64_t /*first_row*/) { return finish->Compute(batch); };
  return Status::Ok();
}

}  // namespace tessera
