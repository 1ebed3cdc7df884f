#include "compiler/bind/limit.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "compiler/bind/expression_binder.h"
#include "compiler/query/correlation.h"
#include "compiler/query/evaluate.h"
#include "compiler/query/fold.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

/// The number of rows of LIMIT or OFFSET; -1 if it is NULL, or if it is `varying`.
Result<int64_t> BindCount(const ParseNode& node, Clause clause, QueryBlock* block, ExprPtr* varying) {
  const std::string name = clause == Clause::kLimit ? "LIMIT" : "OFFSET";
  ExpressionBinder binder(&block->context, block->query->relations.empty() ? nullptr : &block->scope, clause);
  TESSERA_ASSIGN(ExprPtr e, binder.Bind(node));
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  TESSERA_ASSIGN(e, binder.Resolve(std::move(e), bigint));
  bool varies = !IsConstant(*e) && FindSubquery(*e) == nullptr;
  ForEachColumnOfBlock(*e, [&](const Expr&) { varies = true; });
  if (varies)
    return SqlError(ErrorKind::kInvalidParameterValue, "argument of " + name + " must be a constant", e->position);
  if (IsConstant(*e) && e->constant.null) return -1;
  if (!e->type.IsNumeric())
    return SqlError(ErrorKind::kDatatypeMismatch,
                    "argument of " + name + " must be type BIGINT, not type " + e->type.ToString(), e->position);
  if (!IsConstant(*e)) {
    TESSERA_ASSIGN(*varying, binder.Coerce(std::move(e), bigint, CastContext::kExplicit));
    return -1;
  }
  Result<Value> v = EvaluateCast(e->constant, bigint);
  if (!v.ok()) return v.status().At(e->position);
  if (v->i64 < 0) return SqlError(ErrorKind::kInvalidParameterValue, name + " must not be negative", e->position);
  return v->i64;
}

}  // namespace

bool IsPercentage(const ParseNode& number, const BindContext& context) {
  return FindMark(context, Dialect::Mark::Kind::kPercent, number.location()) != nullptr;
}

Status BindLimit(const ParseNode& select, QueryBlock* block) {
  Query& query = *block->query;
  if (const ParseNode* limit = select.Get(Field::k_limitCount);
      limit != nullptr && IsPercentage(*limit, block->context)) {
    ExpressionBinder binder(&block->context, nullptr, Clause::kLimit);
    TESSERA_ASSIGN(ExprPtr e, binder.Bind(*limit));
    TESSERA_ASSIGN(e, binder.Coerce(std::move(e), SqlType::Of(TypeId::kDouble), CastContext::kImplicit));
    if (!IsConstant(*e) || !(e->constant.f64 >= 0 && e->constant.f64 <= 100))
      return SqlError("LIMIT takes a percentage from 0 to 100", limit->location());
    block->limit_percent = e->constant.f64;
  } else if (limit != nullptr) {
    TESSERA_ASSIGN(query.limit, BindCount(*limit, Clause::kLimit, block, &block->limit));
  }
  if (const ParseNode* offset = select.Get(Field::k_limitOffset)) {
    TESSERA_ASSIGN(const int64_t n, BindCount(*offset, Clause::kOffset, block, &block->offset));
    query.offset = std::max<int64_t>(n, 0);
  }
  return {};
}

}  // namespace tessera
