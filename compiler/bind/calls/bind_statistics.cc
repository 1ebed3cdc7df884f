// Binding aggregates that are made of others: of pairs of numbers, and the geometric mean.
#include <algorithm>
#include <string>

#include "compiler/bind/expression_binder.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);

/// What a name is, as an expression in postfix notation over the pairs (y, x) without NULLs:
///   n count   X Y sums   x y Sxx, Syy: sums of squared differences from the mean   p Sxy, that of products of differences
///   s sum of x * y   m Szz of z = x + y   1 2 numbers   + - * / operators   q square root
/// x / 0 is NULL.
struct Formula {
  std::string_view name, text;
};
constexpr Formula kFormulas[] = {
    {"covar_pop", "pn/"},
    {"covar_samp", "pn1-/"},
    {"corr", "pxy*q/"},
    {"regr_slope", "px/"},
    {"regr_intercept", "YXp*x/-n/"},
    {"regr_r2", "pp*xy*/"},
    {"regr_avgx", "Xn/"},
    {"regr_avgy", "Yn/"},
    {"regr_sxx", "x"},
    {"regr_syy", "y"},
    {"regr_sxy", "p"},
    {"regr_count", "n"},
};

}  // namespace

/// The formulas of a statistic of pairs, over the numbers (y, x) of `args`.
class ExpressionBinder::PairStatistic {
 public:
  PairStatistic(ExpressionBinder* binder, const std::vector<ExprPtr>& args, const AggregateLeaf& leaf, int position)
      : binder_(*binder), args_(args), leaf_(leaf), position_(position) {}

  /// `text`: see Formula.
  Result<ExprPtr> ValueOf(std::string_view text) {
    std::vector<ExprPtr> stack;
    for (const char c : text) {
      ExprPtr e;
      if (c == 'p') {
        TESSERA_ASSIGN(e, Products());
      } else if (c == '1' || c == '2') {
        e = MakeConstant(Value::Float(kDouble, c - '0'), position_);
      } else if (c == 'q') {
        TESSERA_ASSIGN(e, Call(Function::kRoot, ExprList(std::move(stack.back()))));
        stack.pop_back();
      } else if (c == '+' || c == '-' || c == '*' || c == '/') {
        ExprPtr right = std::move(stack.back());
        stack.pop_back();
        TESSERA_ASSIGN(e, binder_.Infix(std::string_view(&c, 1), std::move(stack.back()), std::move(right), position_));
        stack.pop_back();
      } else {
        TESSERA_ASSIGN(e, Leaf(c));
      }
      stack.push_back(std::move(e));
    }
    return std::move(stack.back());
  }

  /// regr_r2 where `value` is that of its formula.
  Result<ExprPtr> Determination(ExprPtr value) {
    // All y are the same: a level line goes through all points, unless all x are the same, too.
    ExprPtr zero = MakeConstant(Value::Float(kDouble, 0), position_), again = zero->Clone();
    TESSERA_ASSIGN(ExprPtr x, ValueOf("x"));
    TESSERA_ASSIGN(ExprPtr y, ValueOf("y"));
    TESSERA_ASSIGN(ExprPtr differ, binder_.Comparison(Function::kNe, std::move(x), std::move(zero), position_));
    TESSERA_ASSIGN(ExprPtr level, binder_.Comparison(Function::kEq, std::move(y), std::move(again), position_));
    TESSERA_ASSIGN(level, binder_.Folded(MakeFunction(Function::kAnd, kBoolean, position_,
                                                      ExprList(std::move(differ), std::move(level)))));
    ExprPtr one = MakeConstant(Value::Float(kDouble, 1), position_);
    return Call(Function::kCase, ExprList(std::move(level), std::move(one), std::move(value)));
  }

 private:
  Result<ExprPtr> Call(Function f, std::vector<ExprPtr> args) {
    return binder_.Folded(MakeFunction(f, kDouble, position_, std::move(args)));
  }

  bool IsExact() const { return args_[0]->type.id != TypeId::kDouble; }

  /// p: exact, or from the sums, unless the means are so large against the differences that these would lose their digits. The sum of
  /// both numbers keeps them then, but loses those of a number that varies much less than the other.
  Result<ExprPtr> Products() {
    if (IsExact()) return binder_.BindExactProducts(*args_[1], *args_[0], leaf_, position_);
    TESSERA_ASSIGN(ExprPtr means, ValueOf("XY*n/"));
    TESSERA_ASSIGN(means, Call(Function::kAbs, ExprList(std::move(means))));
    TESSERA_ASSIGN(ExprPtr squares, ValueOf("xy+"));
    TESSERA_ASSIGN(ExprPtr small, binder_.Comparison(Function::kLe, std::move(means), std::move(squares), position_));
    TESSERA_ASSIGN(ExprPtr of_sums, ValueOf("sXY*n/-"));
    TESSERA_ASSIGN(ExprPtr of_moments, ValueOf("mx-y-2/"));
    return Call(Function::kCase, ExprList(std::move(small), std::move(of_sums), std::move(of_moments)));
  }

  /// What is aggregated of the pairs.
  Result<ExprPtr> Leaf(char c) {
    if (c == 'n') {
      TESSERA_ASSIGN(ExprPtr x, binder_.Copy(*args_[1]));
      TESSERA_ASSIGN(ExprPtr count, leaf_(AggregateFunction::kCount, std::move(x), SqlType::Of(TypeId::kBigint)));
      return MakeCast(std::move(count), kDouble);
    }
    const bool of_x = c == 'x' || c == 'X', of_y = c == 'y' || c == 'Y';
    if (IsExact()) {
      const Expr& z = *args_[of_y ? 0 : 1];
      const bool squares = c == 'x' || c == 'y';
      return squares ? binder_.BindExactProducts(z, z, leaf_, position_) : binder_.BindExactSum(z, leaf_, position_);
    }
    TESSERA_ASSIGN(ExprPtr e, binder_.Copy(*args_[of_y ? 0 : 1]));
    if (!of_x && !of_y) {
      TESSERA_ASSIGN(ExprPtr y, binder_.Copy(*args_[0]));
      TESSERA_ASSIGN(e, binder_.Infix(c == 's' ? "*" : "+", std::move(e), std::move(y), position_));
    }
    const bool sum = c == 'X' || c == 'Y' || c == 's';
    return leaf_(sum ? AggregateFunction::kSum : AggregateFunction::kDeviations, std::move(e), kDouble);
  }

  ExpressionBinder& binder_;
  const std::vector<ExprPtr>& args_;
  const AggregateLeaf& leaf_;
  const int position_;
};

Result<std::vector<ExprPtr>> ExpressionBinder::BindStatisticNumbers(const std::string& called, size_t wanted,
                                                                    const ParseNode& node) {
  const int position = node.location();
  std::vector<ExprPtr> args;
  if (const ParseNode* list = node.Get(Field::k_args)) {
    for (const ParseNode& child : *list) {
      TESSERA_ASSIGN(ExprPtr e, Bind(child));
      TESSERA_ASSIGN(e, Resolve(std::move(e), kDouble));
      args.push_back(std::move(e));
    }
  }
  if (args.size() != wanted || node.Get(Field::k_agg_star) != nullptr) {
    return SqlError("function " + called + " takes " + std::to_string(wanted) + (wanted == 1 ? " number" : " numbers"),
                    position);
  }
  if (node.Get(Field::k_agg_distinct) != nullptr)
    return Unsupported("DISTINCT in " + called + " is not supported", position, "Take it from a SELECT DISTINCT.");
  if (node.Get(Field::k_agg_within_group) != nullptr)
    return SqlError(called + " is not an ordered-set aggregate, so it cannot have WITHIN GROUP", position);
  if (const ParseNode* keys = node.Get(Field::k_agg_order)) {
    TESSERA_TRY(BindAggregateOrder(*keys).status());  // the order makes no difference
  }

  return args;
}

Status ExpressionBinder::LeaveOutPairs(const std::string& called, const ParseNode& node,
                                       std::vector<ExprPtr>* numbers) {
  const int position = node.location();
  std::vector<ExprPtr>& args = *numbers;
  const bool pairs = args.size() > 1;
  const bool exact = pairs && std::ranges::all_of(args, [](const ExprPtr& a) { return HasExactMoments(a->type); });
  // Rows count whose numbers all are there, and where the condition of FILTER is true.
  ExprPtr present;
  const auto require = [&](ExprPtr condition) -> Status {
    if (present != nullptr) {
      TESSERA_ASSIGN(condition, Folded(MakeFunction(Function::kAnd, kBoolean, position,
                                                    ExprList(std::move(present), std::move(condition)))));
    }
    present = std::move(condition);
    return Status::Ok();
  };
  if (const ParseNode* filter = node.Get(Field::k_agg_filter)) {
    TESSERA_ASSIGN(ExprPtr condition, BindBoolean(*filter, "argument of FILTER"));
    TESSERA_TRY(require(std::move(condition)));
  }
  for (ExprPtr& a : args) {
    if ((ClassOf(a->type) & kClassNumber) == 0) {
      return SqlError("function " + called + " takes numbers, not " + a->type.ToString(), a->position,
                      "You might need to add explicit type casts.");
    }
    if (pairs && in_aggregate_ > 0 && LevelsOut({a.get()}) > 0) {
      return Unsupported(called + " of columns of an enclosing query is not supported", position,
                         "Compute it in that query.");
    }
    if (!exact) {
      TESSERA_ASSIGN(a, Folded(MakeCast(std::move(a), kDouble)));
    }
    if (!a->nullable || !pairs) continue;
    TESSERA_ASSIGN(ExprPtr again, Copy(*a));
    TESSERA_ASSIGN(ExprPtr is_there,
                   Folded(MakeFunction(Function::kIsNotNull, kBoolean, position, ExprList(std::move(again)))));
    TESSERA_TRY(require(std::move(is_there)));
  }
  if (present != nullptr) {
    for (ExprPtr& a : args) {
      TESSERA_ASSIGN(ExprPtr condition, Copy(*present));
      const SqlType type = a->type;
      TESSERA_ASSIGN(a, Folded(MakeFunction(Function::kCase, type, position,
                                            ExprList(std::move(condition), std::move(a), MakeNull(type, position)))));
    }
  }
  return Status::Ok();
}

Result<ExprPtr> ExpressionBinder::BindStatistic(std::string_view name, const ParseNode& node,
                                                const AggregateLeaf& leaf) {
  const int position = node.location();
  const std::string called(name);
  const size_t wanted = name == "geomean" || name == "geometric_mean" ? 1 : 2;
  TESSERA_ASSIGN(std::vector<ExprPtr> args, BindStatisticNumbers(called, wanted, node));
  TESSERA_TRY(LeaveOutPairs(called, node, &args));
  if (wanted == 1) {
    TESSERA_ASSIGN(ExprPtr log, Folded(MakeFunction(Function::kLn, kDouble, position, std::move(args))));
    TESSERA_ASSIGN(ExprPtr mean, leaf(AggregateFunction::kAvg, std::move(log), kDouble));
    return Folded(MakeFunction(Function::kExp, kDouble, position, ExprList(std::move(mean))));
  }
  if (name == "regr_count") return leaf(AggregateFunction::kCount, std::move(args[1]), SqlType::Of(TypeId::kBigint));
  PairStatistic statistic(this, args, leaf, position);
  for (const Formula& f : kFormulas) {
    if (f.name != name) continue;
    TESSERA_ASSIGN(ExprPtr value, statistic.ValueOf(f.text));
    return name == "regr_r2" ? statistic.Determination(std::move(value)) : Result<ExprPtr>(std::move(value));
  }
  return Status(ErrorCode::kInternal, "no formula of " + called);
}

}  // namespace tessera
