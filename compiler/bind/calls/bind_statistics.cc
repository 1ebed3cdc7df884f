// Binding aggregates that are made of others: of pairs of numbers, and the geometric mean.
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

Result<ExprPtr> ExpressionBinder::BindStatistic(std::string_view name, const ParseNode& node,
                                                const AggregateLeaf& leaf) {
  const int position = node.location();
  const std::string called(name);
  const size_t wanted = name == "geomean" || name == "geometric_mean" ? 1 : 2;
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
    if (wanted > 1 && in_aggregate_ > 0 && LevelsOut({a.get()}) > 0) {
      return Unsupported(called + " of columns of an enclosing query is not supported", position,
                         "Compute it in that query.");
    }
    TESSERA_ASSIGN(a, Folded(MakeCast(std::move(a), kDouble)));
    if (!a->nullable || wanted == 1) continue;
    TESSERA_ASSIGN(ExprPtr again, Copy(*a));
    TESSERA_ASSIGN(ExprPtr is_there,
                   Folded(MakeFunction(Function::kIsNotNull, kBoolean, position, ExprList(std::move(again)))));
    TESSERA_TRY(require(std::move(is_there)));
  }
  if (present != nullptr) {
    for (ExprPtr& a : args) {
      TESSERA_ASSIGN(ExprPtr condition, Copy(*present));
      TESSERA_ASSIGN(a,
                     Folded(MakeFunction(Function::kCase, kDouble, position,
                                         ExprList(std::move(condition), std::move(a), MakeNull(kDouble, position)))));
    }
  }

  if (wanted == 1) {
    TESSERA_ASSIGN(ExprPtr log, Folded(MakeFunction(Function::kLn, kDouble, position, std::move(args))));
    TESSERA_ASSIGN(ExprPtr mean, leaf(AggregateFunction::kAvg, std::move(log), kDouble));
    return Folded(MakeFunction(Function::kExp, kDouble, position, ExprList(std::move(mean))));
  }
  if (name == "regr_count") return leaf(AggregateFunction::kCount, std::move(args[1]), SqlType::Of(TypeId::kBigint));
  const auto formula = [&](std::string_view text, const auto& self) -> Result<ExprPtr> {
    std::vector<ExprPtr> stack;
    for (const char c : text) {
      ExprPtr e;
      if (c == 'p') {
        // From the sums, unless the means are so large against the differences that these would lose their digits.
        // The sum of both numbers keeps them then, but loses those of a number that varies much less than the other.
        TESSERA_ASSIGN(ExprPtr means, self("XY*n/", self));
        TESSERA_ASSIGN(means, Folded(MakeFunction(Function::kAbs, kDouble, position, ExprList(std::move(means)))));
        TESSERA_ASSIGN(ExprPtr squares, self("xy+", self));
        TESSERA_ASSIGN(ExprPtr small, Comparison(Function::kLe, std::move(means), std::move(squares), position));
        TESSERA_ASSIGN(ExprPtr of_sums, self("sXY*n/-", self));
        TESSERA_ASSIGN(ExprPtr of_moments, self("mx-y-2/", self));
        TESSERA_ASSIGN(e, Folded(MakeFunction(Function::kCase, kDouble, position,
                                              ExprList(std::move(small), std::move(of_sums), std::move(of_moments)))));
      } else if (c == '1' || c == '2') {
        e = MakeConstant(Value::Float(kDouble, c - '0'), position);
      } else if (c == 'q') {
        TESSERA_ASSIGN(e, Folded(MakeFunction(Function::kSqrt, kDouble, position, ExprList(std::move(stack.back())))));
        stack.pop_back();
      } else if (c == '+' || c == '-' || c == '*' || c == '/') {
        ExprPtr right = std::move(stack.back());
        stack.pop_back();
        TESSERA_ASSIGN(e, Infix(std::string_view(&c, 1), std::move(stack.back()), std::move(right), position));
        stack.pop_back();
      } else if (c == 'n') {
        TESSERA_ASSIGN(ExprPtr x, Copy(*args[1]));
        TESSERA_ASSIGN(e, leaf(AggregateFunction::kCount, std::move(x), SqlType::Of(TypeId::kBigint)));
        e = MakeCast(std::move(e), kDouble);
      } else {
        const bool of_x = c == 'x' || c == 'X', of_y = c == 'y' || c == 'Y';
        TESSERA_ASSIGN(e, Copy(*args[of_y ? 0 : 1]));
        if (!of_x && !of_y) {
          TESSERA_ASSIGN(ExprPtr y, Copy(*args[0]));
          TESSERA_ASSIGN(e, Infix(c == 's' ? "*" : "+", std::move(e), std::move(y), position));
        }
        const bool sum = c == 'X' || c == 'Y' || c == 's';
        TESSERA_ASSIGN(e, leaf(sum ? AggregateFunction::kSum : AggregateFunction::kDeviations, std::move(e), kDouble));
      }
      stack.push_back(std::move(e));
    }
    return std::move(stack.back());
  };
  for (const Formula& f : kFormulas) {
    if (f.name != name) continue;
    TESSERA_ASSIGN(ExprPtr value, formula(f.text, formula));
    if (name != "regr_r2") return value;
    // All y are the same: a level line goes through all points, unless all x are the same, too.
    ExprPtr zero = MakeConstant(Value::Float(kDouble, 0), position), again = zero->Clone();
    TESSERA_ASSIGN(ExprPtr x, formula("x", formula));
    TESSERA_ASSIGN(ExprPtr y, formula("y", formula));
    TESSERA_ASSIGN(ExprPtr differ, Comparison(Function::kNe, std::move(x), std::move(zero), position));
    TESSERA_ASSIGN(ExprPtr level, Comparison(Function::kEq, std::move(y), std::move(again), position));
    TESSERA_ASSIGN(
        level, Folded(MakeFunction(Function::kAnd, kBoolean, position, ExprList(std::move(differ), std::move(level)))));
    ExprPtr one = MakeConstant(Value::Float(kDouble, 1), position);
    return Folded(
        MakeFunction(Function::kCase, kDouble, position, ExprList(std::move(level), std::move(one), std::move(value))));
  }
  return Status(ErrorCode::kInternal, "no formula of " + called);
}

}  // namespace tessera
