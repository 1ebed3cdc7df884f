// Binding generate_series and range in FROM: one row, repeated, numbered by a window, and a value computed from the
// number. Of constants this is a series (Query::series), which takes no memory; otherwise as much as any intermediate
// result of as many rows.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/macro_call.h"
#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/subquery_expr.h"
#include "vm/meaning/meaning.h"

namespace tessera {
namespace {

const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kTimestamp = SqlType::Of(TypeId::kTimestamp);

/// Levels of nesting that the blocks of a series count as, as QueryBlock's.
constexpr int kSeriesLevels = 12;
/// As many as a BIGINT can number.
constexpr int128_t kMostRows = INT64_MAX;

/// The values start, start + step, ... up to stop, or before it.
struct Series {
  int64_t start = 0, step = 1;
  SqlType type = kInteger;
  bool months = false;  ///< of the step; then of 28 days at least
  int128_t rows = 0;
  /// Steps of months: a day that a month lacks stays cut, so from row `first` on the values count from another start.
  struct Piece {
    int64_t first, start;
  };
  std::vector<Piece> pieces;

  void Count(int64_t stop, bool inclusive) {
    if ((step > 0) != (stop > start) && stop != start) return;
    const int128_t distance = static_cast<int128_t>(stop) - start;
    rows = distance / step + (distance % step != 0 || inclusive ? 1 : 0);
  }
  void CountMonths(int64_t stop, bool inclusive) {
    int64_t x = start;
    pieces.push_back({0, start});
    const auto before = [&] { return step > 0 ? x < stop : x > stop; };
    for (; before() || (inclusive && x == stop); ++rows) {
      const Piece& p = pieces.back();
      const auto number = static_cast<int64_t>(rows);
      vm::Lane lane;
      if (number > p.first && vm::meaning::AddMonthsT::Apply(p.start, (number - p.first) * step, lane) != x)
        pieces.push_back({number, x});
      x = vm::meaning::AddMonthsT::Apply(x, step, lane);
      if (lane.error != vm::LaneError::kNone) {  // the last one of the calendar
        ++rows;
        return;
      }
    }
  }
};

ExprPtr Integer(int64_t v) { return MakeConstant(Value::Int(kBigint, v), -1); }

ExprPtr Call(Function f, const SqlType& type, ExprPtr a, ExprPtr b) {
  return MakeFunction(f, type, -1, ExprList(std::move(a), std::move(b)));
}

/// The value of a row. `number`: of the row, from 1.
ExprPtr ValueOf(const Series& s, const Expr& number) {
  const auto from = [&](int64_t first, int64_t start) {
    if (s.type.id != TypeId::kTimestamp && s.step == 1 && start == 1) return MakeCast(number.Clone(), s.type);
    if (s.type.id != TypeId::kTimestamp && s.step == 1 && start > INT64_MIN)
      return MakeCast(Call(Function::kAdd, kBigint, number.Clone(), Integer(start - 1)), s.type);
    ExprPtr steps = Call(Function::kSub, kBigint, number.Clone(), Integer(first + 1));
    if (s.step != 1) steps = Call(Function::kMul, kBigint, std::move(steps), Integer(s.step));
    if (s.type.id != TypeId::kTimestamp)
      return MakeCast(Call(Function::kAdd, kBigint, Integer(start), std::move(steps)), s.type);
    ExprPtr moment = MakeConstant(Value::Int(kTimestamp, start), -1);
    return Call(s.months ? Function::kAddMonths : Function::kAddMicros, kTimestamp, std::move(moment),
                std::move(steps));
  };
  if (s.pieces.size() < 2) return from(0, s.start);
  std::vector<ExprPtr> branches;
  for (size_t i = 0; i < s.pieces.size(); ++i) {
    if (i + 1 < s.pieces.size()) {
      branches.push_back(
          Call(Function::kLe, SqlType::Of(TypeId::kBoolean), number.Clone(), Integer(s.pieces[i + 1].first)));
    }
    branches.push_back(from(s.pieces[i].first, s.pieces[i].start));
  }
  return MakeFunction(Function::kCase, s.type, -1, std::move(branches));
}

/// How many integers there are from `start` up to `stop`, or before it. NULL gives none.
ExprPtr CountOf(const Expr& start, const Expr& stop, const Expr& step, bool inclusive) {
  const SqlType boolean = SqlType::Of(TypeId::kBoolean);
  const auto test = [&](Function f, const Expr& a, ExprPtr b) { return Call(f, boolean, a.Clone(), std::move(b)); };
  const auto arm = [&](bool up, ExprPtr count) {
    const Function before = inclusive ? (up ? Function::kLe : Function::kGe) : (up ? Function::kLt : Function::kGt);
    ExprPtr goes = Call(Function::kAnd, boolean, test(up ? Function::kGt : Function::kLt, step, Integer(0)),
                        test(before, start, stop.Clone()));
    return std::pair(std::move(goes), std::move(count));
  };
  const auto count = [&](int64_t less) {
    ExprPtr distance = Call(Function::kSub, kBigint, stop.Clone(), start.Clone());
    if (less != 0) distance = Call(Function::kSub, kBigint, std::move(distance), Integer(less));
    ExprPtr steps = Call(Function::kDiv, kBigint, std::move(distance), step.Clone());
    return Call(Function::kAdd, kBigint, std::move(steps), Integer(1));
  };
  auto [up, up_count] = arm(true, count(inclusive ? 0 : 1));
  auto [down, down_count] = arm(false, count(inclusive ? 0 : -1));
  std::vector<ExprPtr> branches = ExprList(std::move(up), std::move(up_count), std::move(down));
  branches.push_back(std::move(down_count));
  branches.push_back(Integer(0));
  return MakeFunction(Function::kCase, kBigint, -1, std::move(branches));
}

/// The series of constant arguments, a start and a stop at least.
Result<Series> ConstantSeries(std::vector<ExprPtr> args, bool inclusive, const std::string& name, int position,
                              ExpressionBinder* binder) {
  const auto is_moment = [](const Expr& e) { return (ClassOf(e.type) & kClassDateTime) != 0; };
  const bool integers = std::all_of(args.begin(), args.end(), [](const ExprPtr& e) { return e->type.IsInteger(); });
  const bool moments =
      args.size() == 3 && is_moment(*args[0]) && is_moment(*args[1]) && args[2]->type.id == TypeId::kInterval;
  if (!integers && !moments) {
    return SqlError(name + " takes integers, or two moments and an INTERVAL", position,
                    "Such as " + name + "(DATE '2024-01-01', DATE '2024-12-31', INTERVAL '1 day').");
  }

  Series s;
  for (int i = 0; i < 2; ++i) {
    ExprPtr& e = args[static_cast<size_t>(i)];
    if (integers && e->type.id == TypeId::kBigint) s.type = kBigint;
    if (moments) {
      TESSERA_ASSIGN(e, binder->Coerce(std::move(e), kTimestamp, CastContext::kImplicit));
      s.type = kTimestamp;
    }
  }
  const bool null = std::any_of(args.begin(), args.end(), [](const ExprPtr& e) { return e->constant.null; });
  if (!null) {
    s.start = args[0]->constant.i64;
    if (integers && args.size() == 3) s.step = args[2]->constant.i64;
    if (moments) {
      const Interval span = UnpackInterval(args[2]->constant.wide);
      s.months = span.months != 0;
      const int128_t micros = static_cast<int128_t>(span.days) * vm::kMicrosPerDay + span.micros;
      if (s.months && micros != 0)
        return Unsupported("a step of months and days is not supported", args[2]->position, "Take one of them.");
      if (micros > INT64_MAX || micros < INT64_MIN) return SqlError("interval out of range", args[2]->position);
      s.step = s.months ? span.months : static_cast<int64_t>(micros);
    }
    if (s.step == 0) return SqlError("step size cannot equal zero", args.back()->position);
    s.months ? s.CountMonths(args[1]->constant.i64, inclusive) : s.Count(args[1]->constant.i64, inclusive);
    if (s.rows > kMostRows) {
      return Unsupported(name + " of more than 9223372036854775807 rows is not supported", position,
                         "Is the step as it should be?");
    }
  }
  return s;
}

Status NoTableFunction(const std::string& name, bool is_macro, int position) {
  const std::string hint = is_macro ? "Macro \"" + name + "\" is an expression: SELECT " + name + "(...)."
                                    : "generate_series, range, string_to_table and unnest are.";
  return Unsupported("function " + name + " in FROM is not supported", position, hint);
}

}  // namespace

FromBinder::TableFunction FromBinder::FindTableFunction(std::string_view name) {
  static const std::map<std::string_view, TableFunction> functions = {
#define TABLE_FUNCTION(Name, Bind, ...) {Name, &FromBinder::Bind},
#include "compiler/bind/table_functions.def"
  };
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

bool IsTableFunction(std::string_view name) { return FromBinder::FindTableFunction(name) != nullptr; }

std::shared_ptr<Query> NumberedRows(std::shared_ptr<Query> one, const std::string& name) {
  one->repeat = one->visible;
  auto numbered = std::make_shared<Query>();
  Window window;
  window.function = vm::WindowFunction::kRowNumber;
  window.type = kBigint;
  for (int i = 0; i < one->visible; ++i) {
    const Expr& e = *one->outputs[static_cast<size_t>(i)].expr;
    numbered->outputs.push_back({MakeColumn(0, i, e.type, e.nullable, -1), one->outputs[static_cast<size_t>(i)].name});
  }
  numbered->outputs.push_back({MakeLeaf(Expr::Kind::kWindow, 0, kBigint, false), "number"});
  numbered->windows.push_back(window);
  numbered->visible = one->visible + 1;
  const bool correlated = RefersOutward(*one);
  numbered->relations.push_back(DerivedTable(std::move(one)));
  numbered->relations.back().alias = name;
  numbered->relations.back().correlated = correlated;
  return numbered;
}

Result<ExprPtr> FromBinder::VaryingSeries(std::vector<ExprPtr> args, bool inclusive, const std::string& name,
                                          int position, Query* values) {
  const bool big = std::any_of(args.begin(), args.end() - (args.size() == 3 ? 1 : 0),
                               [](const ExprPtr& e) { return e->type.id == TypeId::kBigint; });
  ExpressionBinder binder(&context_, nullptr, Clause::kValues);
  if (args.size() == 2) args.push_back(Integer(1));
  for (ExprPtr& e : args) {
    if (!e->type.IsInteger()) {
      return Unsupported(name + " of what is not a constant takes integers only", position,
                         "Add the integers to the moment: d + i * INTERVAL '1 day'.");
    }
    TESSERA_ASSIGN(e, binder.Coerce(std::move(e), kBigint, CastContext::kExplicit));
  }
  if (IsConstant(*args[2]) && !args[2]->constant.null && args[2]->constant.i64 == 0)
    return SqlError("step size cannot equal zero", args[2]->position);
  auto one = std::make_shared<Query>();
  ExprPtr times = CountOf(*args[0], *args[1], *args[2], inclusive);
  one->outputs.push_back({std::move(args[0]), "start"});
  one->outputs.push_back({std::move(args[2]), "step"});
  one->outputs.push_back({std::move(times), "times"});
  one->visible = 2;
  MoveInward(one.get(), 2);
  std::shared_ptr<Query> numbered = NumberedRows(std::move(one), name);
  const bool correlated = RefersOutward(*numbered);
  values->relations.push_back(DerivedTable(std::move(numbered)));
  values->relations.back().alias = name;
  values->relations.back().correlated = correlated;
  const auto column = [&](int i) { return MakeColumn(0, i, kBigint, i < 2, position); };
  ExprPtr steps = Call(Function::kMul, kBigint, Call(Function::kSub, kBigint, column(2), Integer(1)), column(1));
  ExprPtr value = Call(Function::kAdd, kBigint, column(0), std::move(steps));
  return big ? std::move(value) : MakeCast(std::move(value), kInteger);
}

Status FromBinder::AddVisible(NameScope* visible) const {
  for (const NameScope* part : before_) {
    visible->columns.insert(visible->columns.end(), part->columns.begin(), part->columns.end());
    TESSERA_TRY(AddVariables(*part, visible));
  }
  return {};
}

Status FromBinder::AddValues(const ParseNode& item, const std::string& name, int position,
                             std::shared_ptr<Query> values, ExprPtr value, ExprPtr number, NameScope* scope) {
  const ParseNode* alias = item.Get(Field::k_alias);
  // As in PostgreSQL the one column is called like the table.
  const std::string column(alias != nullptr ? alias->Text(Field::k_aliasname) : std::string_view(name));
  values->outputs.push_back({std::move(value), column});
  if (item.Get(Field::k_ordinality) != nullptr) values->outputs.push_back({std::move(number), "ordinality"});
  values->visible = static_cast<int>(values->outputs.size());
  const bool correlated = RefersOutward(*values);
  Relation relation = DerivedTable(std::move(values));
  relation.alias = name;
  relation.correlated = correlated;
  return AddRelation(std::move(relation), "", alias, position, scope);
}

Status FromBinder::BindRows(const ParseNode& item, NameScope* scope) {
  const int at = item.FirstLocation();
  const ParseNode* list = item.Get(Field::k_functions);
  // A list for each function: its call, and definitions of columns.
  const ParseNode* parts = list != nullptr && list->size() == 1 ? list->first()->Get(Field::k_items) : nullptr;
  const ParseNode* call = parts != nullptr ? parts->first() : nullptr;
  if (item.Get(Field::k_is_rowsfrom) != nullptr || call == nullptr || !call->Is(Tag::kFuncCall))
    return Unsupported("this function in FROM is not supported", at, "generate_series and range are.");
  std::string name;
  for (const ParseNode& n : *call->Get(Field::k_funcname)) name = n.Text(Field::k_sval);
  if (item.Get(Field::k_coldeflist) != nullptr) {
    return SqlError("a column definition list is only allowed for functions returning \"record\"", call->location());
  }
  if (const Macro* const macro = FindMacro(context_, name, true)) return BindMacro(*macro, item, *call, scope);
  if (name == kFileCall) return BindFile(item, *call, name, scope);
  if (name == kMomentCall) return BindMoment(item, *call, scope);
  const TableFunction bind = FindTableFunction(name);
  if (bind != nullptr) return (this->*bind)(item, *call, name, scope);
  if (name.starts_with("pragma_")) return BindPragma(item, *call, name, scope);  // says which there are
  return NoTableFunction(name, FindMacro(context_, name, false) != nullptr, call->location());
}

Result<ExprPtr> FromBinder::AddRows(const ParseNode& call) {
  std::string name;
  for (const ParseNode& n : *call.Get(Field::k_funcname)) name = n.Text(Field::k_sval);
  before_.push_back(&block_.scope);
  NameScope rows;
  TESSERA_TRY(IsUnnested(name) ? BindUnnest(call, call, name, &rows) : BindSeries(call, call, name, &rows));
  before_.pop_back();
  const ScopeColumn& c = rows.columns[0];
  return ExpressionBinder(&context_, &block_.scope, Clause::kSelect).Column(c.relation, c.column, call.location());
}

Status FromBinder::BindSeries(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope) {
  const int position = call.location();
  const bool inclusive = name == "generate_series";
  std::vector<ExprPtr> args;
  NameScope visible;
  TESSERA_TRY(AddVisible(&visible));
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(position);
  QueryBlock inside(context_, &visible);
  ExpressionBinder binder(&inside.context, &inside.scope, Clause::kValues);
  bool varies = false;
  if (const ParseNode* nodes = call.Get(Field::k_args)) {
    for (const ParseNode& node : *nodes) {
      TESSERA_ASSIGN(ExprPtr e, binder.Bind(node));
      TESSERA_ASSIGN(e, binder.Resolve(std::move(e), args.size() < 2 && nodes->size() == 3 && !args.empty() &&
                                                             !args[0]->type.IsInteger()
                                                         ? args[0]->type
                                                         : kInteger));
      varies = varies || !IsConstant(*e);
      args.push_back(std::move(e));
    }
  }
  if (args.size() == 1 && !inclusive) args.insert(args.begin(), MakeConstant(Value::Int(kInteger, 0), position));
  if (args.size() < 2 || args.size() > 3)
    return SqlError("function " + name + " does not take " + std::to_string(args.size()) + " arguments", position,
                    "It takes a start, a stop and a step.");
  const auto add = [&](std::shared_ptr<Query> values, ExprPtr value, ExprPtr number) {
    return AddValues(item, name, position, std::move(values), std::move(value), std::move(number), scope);
  };
  auto values = std::make_shared<Query>();
  if (varies) {
    TESSERA_ASSIGN(ExprPtr value, VaryingSeries(std::move(args), inclusive, name, position, values.get()));
    context_.deepest = std::max(context_.deepest, inside.context.deepest + kSeriesLevels);
    if (context_.deepest > kMaxNesting) return NestedTooDeeply(position);
    return add(std::move(values), std::move(value), MakeColumn(0, 2, kBigint, false, position));
  }
  TESSERA_ASSIGN(const Series s, ConstantSeries(std::move(args), inclusive, name, position, &binder));
  auto one = std::make_shared<Query>();
  one->outputs.push_back({Integer(static_cast<int64_t>(s.rows)), "times"});
  one->visible = 0;
  std::shared_ptr<Query> numbered = NumberedRows(std::move(one), name);
  numbered->series = static_cast<int64_t>(s.rows);
  values->relations.push_back(DerivedTable(std::move(numbered)));
  values->relations.back().alias = name;
  const ExprPtr number = MakeColumn(0, 0, kBigint, false, position);
  return add(std::move(values), ValueOf(s, *number), number->Clone());
}

}  // namespace tessera
