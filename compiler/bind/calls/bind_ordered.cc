// Binding aggregates that need all values of a group in order: quantiles, mode, string_agg, first, arg_min and their kin.
#include <string>

#include "compiler/bind/array_binder.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/query/window_call.h"

namespace tessera {
namespace {

const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);

constexpr const char* kCastHint =
    "No function matches the given name and argument types. You might need to add explicit type casts.";

/// Whether the rows without a value have a say, because it is that of one row.
bool TakesRow(AggregateFunction f) { return f == AggregateFunction::kFirstValue; }

/// What stands between texts, or a fraction, which may be NULL.
Result<Value> ConstantParameter(ExpressionBinder* binder, ExprPtr parameter, bool joins, const std::string& called,
                                int position) {
  const char* what = joins ? "text between texts" : "fraction";
  if (!IsConstant(*parameter)) {
    return Unsupported("a " + std::string(what) + " of " + called + " that is not a constant is not supported",
                       parameter->position);
  }
  TESSERA_ASSIGN(parameter,
                 binder->Coerce(std::move(parameter), joins ? SqlType::Text() : kDouble, CastContext::kAssignment));
  if (!IsConstant(*parameter)) return SqlError("no constant", position);
  Value value = parameter->constant;
  if (value.null) return joins ? Value::Text("") : value;
  if (!joins && !(value.f64 >= 0 && value.f64 <= 1))
    return SqlError("percentile value " + ToText(value) + " is not between 0 and 1", parameter->position);
  return value;
}

}  // namespace

bool SameOrder(const std::vector<AggregateOrder>& a, const std::vector<AggregateOrder>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].expr->SameAs(*b[i].expr) || a[i].descending != b[i].descending || a[i].nulls_first != b[i].nulls_first)
      return false;
  }
  return true;
}

bool IsOrderedAggregate(std::string_view name) {
  const std::optional<AggregateRule> rule = FindAggregate(name, kDouble);
  return rule && Info(rule->function).state == StateRule::kValues;
}

Result<std::vector<AggregateOrder>> ExpressionBinder::BindAggregateOrder(const ParseNode& list) {
  std::vector<AggregateOrder> order;
  for (const ParseNode& sort : list) {
    const ParseNode& node = *sort.Get(Field::k_node);
    if (sort.Get(Field::k_useOp) != nullptr) return Unsupported("ORDER BY ... USING is not supported", node.location());
    if (order.size() == 64) {
      return Unsupported("ORDER BY of more than 64 expressions in an aggregate is not supported", node.location());
    }
    AggregateOrder key;
    key.descending = sort.Text(Field::k_sortby_dir) == "SORTBY_DESC";
    const std::string_view nulls = sort.Text(Field::k_sortby_nulls);
    key.nulls_first = nulls == "SORTBY_NULLS_FIRST" || (key.descending && nulls != "SORTBY_NULLS_LAST");
    TESSERA_ASSIGN(key.expr, BindTyped(node));
    key.expr = OrderedForm(std::move(key.expr));
    order.push_back(std::move(key));
  }
  return order;
}

Result<ExprPtr> ExpressionBinder::BindOrdered(std::string_view name, const ParseNode& node, std::vector<ExprPtr> args,
                                              std::vector<AggregateOrder> order, ExprPtr condition, int position) {
  const std::string called(name);
  const AggregateFunction function = FindAggregate(name, kDouble)->function;
  const bool within_group = node.Get(Field::k_agg_within_group) != nullptr;
  const bool percentile = name.starts_with("percentile_"), joins = function == AggregateFunction::kStringAgg;
  const bool quantile = function == AggregateFunction::kQuantile || function == AggregateFunction::kQuantileBetween;
  const bool array = joins && IsArray(node);
  const ArrayBinder arrays(context_, clause_);
  const bool extreme = name.starts_with("arg_") || name.ends_with("_by"), last = name == "last";
  Aggregate a;
  a.function = function;
  a.position = position;
  a.distinct = node.Get(Field::k_agg_distinct) != nullptr;
  AggregateOrder by_value;  // NULLs do not count: they come last, whatever is said
  if (percentile && !within_group) {
    return SqlError("WITHIN GROUP is required for ordered-set aggregate " + called, position,
                    called + "(0.5) WITHIN GROUP (ORDER BY x)");
  }
  if (within_group) {
    if (!percentile && name != "mode")
      return SqlError(called + " is not an ordered-set aggregate, so it cannot have WITHIN GROUP", position);
    if (order.size() != 1) return SqlError(called + " takes one expression in WITHIN GROUP", position);
    if (IsFunction(*order[0].expr, Function::kIntervalLength)) order[0].expr = std::move(order[0].expr->args[0]);
    by_value.descending = order[0].descending;
    args.insert(args.begin(), std::move(order[0].expr));
    order.clear();
  }
  const size_t most = quantile || (joins && !array) || extreme ? 2 : 1, least = joins ? 1 : most;
  if (args.size() < least || args.size() > most) {
    return SqlError("function " + called + " does not take " + std::to_string(args.size()) + " arguments", position,
                    kCastHint);
  }

  // What is made of the values.
  ExprPtr value = std::move(args[0]), original;
  SqlType moment, array_type;
  if (array) {
    TESSERA_ASSIGN(value, Resolve(std::move(value), SqlType::Text()));
    TESSERA_ASSIGN(original, Copy(*value));
    original = OrderedForm(std::move(original));
    TESSERA_ASSIGN(value, arrays.Element(std::move(value), &array_type));
  } else if (joins) {
    TESSERA_ASSIGN(value, Coerce(std::move(value), SqlType::Text(), CastContext::kAssignment));
  } else {
    TESSERA_ASSIGN(value,
                   Resolve(std::move(value), AggregateArgumentClass(name) == kClassNumber ? kDouble : SqlType::Text()));
  }
  // Between two moments there are others.
  const bool between = function == AggregateFunction::kMedian || function == AggregateFunction::kQuantileBetween;
  if (between && (ClassOf(value->type) & kClassMoment) != 0) {
    moment = SqlType::Of(value->type.id == TypeId::kTimestampTz ? TypeId::kTimestampTz : TypeId::kTimestamp);
    TESSERA_ASSIGN(value, Cast(std::move(value), moment));
    TESSERA_ASSIGN(value, Difference(std::move(value), MakeConstant(Value::Int(moment, 0), position), position));
  }
  std::optional<AggregateRule> rule = FindAggregate(name, value->type);
  if (between && value->type.id == TypeId::kInterval) rule = AggregateRule{function, value->type};
  if (!rule)
    return SqlError("function " + called + "(" + value->type.ToString() + ") does not exist", position, kCastHint);
  a.type = rule->result;
  if (function == AggregateFunction::kMedian) a.parameter = Value::Float(kDouble, 0.5);
  if (quantile || joins) {
    ExprPtr parameter = args.size() > 1 ? std::move(args[1]) : MakeConstant(Value::Text(","), position);
    TESSERA_ASSIGN(a.parameter, ConstantParameter(this, std::move(parameter), joins, called, position));
    if (a.parameter.null) return MakeNull(a.type, position);
  }
  // HISTOGRAM shows texts, in the order of the values.
  const bool counts = function == AggregateFunction::kHistogram;
  if (counts && in_aggregate_ == 0)
    return Unsupported(called + " as a window function is not supported", position,
                       "GROUP BY the partition's columns.");
  if (counts) {
    TESSERA_ASSIGN(original, Copy(*value));
    original = OrderedForm(std::move(original));
  }
  if (!(value->type == a.type)) {
    TESSERA_ASSIGN(value, Cast(std::move(value), a.type));
  }

  // Whose value it is.
  const bool filters = condition != nullptr, ordered = !order.empty();
  if (extreme) {
    AggregateOrder by;
    TESSERA_ASSIGN(by.expr, Resolve(std::move(args[1]), SqlType::Text()));
    by.expr = OrderedForm(std::move(by.expr));
    by.descending = name == "arg_max" || name == "max_by";
    order.clear();
    for (const Expr* e : {value.get(), by.expr.get()}) {
      if (!e->nullable) continue;
      TESSERA_ASSIGN(ExprPtr x, Copy(*e));
      const SqlType boolean = SqlType::Of(TypeId::kBoolean);
      TESSERA_ASSIGN(ExprPtr present,
                     Folded(MakeFunction(Function::kIsNotNull, boolean, position, ExprList(std::move(x)))));
      if (condition != nullptr) {
        TESSERA_ASSIGN(present, Folded(MakeFunction(Function::kAnd, boolean, position,
                                                    ExprList(std::move(condition), std::move(present)))));
      }
      condition = std::move(present);
    }
    order.push_back(std::move(by));
  }
  if (last) {
    for (AggregateOrder& o : order) {
      o.descending = !o.descending;
      o.nulls_first = !o.nulls_first;
    }
  }
  if (condition != nullptr) {
    // FILTER (WHERE c) makes the value NULL where c is not true; and no such row is the first.
    const SqlType type = value->type;
    TESSERA_ASSIGN(ExprPtr again, Copy(*condition));
    TESSERA_ASSIGN(value,
                   Folded(MakeFunction(Function::kCase, type, position,
                                       ExprList(std::move(condition), std::move(value), MakeNull(type, position)))));
    if (TakesRow(function)) {
      AggregateOrder out;
      ExprPtr in = MakeConstant(Value::Int(kInteger, 0), position),
              other = MakeConstant(Value::Int(kInteger, 1), position);
      TESSERA_ASSIGN(out.expr, Folded(MakeFunction(Function::kCase, kInteger, position,
                                                   ExprList(std::move(again), std::move(in), std::move(other)))));
      order.insert(order.begin(), std::move(out));
    }
  }
  if (!TakesRow(function) && (!joins || a.distinct)) {
    if (!order.empty() &&
        (order.size() > 1 || !order[0].expr->SameAs(array ? *original : *OrderedForm(value->Clone())))) {
      if (joins) {
        return SqlError("in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list", position);
      }
      order.clear();  // such an aggregate has an order of its own
    }
    if (!order.empty()) by_value.descending = order[0].descending;
    if (!order.empty()) by_value.nulls_first = order[0].nulls_first;
    by_value.expr =
        counts || array ? std::move(original) : value->Clone();  // (intervals are in order as they are stored)
    order.clear();
    order.push_back(std::move(by_value));
  }
  if (TakesRow(function)) a.distinct = false;
  a.order = std::move(order);
  a.argument = std::move(value);
  const auto moment_of = [&](ExprPtr e) -> Result<ExprPtr> {
    if (array) return arrays.InBraces(std::move(e), array_type, position);
    if (moment.id == TypeId::kNull) return e;
    TESSERA_ASSIGN(e, Folded(MakeCast(std::move(e), SqlType::Of(TypeId::kBigint))));
    return AddNumber(Function::kAddMicros, MakeConstant(Value::Int(moment, 0), position), std::move(e), position);
  };
  if (in_aggregate_ > 0) {
    TESSERA_ASSIGN(ExprPtr e, AddOrdered(std::move(a)));
    return moment_of(std::move(e));
  }

  // As a window function.
  WindowCall call;
  call.function = vm::WindowFunction::kFold;
  if (a.order.empty() && TakesRow(function)) {
    call.function = last ? vm::WindowFunction::kLastValue : vm::WindowFunction::kFirstValue;
  } else if (last && filters && !ordered) {
    return Unsupported("last with FILTER and OVER but without ORDER BY is not supported", position,
                       "last(x ORDER BY y) FILTER (...) OVER (...)");
  }
  call.aggregate = function;
  call.value = std::move(a.argument);
  call.distinct = a.distinct;
  call.value_order = std::move(a.order);
  call.parameter = std::move(a.parameter);
  call.type = a.type;
  call.position = position;
  TESSERA_ASSIGN(ExprPtr e, AddWindow(std::move(call), node));
  return moment_of(std::move(e));
}

Result<ExprPtr> ExpressionBinder::AddOrdered(Aggregate a) {
  std::vector<Expr*> arguments = {a.argument.get()};
  for (const AggregateOrder& o : a.order) arguments.push_back(o.expr.get());
  int levels = 0;
  TESSERA_ASSIGN(const BindContext* const block, BlockOf(arguments, a.position, &levels));
  std::vector<Aggregate>& all = *block->aggregates;
  const auto same = [&](const Aggregate& b) {
    return b.function == a.function && b.distinct == a.distinct && b.argument->SameAs(*a.argument) &&
           b.parameter.null == a.parameter.null && b.parameter.f64 == a.parameter.f64 &&
           b.parameter.text == a.parameter.text && SameOrder(b.order, a.order);
  };
  size_t index = 0;
  while (index < all.size() && !same(all[index])) ++index;
  ExprPtr e = AggregateValue(index, levels, a.type, true, a.position);
  if (index == all.size()) {
    if (index == kMaxItems) return Unsupported("more than 4096 aggregates in one SELECT are not supported", a.position);
    all.push_back(std::move(a));
  }
  return e;
}

}  // namespace tessera
