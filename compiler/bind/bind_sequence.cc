// Calls of nextval, currval, lastval and setval: constants, which the session gives while a statement is bound.
#include <string>
#include <utility>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/relation_name.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/sequence_source.h"

namespace tessera {

Result<std::string> ExpressionBinder::SequenceOf(const Expr& name, std::string_view function) const {
  const std::string what(function);
  if (!IsConstant(name) || name.constant.null || (name.type.id != TypeId::kText && name.type.id != TypeId::kNull))
    return Unsupported(what + " of a name that is not a constant text is not supported", name.position);
  const bool in_query = context_->relations != nullptr && !context_->relations->empty();
  if (in_query || (clause_ != Clause::kSelect && clause_ != Clause::kValues)) {
    return Unsupported(what + " in a query with FROM, or in another clause than SELECT and VALUES, is not supported",
                       name.position, "A column with DEFAULT nextval('s') gets a value for each row.");
  }
  if (dialect().sequences == nullptr) return Unsupported(what + " is not supported here", name.position);
  NoteMoment();
  return NameOfText(name.constant.text, dialect().relations);
}

Result<ExprPtr> ExpressionBinder::BindSequenceValue(std::string_view function, std::vector<ExprPtr>* args,
                                                    int position) {
  if (args->size() > 1) return SqlError(std::string(function) + " takes one argument", position);
  TESSERA_ASSIGN(const std::string name, SequenceOf(*(*args)[0], function));
  SequenceSource& source = *dialect().sequences;
  const Result<int64_t> value = function == "nextval" ? source.Next(name) : source.Current(name);
  if (!value.ok()) return value.status().At(position);
  return MakeConstant(Value::Int(SqlType::Of(TypeId::kBigint), *value), position);
}

Result<ExprPtr> ExpressionBinder::BindLastValue(int position) {
  if (dialect().sequences == nullptr) return Unsupported("lastval is not supported here", position);
  NoteMoment();
  const Result<int64_t> value = dialect().sequences->Last();
  if (!value.ok()) return value.status().At(position);
  return MakeConstant(Value::Int(SqlType::Of(TypeId::kBigint), *value), position);
}

Result<ExprPtr> ExpressionBinder::BindSetValue(std::string_view function, std::vector<ExprPtr>* args, int position) {
  if (args->size() < 2 || args->size() > 3)
    return SqlError("setval takes two or three arguments", position, "Write setval('s', 5), or setval('s', 5, FALSE).");
  TESSERA_ASSIGN(const std::string name, SequenceOf(*(*args)[0], function));
  TESSERA_ASSIGN(ExprPtr number, Coerce(std::move((*args)[1]), SqlType::Of(TypeId::kBigint), CastContext::kAssignment));
  bool was_given = true;
  if (args->size() > 2) {
    TESSERA_ASSIGN(const ExprPtr flag,
                   Coerce(std::move((*args)[2]), SqlType::Of(TypeId::kBoolean), CastContext::kImplicit));
    if (!IsConstant(*flag)) return Unsupported("setval of what is not constant is not supported", position);
    if (flag->constant.null) return MakeNull(SqlType::Of(TypeId::kBigint), position);
    was_given = flag->constant.i64 != 0;
  }
  if (!IsConstant(*number))
    return Unsupported("setval of what is not constant is not supported", position, "Write the number.");
  if (number->constant.null) return number;
  const Status status = dialect().sequences->Set(name, number->constant.i64, was_given);
  if (!status.ok()) return status.At(position);
  return number;
}

}  // namespace tessera
