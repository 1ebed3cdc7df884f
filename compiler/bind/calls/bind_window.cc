// Binding window calls: f(...) OVER (...), and WINDOW. Errors are worded as PostgreSQL does.
#include <algorithm>
#include <optional>
#include <string>

#include "compiler/bind/expression_binder.h"
#include "compiler/query/correlation.h"
#include "compiler/query/fold.h"
#include "compiler/query/window_call.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

using vm::WindowFrame;
using vm::WindowFunction;
using Bound = WindowFrame::Bound;

const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);

/// WindowDef::frameOptions, as PostgreSQL's parsenodes.h numbers them.
enum FrameOption : int64_t {
  kNonDefault = 0x1,
  kRows = 0x4,
  kGroups = 0x8,
  kEndUnboundedFollowing = 0x100,
  kStartCurrentRow = 0x200,
  kEndCurrentRow = 0x400,
  kStartPreceding = 0x800,
  kEndPreceding = 0x1000,
  kStartFollowing = 0x2000,
  kEndFollowing = 0x4000,
  kExcludeCurrentRow = 0x8000,
  kExcludeGroup = 0x10000,
  kExcludeTies = 0x20000,
};

struct WindowFunctionRow {
  std::string_view name;
  size_t least, most;
  enum class Argument : uint8_t { kNone, kNumber, kValue } argument;
  TypeId result;  ///< not of kValue
};
constexpr WindowFunctionRow kFunctions[] = {
#define WINDOW_FUNCTION(Name, name, Least, Most, Value, Result, ...) \
  {name, Least, Most, WindowFunctionRow::Argument::k##Value, TypeId::k##Result},
#include "vm/program/window_functions.def"
};

std::optional<WindowFunction> FindWindowFunction(std::string_view name) {
  for (size_t i = 0; i < std::size(kFunctions); ++i) {
    if (kFunctions[i].name == name) return static_cast<WindowFunction>(i);
  }
  return {};
}

bool SameOrNone(const ExprPtr& a, const ExprPtr& b) { return a == nullptr || b == nullptr ? a == b : a->SameAs(*b); }

bool IsNegative(const Value& v) { return v.type.IsFloat() ? v.f64 < 0 : IsWide(v.type) ? v.wide < 0 : v.i64 < 0; }

}  // namespace

const char* ClauseName(Clause clause) {
  switch (clause) {
    case Clause::kWhere:
      return "WHERE";
    case Clause::kOn:
      return "JOIN conditions";
    case Clause::kGroupBy:
      return "GROUP BY";
    case Clause::kHaving:
      return "HAVING";
    case Clause::kValues:
      return "VALUES";
    case Clause::kLimit:
      return "LIMIT";
    case Clause::kOffset:
      return "OFFSET";
    case Clause::kConstraint:
      return "CHECK and GENERATED";
    case Clause::kDefault:
      return "DEFAULT expressions";
    case Clause::kSelect:
    case Clause::kQualify:
    case Clause::kOrderBy:
      break;
  }
  return nullptr;
}

bool IsWindowFunctionName(std::string_view name) { return FindWindowFunction(name).has_value(); }

bool HasWindow(const Expr& e) {
  return e.kind == Expr::Kind::kWindow ||
         std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return HasWindow(*a); });
}

bool WindowCall::SameAs(const WindowCall& other) const {
  if (function != other.function || aggregate != other.aggregate || number != other.number ||
      ignore_nulls != other.ignore_nulls || distinct != other.distinct || !SameOrder(value_order, other.value_order) ||
      parameter.null != other.parameter.null || parameter.f64 != other.parameter.f64 ||
      parameter.text != other.parameter.text || frame != other.frame || type != other.type ||
      partition_by.size() != other.partition_by.size() || order_by.size() != other.order_by.size()) {
    return false;
  }
  for (size_t i = 0; i < partition_by.size(); ++i) {
    if (!partition_by[i]->SameAs(*other.partition_by[i])) return false;
  }
  for (size_t i = 0; i < order_by.size(); ++i) {
    const WindowKey &a = order_by[i], &b = other.order_by[i];
    if (!a.expr->SameAs(*b.expr) || a.descending != b.descending || a.nulls_first != b.nulls_first) return false;
  }
  return SameOrNone(value, other.value) && SameOrNone(count, other.count) && SameOrNone(fallback, other.fallback) &&
         SameOrNone(range_key, other.range_key) && SameOrNone(range_start, other.range_start) &&
         SameOrNone(range_end, other.range_end);
}

Result<ExprPtr> ExpressionBinder::BindWindow(std::string_view name, const ParseNode& node) {
  const int position = node.location();
  const std::string text(name);
  if (const char* const clause = ClauseName(clause_))
    return SqlError(ErrorKind::kWindowing, "window functions are not allowed in " + std::string(clause), position,
                    clause_ == Clause::kWhere || clause_ == Clause::kHaving ? "QUALIFY filters by them." : "");
  if (in_aggregate_)
    return SqlError(ErrorKind::kGrouping, "aggregate function calls cannot contain window function calls", position);
  if (in_window_) return SqlError(ErrorKind::kWindowing, "window function calls cannot be nested", position);
  if (context_->windows == nullptr)
    return SqlError(ErrorKind::kWindowing, "window functions are not allowed here", position);
  const std::optional<WindowFunction> function = FindWindowFunction(name);
  const bool statistic = IsStatisticName(name);
  if (!function && !statistic && !IsAggregateName(name)) {
    return SqlError("OVER specified, but " + text + " is not a window function nor an aggregate function", position);
  }
  if (function && node.Get(Field::k_agg_distinct) != nullptr)
    return Unsupported("DISTINCT is not implemented for non-aggregate window functions", position);
  if (function && node.Get(Field::k_agg_order) != nullptr) {
    return Unsupported("ORDER BY inside non-aggregate window functions is not implemented", position,
                       "The order of OVER (ORDER BY ...) says which row is the first.");
  }
  if (function && node.Get(Field::k_agg_filter) != nullptr)
    return Unsupported("FILTER is not implemented for non-aggregate window functions", position);
  WindowCall call;
  call.position = position;
  in_window_ = true;
  call.ignore_nulls = FindMark(*context_, Dialect::Mark::Kind::kIgnoreNulls, position) != nullptr;
  if (call.ignore_nulls &&
      (!function || kFunctions[static_cast<size_t>(*function)].argument != WindowFunctionRow::Argument::kValue)) {
    return SqlError(text + " does not take IGNORE NULLS", position,
                    "lag, lead, first_value, last_value and nth_value do; aggregates leave out NULLs anyway.");
  }
  if (function) {
    call.function = *function;
    TESSERA_TRY(BindWindowArguments(name, node, &call));
  } else if (statistic) {
    TESSERA_ASSIGN(ExprPtr e, BindStatistic(name, node, LeafOf(node, false)));
    in_window_ = false;
    return e;
  } else {
    TESSERA_ASSIGN(AggregateCall aggregate, BindAggregateCall(name, node));
    if (aggregate.ordered != nullptr) {
      in_window_ = false;
      return std::move(aggregate.ordered);
    }
    call.aggregate = aggregate.function;
    call.value = std::move(aggregate.argument);
    call.distinct = aggregate.distinct;
    call.type = aggregate.type;
    call.nullable = !Info(aggregate.function).zero_if_empty;
  }
  TESSERA_ASSIGN(ExprPtr e, AddWindow(std::move(call), node));
  in_window_ = false;
  return e;
}

Result<ExprPtr> ExpressionBinder::AddWindow(AggregateFunction f, ExprPtr value, bool distinct, const SqlType& type,
                                            int position, const ParseNode& node) {
  WindowCall call;
  call.position = position;
  call.aggregate = f;
  call.distinct = distinct;
  call.value = std::move(value);
  call.type = type;
  call.nullable = !Info(f).zero_if_empty;
  return AddWindow(std::move(call), node);
}

Result<ExprPtr> ExpressionBinder::AddWindow(WindowCall call, const ParseNode& node) {
  const int position = call.position;
  const ParseNode* over = node.Get(Field::k_over);
  if (over->Get(Field::k_name) != nullptr) {
    TESSERA_ASSIGN(over, FindWindow(over->Text(Field::k_name), nullptr, over->location()));
  }
  TESSERA_TRY(BindWindowDefinition(*over, &call));
  if (!vm::HasFrame(call.function)) {
    call.frame = {};
    for (ExprPtr* e : {&call.range_key, &call.range_start, &call.range_end}) e->reset();
  }

  std::vector<WindowCall>& all = *context_->windows;
  size_t index = 0;
  while (index < all.size() && !all[index].SameAs(call)) ++index;
  if (index == kMaxItems)
    return Unsupported("more than 4096 window functions in one SELECT are not supported", position);
  auto e = std::make_unique<Expr>();
  e->kind = Expr::Kind::kWindow;
  e->type = call.type;
  e->nullable = call.nullable;
  e->position = position;
  e->index = static_cast<int>(index);
  if (index == all.size()) all.push_back(std::move(call));
  return e;
}

Status ExpressionBinder::BindWindowArguments(std::string_view name, const ParseNode& node, WindowCall* call) {
  const int position = node.location();
  const WindowFunctionRow& row = kFunctions[static_cast<size_t>(call->function)];
  std::vector<ExprPtr> args;
  if (const ParseNode* list = node.Get(Field::k_args)) {
    for (const ParseNode& child : *list) {
      TESSERA_ASSIGN(ExprPtr e, Bind(child));
      args.push_back(std::move(e));
    }
  }
  const auto wrong = [&] {
    std::string types;
    for (const ExprPtr& a : args)
      types += (types.empty() ? "" : ", ") + (a->type.id == TypeId::kNull ? "unknown" : a->type.ToString());
    return SqlError(
        ErrorKind::kUndefinedFunction, "function " + std::string(name) + "(" + types + ") does not exist", position,
        "No function matches the given name and argument types. You might need to add explicit type casts.");
  };
  if (args.size() < row.least || args.size() > row.most || node.Get(Field::k_agg_star) != nullptr) return wrong();
  using Argument = WindowFunctionRow::Argument;
  call->type = SqlType::Of(row.result);
  call->nullable = row.argument != Argument::kNone;
  const size_t number = row.argument == Argument::kNumber ? 0 : 1;
  if (args.size() > number) {
    TESSERA_ASSIGN(args[number], Resolve(std::move(args[number]), kInteger));
    if (!args[number]->type.IsInteger()) return wrong();
    if (IsConstant(*args[number]) && !args[number]->constant.null) {
      call->number = args[number]->constant.i64;
    } else {
      call->count = std::move(args[number]);
    }
  }
  if (row.argument != Argument::kValue) return {};
  call->value = std::move(args[0]);
  if (args.size() == 3) {
    const std::optional<SqlType> both = UnifyTypes(call->value->type, args[2]->type);
    if (!both) {
      args[0] = std::move(call->value);
      args[1] = MakeConstant(Value::Int(kInteger, 1), position);
      return wrong();
    }
    const SqlType type = both->id == TypeId::kNull ? SqlType::Text() : *both;
    for (ExprPtr* e : {&call->value, &args[2]}) {
      TESSERA_ASSIGN(*e, Resolve(std::move(*e), type));
      TESSERA_ASSIGN(*e, Coerce(std::move(*e), type, CastContext::kExplicit));
    }
    call->fallback = std::move(args[2]);
  }
  TESSERA_ASSIGN(call->value, Resolve(std::move(call->value), SqlType::Text()));
  call->type = call->value->type;
  return {};
}

Result<const ParseNode*> ExpressionBinder::FindWindow(std::string_view name, const ParseNode* before,
                                                      int position) const {
  if (context_->clauses.windows != nullptr) {
    for (const ParseNode& w : *context_->clauses.windows) {
      if (&w == before || &w == context_->clauses.qualify) break;
      if (w.Text(Field::k_name) == name) return &w;
    }
  }
  return SqlError(ErrorKind::kUndefinedObject, "window \"" + std::string(name) + "\" does not exist", position);
}

Status ExpressionBinder::CheckWindowClause() {
  if (context_->clauses.windows == nullptr) return {};
  in_window_ = true;
  for (const ParseNode& w : *context_->clauses.windows) {
    if (&w == context_->clauses.qualify) break;
    const std::string_view name = w.Text(Field::k_name);
    for (const ParseNode& earlier : *context_->clauses.windows) {
      if (&earlier == &w) break;
      if (earlier.Text(Field::k_name) == name)
        return SqlError("window \"" + std::string(name) + "\" is already defined", w.location());
    }
    WindowCall call;
    TESSERA_TRY(BindWindowDefinition(w, &call));
  }
  in_window_ = false;
  return {};
}

Result<ExprPtr> ExpressionBinder::BindWindowKey(const ParseNode& node) {
  TESSERA_ASSIGN(ExprPtr e, BindTyped(node));
  return OrderedForm(std::move(e));
}

Status ExpressionBinder::BindWindowDefinition(const ParseNode& definition, WindowCall* call) {
  // A window may take those of another one: its PARTITION BY, and its ORDER BY if it has none itself.
  const ParseNode* partition = definition.Get(Field::k_partitionClause);
  const ParseNode* order = definition.Get(Field::k_orderClause);
  for (const ParseNode* d = &definition; d->Get(Field::k_refname) != nullptr;) {
    const std::string name(d->Text(Field::k_refname));
    const bool is_entry = d->Get(Field::k_name) != nullptr;
    TESSERA_ASSIGN(const ParseNode* const base, FindWindow(name, is_entry ? d : nullptr, d->location()));
    if (d->Get(Field::k_partitionClause) != nullptr)
      return SqlError(ErrorKind::kWindowing, "cannot override PARTITION BY clause of window \"" + name + "\"",
                      d->location());
    if (base->Get(Field::k_orderClause) != nullptr && d->Get(Field::k_orderClause) != nullptr)
      return SqlError(ErrorKind::kWindowing, "cannot override ORDER BY clause of window \"" + name + "\"",
                      d->location());
    if ((base->Number(Field::k_frameOptions) & kNonDefault) != 0) {
      return SqlError(ErrorKind::kWindowing, "cannot copy window \"" + name + "\" because it has a frame clause",
                      d->location(), "Name the window without parentheses: OVER " + name + ".");
    }
    if (base->Get(Field::k_partitionClause) != nullptr) partition = base->Get(Field::k_partitionClause);
    if (order == nullptr) order = base->Get(Field::k_orderClause);
    d = base;
  }
  if (partition != nullptr) {
    for (const ParseNode& node : *partition) {
      TESSERA_ASSIGN(ExprPtr e, BindWindowKey(node));
      const auto same = [&](const ExprPtr& k) { return k->SameAs(*e); };
      if (IsConstant(*e) || std::any_of(call->partition_by.begin(), call->partition_by.end(), same)) continue;
      call->partition_by.push_back(std::move(e));
    }
  }
  if (order != nullptr) {
    for (const ParseNode& sort : *order) {
      const ParseNode& node = *sort.Get(Field::k_node);
      if (sort.Get(Field::k_useOp) != nullptr)
        return Unsupported("ORDER BY ... USING is not supported", node.location());
      WindowKey key;
      key.descending = sort.Text(Field::k_sortby_dir) == "SORTBY_DESC";
      const std::string_view nulls = sort.Text(Field::k_sortby_nulls);
      key.nulls_first = nulls == "SORTBY_NULLS_FIRST" || (key.descending && nulls != "SORTBY_NULLS_LAST");
      TESSERA_ASSIGN(key.expr, BindWindowKey(node));
      call->order_by.push_back(std::move(key));
    }
  }
  TESSERA_TRY(BindFrame(definition, call));
  if (call->range_key == nullptr) {  // (else there is one, which the range needs)
    std::erase_if(call->order_by, [](const WindowKey& k) { return IsConstant(*k.expr); });
  }
  if (call->partition_by.size() + call->order_by.size() > vm::kMaxKeys)
    return Unsupported("a window by more than 64 columns is not supported", definition.location());
  return {};
}

Status ExpressionBinder::BindFrame(const ParseNode& definition, WindowCall* call) {
  const int64_t options = definition.Number(Field::k_frameOptions);
  WindowFrame& f = call->frame;
  const auto has = [&](FrameOption o) { return (options & o) != 0; };
  f.mode = has(kRows)     ? WindowFrame::Mode::kRows
           : has(kGroups) ? WindowFrame::Mode::kGroups
                          : WindowFrame::Mode::kRange;
  f.start = has(kStartCurrentRow)  ? Bound::kCurrentRow
            : has(kStartPreceding) ? Bound::kPreceding
            : has(kStartFollowing) ? Bound::kFollowing
                                   : Bound::kUnboundedPreceding;
  f.end = has(kEndUnboundedFollowing) ? Bound::kUnboundedFollowing
          : has(kEndPreceding)        ? Bound::kPreceding
          : has(kEndFollowing)        ? Bound::kFollowing
                                      : Bound::kCurrentRow;
  f.exclusion = has(kExcludeCurrentRow) ? WindowFrame::Exclusion::kCurrentRow
                : has(kExcludeGroup)    ? WindowFrame::Exclusion::kGroup
                : has(kExcludeTies)     ? WindowFrame::Exclusion::kTies
                                        : WindowFrame::Exclusion::kNone;
  if (f.mode == WindowFrame::Mode::kGroups && call->order_by.empty())
    return SqlError(ErrorKind::kWindowing, "GROUPS mode requires an ORDER BY clause", definition.location());
  const ParseNode* const start = definition.Get(Field::k_startOffset);
  const ParseNode* const end = definition.Get(Field::k_endOffset);
  if (f.mode != WindowFrame::Mode::kRange) {
    const char* const mode = f.mode == WindowFrame::Mode::kRows ? "ROWS" : "GROUPS";
    if (start != nullptr) {
      TESSERA_ASSIGN(call->range_start, BindFrameCount(*start, mode, "starting", &f.start_offset));
    }
    if (end != nullptr) {
      TESSERA_ASSIGN(call->range_end, BindFrameCount(*end, mode, "ending", &f.end_offset));
    }
    return {};
  }
  if (start == nullptr && end == nullptr) return {};
  if (call->order_by.size() != 1) {
    return SqlError(ErrorKind::kWindowing, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                    definition.location());
  }
  SqlType type = call->order_by[0].expr->type;
  if (start != nullptr) {
    TESSERA_ASSIGN(call->range_start, BindFrameRange(*start, "starting", f.start == Bound::kPreceding, call));
    type = *UnifyTypes(type, call->range_start->type);
  }
  if (end != nullptr) {
    TESSERA_ASSIGN(call->range_end, BindFrameRange(*end, "ending", f.end == Bound::kPreceding, call));
    type = *UnifyTypes(type, call->range_end->type);
  }
  TESSERA_ASSIGN(call->range_key, Copy(*call->order_by[0].expr));
  for (ExprPtr* e : {&call->range_key, &call->range_start, &call->range_end}) {
    if (*e == nullptr) continue;
    TESSERA_ASSIGN(*e, Coerce(std::move(*e), type, CastContext::kExplicit));
  }
  return {};
}

/// The offset of ROWS or GROUPS: nullptr and `count` if it is a constant.
Result<ExprPtr> ExpressionBinder::BindFrameCount(const ParseNode& node, const char* mode, const char* which,
                                                 int64_t* count) {
  TESSERA_ASSIGN(ExprPtr e, Bind(node));
  TESSERA_ASSIGN(e, Resolve(std::move(e), kBigint));
  if (!e->type.IsInteger()) {
    return SqlError(ErrorKind::kDatatypeMismatch,
                    "argument of " + std::string(mode) + " must be type bigint, not type " + e->type.ToString(),
                    e->position);
  }
  if (!IsConstant(*e)) return Coerce(std::move(e), kBigint, CastContext::kExplicit);
  const std::string offset = "frame " + std::string(which) + " offset must not be ";
  if (e->constant.null) return SqlError(offset + "null", e->position);
  if (e->constant.i64 < 0) return SqlError(offset + "negative", e->position);
  *count = e->constant.i64;
  return ExprPtr();
}

/// The value at which a RANGE ends: that of ORDER BY, less or more by the offset.
Result<ExprPtr> ExpressionBinder::BindFrameRange(const ParseNode& node, const char* which, bool preceding,
                                                 WindowCall* call) {
  const WindowKey& by = call->order_by[0];
  TESSERA_ASSIGN(ExprPtr e, Bind(node));
  const int position = e->position;
  const SqlType key = IsFunction(*by.expr, Function::kIntervalLength) ? SqlType::Of(TypeId::kInterval) : by.expr->type;
  const bool is_moment = key.id == TypeId::kDate || key.IsTimestamp();
  TESSERA_ASSIGN(e, Resolve(std::move(e), is_moment ? SqlType::Of(TypeId::kInterval) : key));
  const bool is_interval = key.id == TypeId::kInterval;
  if (!is_moment && !is_interval && !key.IsNumeric()) {
    return SqlError(ErrorKind::kWindowing,
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type " + key.ToString(),
                    position);
  }
  if (is_moment || is_interval ? e->type.id != TypeId::kInterval : !e->type.IsNumeric()) {
    return SqlError(ErrorKind::kWindowing,
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type " + key.ToString() +
                        " and offset type " + e->type.ToString(),
                    position, is_moment || is_interval ? "Write INTERVAL '1 day'." : "");
  }
  if (IsConstant(*e)) {
    if (e->constant.null)
      return SqlError(ErrorKind::kInvalidParameterValue, "frame " + std::string(which) + " offset must not be null",
                      position);
    if (IsNegative(e->constant)) return SqlError("invalid preceding or following size in window function", position);
  } else {
    call->frame.varies = true;
  }
  if (is_interval) e = OrderedForm(std::move(e));  // as the key is
  TESSERA_ASSIGN(ExprPtr from, Copy(*by.expr));
  if (key.IsInteger()) {
    TESSERA_ASSIGN(from, Coerce(std::move(from), kBigint, CastContext::kExplicit));
  }
  if (key.IsFloat() || e->type.IsFloat()) {
    TESSERA_ASSIGN(from, Coerce(std::move(from), kDouble, CastContext::kExplicit));
  }
  return Infix(preceding == by.descending ? "+" : "-", std::move(from), std::move(e), position);
}

}  // namespace tessera
