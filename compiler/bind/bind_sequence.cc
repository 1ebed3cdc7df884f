// Calls of nextval, currval, lastval and setval: constants, which the session gives while a statement is bound.
#include <string>
#include <utility>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/relation_name.h"
#include "compiler/bind/sequence_binder.h"
#include "compiler/bind/sequence_values.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/sequence_source.h"

namespace tessera {

Result<std::string> ExpressionBinder::SequenceOf(const Expr& name, std::string_view function) const {
  const std::string what(function);
  if (!IsConstant(name) || name.constant.null || (name.type.id != TypeId::kText && name.type.id != TypeId::kNull))
    return Unsupported(what + " of a name that is not a constant text is not supported", name.position);
  if (dialect().sequences == nullptr) return Unsupported(what + " is not supported here", name.position);
  NoteMoment();
  return NameOfText(name.constant.text, dialect().relations);
}

Status ExpressionBinder::RefuseRows(std::string_view function, int position) const {
  if (!HasRows() && (clause_ == Clause::kSelect || clause_ == Clause::kValues)) return Status::Ok();
  return Unsupported(
      std::string(function) +
          " is not supported in a subquery with FROM, in a view, and in another "
          "clause than SELECT and VALUES",
      position,
      "It may stand in the outermost select list. A column with DEFAULT nextval('s') gets a value for each row.");
}

Result<ExprPtr> ExpressionBinder::BindSequenceValue(std::string_view function, std::vector<ExprPtr>* args,
                                                    int position) {
  if (args->size() > 1) return SqlError(std::string(function) + " takes one argument", position);
  TESSERA_ASSIGN(const std::string name, SequenceOf(*(*args)[0], function));
  const bool takes_next = function == "nextval";
  if (HasRows() && clause_ == Clause::kSelect && context_->outer == nullptr && context_->view == nullptr &&
      dialect().sequence_calls != nullptr) {
    TESSERA_TRY(CheckSequenceExists(name, dialect(), position));
    return MakeSequenceValue({name, takes_next, position}, dialect().sequence_calls);
  }
  if (takes_next || clause_ == Clause::kConstraint || clause_ == Clause::kDefault)
    TESSERA_TRY(RefuseRows(function, position));
  if (!dialect().takes_values) {
    TESSERA_TRY(CheckSequenceExists(name, dialect(), position));
    return MakeConstant(Value::Int(SqlType::Of(TypeId::kBigint), 1), position);
  }
  SequenceSource& source = *dialect().sequences;
  const Result<int64_t> value = takes_next ? source.Next(name) : source.Current(name);
  if (!value.ok()) return value.status().At(position);
  return MakeConstant(Value::Int(SqlType::Of(TypeId::kBigint), *value), position);
}

Result<ExprPtr> ExpressionBinder::BindLastValue(int position) {
  if (dialect().sequences == nullptr) return Unsupported("lastval is not supported here", position);
  NoteMoment();
  if (!dialect().takes_values) return MakeNull(SqlType::Of(TypeId::kBigint), position);
  const Result<int64_t> value = dialect().sequences->Last();
  if (!value.ok()) return value.status().At(position);
  return MakeConstant(Value::Int(SqlType::Of(TypeId::kBigint), *value), position);
}

Result<ExprPtr> ExpressionBinder::BindSetValue(std::string_view function, std::vector<ExprPtr>* args, int position) {
  if (args->size() < 2 || args->size() > 3)
    return SqlError("setval takes two or three arguments", position, "Write setval('s', 5), or setval('s', 5, FALSE).");
  TESSERA_ASSIGN(const std::string name, SequenceOf(*(*args)[0], function));
  TESSERA_TRY(RefuseRows(function, position));
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
  if (number->constant.null || !dialect().takes_values) return number;
  const Status status = dialect().sequences->Set(name, number->constant.i64, was_given);
  if (!status.ok()) return status.At(position);
  return number;
}

}  // namespace tessera
