// Variances and covariances of exact numbers, from sums that are exact: in any order of rows the same bits, and on a GPU
// in the kernels that sum.
#include "compiler/bind/expression_binder.h"
#include "compiler/query/type_rules.h"

namespace tessera {
namespace {

const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);

int ScaleOf(const Expr& x) { return x.type.id == TypeId::kDecimal ? x.type.scale : 0; }

}  // namespace

bool ExpressionBinder::HasExactMoments(const SqlType& type) {
  if (type.id == TypeId::kDecimal) return type.precision <= 9;
  return type.id == TypeId::kSmallint || type.id == TypeId::kInteger;
}

/// The sum of the products of both numbers' differences from their means, as a DOUBLE PRECISION. With a and b near the
/// means of x and y, and r = sum(x) - n * a, s = sum(y) - n * b, it is
///
///     sum(x * y) - a * sum(y) - b * r - r * s / n
///
/// of which all but the last term is computed without rounding. a and b are the means to the numbers' last digit, so
/// that |r / n| and |s / n| are at most half of that digit. Each row's difference from a is a whole number of them, so
/// for x = y the last term is at most half of the others: the error is below 2^-50 of the result. For other pairs it is
/// below 2^-50 of the root of the product of both such sums.
class ExpressionBinder::ExactMoments {
 public:
  ExactMoments(ExpressionBinder* binder, const AggregateLeaf& leaf, int position)
      : binder_(*binder), leaf_(leaf), position_(position) {}

  Result<ExprPtr> Products(const Expr& x, const Expr& y) {
    TESSERA_ASSIGN(ExprPtr products, Sum(x, &y));
    TESSERA_ASSIGN(ExprPtr of_y, Sum(y, nullptr));
    TESSERA_ASSIGN(ExprPtr a, Center(x));
    TESSERA_ASSIGN(of_y, Infix("*", std::move(a), std::move(of_y)));
    TESSERA_ASSIGN(products, Infix("-", std::move(products), std::move(of_y)));
    TESSERA_ASSIGN(ExprPtr b, Center(y));
    TESSERA_ASSIGN(ExprPtr r, Rest(x));
    TESSERA_ASSIGN(r, Infix("*", std::move(b), std::move(r)));
    TESSERA_ASSIGN(products, Infix("-", std::move(products), std::move(r)));
    TESSERA_ASSIGN(products, Double(std::move(products)));
    TESSERA_ASSIGN(r, Rest(x));
    TESSERA_ASSIGN(r, Double(std::move(r)));
    TESSERA_ASSIGN(ExprPtr s, Rest(y));
    TESSERA_ASSIGN(s, Double(std::move(s)));
    TESSERA_ASSIGN(r, Infix("*", std::move(r), std::move(s)));
    TESSERA_ASSIGN(ExprPtr n, Count(x));
    TESSERA_ASSIGN(r, Infix("/", std::move(r), std::move(n)));
    return Infix("-", std::move(products), std::move(r));
  }

  /// As a DOUBLE PRECISION.
  Result<ExprPtr> Count(const Expr& x) {
    TESSERA_ASSIGN(ExprPtr n, Rows(x));
    return Double(std::move(n));
  }
  Result<ExprPtr> SumOf(const Expr& x) {
    TESSERA_ASSIGN(ExprPtr sum, Sum(x, nullptr));
    return Double(std::move(sum));
  }

 private:
  Result<ExprPtr> Infix(std::string_view symbol, ExprPtr left, ExprPtr right) {
    return binder_.Infix(symbol, std::move(left), std::move(right), position_);
  }
  Result<ExprPtr> Double(ExprPtr x) { return binder_.Folded(MakeCast(std::move(x), kDouble)); }

  Result<ExprPtr> Rows(const Expr& x) {
    TESSERA_ASSIGN(ExprPtr argument, binder_.Copy(x));
    return leaf_(AggregateFunction::kCount, std::move(argument), kBigint);
  }

  /// sum(x), or sum(x * y), in 38 digits.
  Result<ExprPtr> Sum(const Expr& x, const Expr* y) {
    TESSERA_ASSIGN(ExprPtr argument, binder_.Copy(x));
    int scale = ScaleOf(x);
    if (y != nullptr) {
      const bool whole = scale == 0 && ScaleOf(*y) == 0;
      if (whole) {
        TESSERA_ASSIGN(argument, binder_.Folded(MakeCast(std::move(argument), kBigint)));
      }
      TESSERA_ASSIGN(ExprPtr other, binder_.Copy(*y));
      TESSERA_ASSIGN(argument, Infix("*", std::move(argument), std::move(other)));
      scale += ScaleOf(*y);
    }
    return leaf_(AggregateFunction::kSum, std::move(argument), SqlType::Decimal(38, scale));
  }

  /// The mean, rounded to the last digit of x.
  Result<ExprPtr> Center(const Expr& x) {
    TESSERA_ASSIGN(ExprPtr sum, SumOf(x));
    TESSERA_ASSIGN(ExprPtr n, Count(x));
    TESSERA_ASSIGN(sum, Infix("/", std::move(sum), std::move(n)));
    return binder_.Folded(MakeCast(std::move(sum), SqlType::Decimal(18, ScaleOf(x))));
  }

  /// sum(x) - n * the rounded mean.
  Result<ExprPtr> Rest(const Expr& x) {
    TESSERA_ASSIGN(ExprPtr sum, Sum(x, nullptr));
    TESSERA_ASSIGN(ExprPtr a, Center(x));
    TESSERA_ASSIGN(ExprPtr n, Rows(x));
    TESSERA_ASSIGN(a, Infix("*", std::move(a), std::move(n)));
    return Infix("-", std::move(sum), std::move(a));
  }

  ExpressionBinder& binder_;
  const AggregateLeaf& leaf_;
  const int position_;
};

Result<ExprPtr> ExpressionBinder::BindExactProducts(const Expr& x, const Expr& y, const AggregateLeaf& leaf,
                                                    int position) {
  return ExactMoments(this, leaf, position).Products(x, y);
}

Result<ExprPtr> ExpressionBinder::BindExactSum(const Expr& x, const AggregateLeaf& leaf, int position) {
  return ExactMoments(this, leaf, position).SumOf(x);
}

Result<ExprPtr> ExpressionBinder::BindExactVariance(AggregateFunction function, const Expr& x,
                                                    const AggregateLeaf& leaf, int position) {
  const AggregateInfo& info = Info(function);
  ExactMoments moments(this, leaf, position);
  TESSERA_ASSIGN(ExprPtr value, moments.Products(x, x));
  TESSERA_ASSIGN(ExprPtr divisor, moments.Count(x));
  if (info.NeedsTwoValues()) {
    TESSERA_ASSIGN(divisor, Infix("-", std::move(divisor), MakeConstant(Value::Float(kDouble, 1), position), position));
  }
  TESSERA_ASSIGN(value, Infix("/", std::move(value), std::move(divisor), position));  // x / 0 is NULL
  const bool root =
      info.final_value == FinalRule::kSampleDeviation || info.final_value == FinalRule::kPopulationDeviation;
  if (!root) return value;
  return Folded(MakeFunction(Function::kRoot, kDouble, position, ExprList(std::move(value))));
}

}  // namespace tessera
