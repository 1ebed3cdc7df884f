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

/// One call of an aggregate of values in order.
class ExpressionBinder::OrderedCall {
 public:
  OrderedCall(ExpressionBinder* binder, std::string_view name, const ParseNode& node, std::vector<ExprPtr> args,
              std::vector<AggregateOrder> order, ExprPtr condition, int position)
      : binder_(*binder),
        called_(name),
        node_(node),
        position_(position),
        arrays_(binder->context_, binder->clause_),
        function_(FindAggregate(name, kDouble)->function),
        joins_(function_ == AggregateFunction::kStringAgg),
        quantile_(function_ == AggregateFunction::kQuantile || function_ == AggregateFunction::kQuantileBetween),
        array_(joins_ && IsArray(node)),
        extreme_(name.starts_with("arg_") || name.ends_with("_by")),
        last_(name == "last"),
        args_(std::move(args)),
        order_(std::move(order)),
        condition_(std::move(condition)) {
    a_.function = function_;
    a_.position = position;
    a_.distinct = node.Get(Field::k_agg_distinct) != nullptr;
  }

  Result<ExprPtr> Bind() {
    TESSERA_TRY(TakeWithinGroup());
    const size_t most = quantile_ || (joins_ && !array_) || extreme_ ? 2 : 1, least = joins_ ? 1 : most;
    if (args_.size() < least || args_.size() > most) {
      return SqlError("function " + called_ + " does not take " + std::to_string(args_.size()) + " arguments",
                      position_, kCastHint);
    }
    TESSERA_TRY(MakeValue());
    TESSERA_TRY(TakeParameter());
    if (quantile_ && a_.parameter.null) return MakeNull(a_.type, position_);
    TESSERA_TRY(FitValue());
    const bool filters = condition_ != nullptr, ordered = !order_.empty();
    if (extreme_) TESSERA_TRY(OrderByExtreme());
    if (last_) {
      for (AggregateOrder& o : order_) {
        o.descending = !o.descending;
        o.nulls_first = !o.nulls_first;
      }
    }
    if (condition_ != nullptr) TESSERA_TRY(LeaveOutOthers());
    if (!TakesRow(function_) && (!joins_ || a_.distinct)) TESSERA_TRY(OrderByValue());
    if (TakesRow(function_)) a_.distinct = false;
    a_.order = std::move(order_);
    a_.argument = std::move(value_);
    if (binder_.in_aggregate_ > 0) {
      TESSERA_ASSIGN(ExprPtr e, binder_.AddOrdered(std::move(a_)));
      return Shown(std::move(e));
    }
    if (last_ && filters && !ordered && !(a_.order.empty() && TakesRow(function_))) {
      return Unsupported("last with FILTER and OVER but without ORDER BY is not supported", position_,
                         "last(x ORDER BY y) FILTER (...) OVER (...)");
    }
    TESSERA_ASSIGN(ExprPtr e, AddAsWindow());
    return Shown(std::move(e));
  }

 private:
  /// WITHIN GROUP has the first argument.
  Status TakeWithinGroup() {
    const bool within_group = node_.Get(Field::k_agg_within_group) != nullptr;
    const bool percentile = called_.starts_with("percentile_");
    if (percentile && !within_group) {
      return SqlError("WITHIN GROUP is required for ordered-set aggregate " + called_, position_,
                      called_ + "(0.5) WITHIN GROUP (ORDER BY x)");
    }
    if (!within_group) return Status::Ok();
    if (!percentile && called_ != "mode")
      return SqlError(called_ + " is not an ordered-set aggregate, so it cannot have WITHIN GROUP", position_);
    if (order_.size() != 1) return SqlError(called_ + " takes one expression in WITHIN GROUP", position_);
    if (IsFunction(*order_[0].expr, Function::kIntervalLength)) order_[0].expr = std::move(order_[0].expr->args[0]);
    by_value_.descending = order_[0].descending;
    args_.insert(args_.begin(), std::move(order_[0].expr));
    order_.clear();
    return Status::Ok();
  }

  /// What is made of the values, and the aggregate's type.
  Status MakeValue() {
    value_ = std::move(args_[0]);
    if (array_) {
      TESSERA_ASSIGN(value_, binder_.Resolve(std::move(value_), SqlType::Text()));
      TESSERA_TRY(KeepOriginal());
      TESSERA_ASSIGN(value_, arrays_.Element(std::move(value_), &array_type_));
    } else if (joins_) {
      TESSERA_ASSIGN(value_, binder_.Coerce(std::move(value_), SqlType::Text(), CastContext::kAssignment));
    } else {
      const bool number = AggregateArgumentClass(called_) == kClassNumber;
      TESSERA_ASSIGN(value_, binder_.Resolve(std::move(value_), number ? kDouble : SqlType::Text()));
    }
    // Between two moments there are others.
    const bool between = function_ == AggregateFunction::kMedian || function_ == AggregateFunction::kQuantileBetween;
    if (between && (ClassOf(value_->type) & kClassMoment) != 0) {
      moment_ = SqlType::Of(value_->type.id == TypeId::kTimestampTz ? TypeId::kTimestampTz : TypeId::kTimestamp);
      TESSERA_ASSIGN(value_, binder_.Cast(std::move(value_), moment_));
      TESSERA_ASSIGN(value_,
                     binder_.Difference(std::move(value_), MakeConstant(Value::Int(moment_, 0), position_), position_));
    }
    std::optional<AggregateRule> rule = FindAggregate(called_, value_->type);
    if (between && value_->type.id == TypeId::kInterval) rule = AggregateRule{function_, value_->type};
    if (!rule)
      return SqlError("function " + called_ + "(" + value_->type.ToString() + ") does not exist", position_, kCastHint);
    a_.type = rule->result;
    return Status::Ok();
  }

  Status TakeParameter() {
    if (function_ == AggregateFunction::kMedian) a_.parameter = Value::Float(kDouble, 0.5);
    if (!quantile_ && !joins_) return Status::Ok();
    ExprPtr parameter = args_.size() > 1 ? std::move(args_[1]) : MakeConstant(Value::Text(","), position_);
    TESSERA_ASSIGN(a_.parameter, ConstantParameter(&binder_, std::move(parameter), joins_, called_, position_));
    return Status::Ok();
  }

  /// The value becomes one of the aggregate's type.
  Status FitValue() {
    // HISTOGRAM shows texts, in the order of the values.
    const bool counts = function_ == AggregateFunction::kHistogram;
    if (counts && binder_.in_aggregate_ == 0)
      return Unsupported(called_ + " as a window function is not supported", position_,
                         "GROUP BY the partition's columns.");
    if (counts) TESSERA_TRY(KeepOriginal());
    if (!(value_->type == a_.type)) {
      TESSERA_ASSIGN(value_, binder_.Cast(std::move(value_), a_.type));
    }
    return Status::Ok();
  }

  Status KeepOriginal() {
    TESSERA_ASSIGN(original_, binder_.Copy(*value_));
    original_ = OrderedForm(std::move(original_));
    return Status::Ok();
  }

  /// ARG_MIN and its kin: the value of the row with the least or the greatest second argument, if both are there.
  Status OrderByExtreme() {
    AggregateOrder by;
    TESSERA_ASSIGN(by.expr, binder_.Resolve(std::move(args_[1]), SqlType::Text()));
    by.expr = OrderedForm(std::move(by.expr));
    by.descending = called_ == "arg_max" || called_ == "max_by";
    order_.clear();
    for (const Expr* e : {value_.get(), by.expr.get()}) {
      if (!e->nullable) continue;
      TESSERA_ASSIGN(ExprPtr x, binder_.Copy(*e));
      const SqlType boolean = SqlType::Of(TypeId::kBoolean);
      TESSERA_ASSIGN(ExprPtr present, Call(Function::kIsNotNull, boolean, ExprList(std::move(x))));
      if (condition_ != nullptr) {
        TESSERA_ASSIGN(present, Call(Function::kAnd, boolean, ExprList(std::move(condition_), std::move(present))));
      }
      condition_ = std::move(present);
    }
    order_.push_back(std::move(by));
    return Status::Ok();
  }

  /// FILTER (WHERE c) makes the value NULL where c is not true; and no such row is the first.
  Status LeaveOutOthers() {
    const SqlType type = value_->type;
    TESSERA_ASSIGN(ExprPtr again, binder_.Copy(*condition_));
    TESSERA_ASSIGN(value_, Call(Function::kCase, type,
                                ExprList(std::move(condition_), std::move(value_), MakeNull(type, position_))));
    if (!TakesRow(function_)) return Status::Ok();
    AggregateOrder out;
    ExprPtr in = MakeConstant(Value::Int(kInteger, 0), position_),
            other = MakeConstant(Value::Int(kInteger, 1), position_);
    TESSERA_ASSIGN(out.expr,
                   Call(Function::kCase, kInteger, ExprList(std::move(again), std::move(in), std::move(other))));
    order_.insert(order_.begin(), std::move(out));
    return Status::Ok();
  }

  /// Such an aggregate has an order of its own.
  Status OrderByValue() {
    if (!order_.empty() &&
        (order_.size() > 1 || !order_[0].expr->SameAs(array_ ? *original_ : *OrderedForm(value_->Clone())))) {
      if (joins_) {
        return SqlError("in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list", position_);
      }
      order_.clear();
    }
    if (!order_.empty()) by_value_.descending = order_[0].descending;
    if (!order_.empty()) by_value_.nulls_first = order_[0].nulls_first;
    const bool counts = function_ == AggregateFunction::kHistogram;
    by_value_.expr =
        counts || array_ ? std::move(original_) : value_->Clone();  // (intervals are in order as they are stored)
    order_.clear();
    order_.push_back(std::move(by_value_));
    return Status::Ok();
  }

  Result<ExprPtr> AddAsWindow() {
    WindowCall call;
    call.function = vm::WindowFunction::kFold;
    if (a_.order.empty() && TakesRow(function_))
      call.function = last_ ? vm::WindowFunction::kLastValue : vm::WindowFunction::kFirstValue;
    call.aggregate = function_;
    call.value = std::move(a_.argument);
    call.distinct = a_.distinct;
    call.value_order = std::move(a_.order);
    call.parameter = std::move(a_.parameter);
    call.type = a_.type;
    call.position = position_;
    return binder_.AddWindow(std::move(call), node_);
  }

  /// The aggregate's value as the call has it.
  Result<ExprPtr> Shown(ExprPtr e) {
    if (array_) return arrays_.InBraces(std::move(e), array_type_, position_);
    if (moment_.id == TypeId::kNull) return e;
    TESSERA_ASSIGN(e, binder_.Folded(MakeCast(std::move(e), SqlType::Of(TypeId::kBigint))));
    return binder_.AddNumber(Function::kAddMicros, MakeConstant(Value::Int(moment_, 0), position_), std::move(e),
                             position_);
  }

  Result<ExprPtr> Call(Function f, const SqlType& type, std::vector<ExprPtr> args) {
    return binder_.Folded(MakeFunction(f, type, position_, std::move(args)));
  }

  ExpressionBinder& binder_;
  const std::string called_;
  const ParseNode& node_;
  const int position_;
  const ArrayBinder arrays_;
  const AggregateFunction function_;
  const bool joins_, quantile_, array_, extreme_, last_;
  std::vector<ExprPtr> args_;
  std::vector<AggregateOrder> order_;
  ExprPtr condition_;        // nullptr: all rows count
  AggregateOrder by_value_;  // NULLs do not count: they come last, whatever is said
  Aggregate a_;
  ExprPtr value_, original_;  // original_: before it became a text or an element
  SqlType moment_, array_type_;
};

Result<ExprPtr> ExpressionBinder::BindOrdered(std::string_view name, const ParseNode& node, std::vector<ExprPtr> args,
                                              std::vector<AggregateOrder> order, ExprPtr condition, int position) {
  return OrderedCall(this, name, node, std::move(args), std::move(order), std::move(condition), position).Bind();
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
