#include "compiler/bind/parameter_binder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/macro_call.h"
#include "compiler/query/expr_builder.h"
#include "tablet/values/array_type.h"

namespace tessera {
namespace {

bool IsUntyped(const Expr& e) { return e.type.id == TypeId::kNull; }

std::string NameOf(size_t number) { return "$" + std::to_string(number); }

/// A text that becomes a number keeps its own digits, as a number that is written without quotes does.
SqlType DecimalOf(std::string_view text, const SqlType& type) {
  const size_t point = text.find('.');
  const size_t digits = point == std::string_view::npos ? 0 : text.size() - point - 1;
  const bool plain = text.find_first_of("eE") == std::string_view::npos;
  return SqlType::Decimal(38, static_cast<int>(std::min<size_t>(30, plain ? digits : std::max<size_t>(type.scale, 6))));
}

/// What a value is cast to for a parameter of a type: lengths and digits are the value's own, as in PostgreSQL.
SqlType TargetOf(const Expr& value, const SqlType& type) {
  if (type.id == TypeId::kText) return SqlType::Text();
  if (type.id != TypeId::kDecimal) return type;
  if (IsUntyped(value)) return value.constant.null ? type : DecimalOf(value.constant.text, type);
  if (value.type.IsInteger() || value.type.id == TypeId::kDecimal) return AsDecimal(value.type);
  return SqlType::Decimal(38, std::max<int>(type.scale, 6));
}

}  // namespace

Status BindPrepare(const ParseNode& node, std::string_view sql, const Dialect& dialect, Statement* out) {
  out->kind = Statement::Kind::kPrepare;
  out->prepared.name = node.Text(Field::k_name);
  const ParseNode* const types = node.Get(Field::k_argtypes);
  if (types == nullptr) return {};
  BindContext context;
  context.sql = sql;
  context.dialect = &dialect;
  ExpressionBinder binder(&context, nullptr, Clause::kValues);
  for (const ParseNode& name : *types) {
    TESSERA_ASSIGN(const SqlType type, binder.BindType(name, name.location()));
    out->prepared.types.push_back(type);
  }
  return {};
}

Status BindExecute(const ParseNode& node, std::string_view sql, const Dialect& dialect, Statement* out) {
  out->kind = Statement::Kind::kExecute;
  out->prepared.name = node.Text(Field::k_name);
  const ParseNode* const arguments = node.Get(Field::k_params);
  if (arguments == nullptr) return {};
  BindContext context;
  context.sql = sql;
  context.dialect = &dialect;
  std::vector<Relation> no_relations;
  context.relations = &no_relations;
  ExpressionBinder binder(&context, nullptr, Clause::kValues);
  for (const ParseNode& argument : *arguments) {
    TESSERA_ASSIGN(ExprPtr e, binder.Bind(argument));
    if (!IsConstant(*e)) {
      return Unsupported("EXECUTE with an argument that is not a constant is not supported", argument.FirstLocation(),
                         "SET VARIABLE v = ... keeps the value of an expression; getvariable('v') is one.");
    }
    out->prepared.positions.push_back(argument.FirstLocation());
    Value value = std::move(e->constant);
    value.type = e->type;
    out->prepared.arguments.push_back(std::move(value));
  }
  return {};
}

Status BindDeallocate(const ParseNode& node, Statement* out) {
  out->kind = Statement::Kind::kDeallocate;
  out->prepared.name = node.Text(Field::k_name);  // "" for ALL
  return {};
}

Status CheckParameters(const Parameters& parameters) {
  for (size_t i = 0; i < parameters.types.size(); ++i) {
    if (parameters.types[i].id != TypeId::kNull) continue;
    return SqlError(
        ErrorKind::kIndeterminateType, "could not determine data type of parameter " + NameOf(i + 1),
        parameters.positions[i],
        "Add a cast, as in " + NameOf(i + 1) + "::integer, or declare the types: PREPARE name (integer, ...) AS ...");
  }
  return {};
}

Result<Value> CastArgument(const Value& given, size_t number, const SqlType& type, const TimeZone* zone) {
  Dialect dialect;
  dialect.zone = zone;
  BindContext context;
  context.dialect = &dialect;
  ExpressionBinder binder(&context, nullptr, Clause::kValues);
  if (type.id == TypeId::kNull) return given;
  ExprPtr value = MakeConstant(given, -1);
  const SqlType target = TargetOf(*value, type);
  if (!IsUntyped(*value) && FindCast(value->type, target) > CastContext::kAssignment) {
    return SqlError(ErrorKind::kDatatypeMismatch,
                    "parameter " + NameOf(number) + " of type " + value->type.ToString() +
                        " cannot be coerced to the expected type " + type.ToString(),
                    -1, "You will need to rewrite or cast the expression.");
  }
  Result<ExprPtr> cast = binder.Coerce(std::move(value), target, CastContext::kAssignment);
  if (!cast.ok()) {
    const Status& error = cast.status();
    return Status(error.kind(), error.message() + " (parameter " + NameOf(number) + ")", error.hint());
  }
  Value out = std::move((*cast)->constant);
  out.type = (*cast)->type;
  return out;
}

// ---- Held values

namespace {

/// Types of which a value is one constant of the program. (An array's is a text of a form that depends on the other side.)
bool MayHold(const SqlType& type) {
  return type.IsNumeric() || type.IsTimestamp() || type.id == TypeId::kDate ||
         (type.id == TypeId::kText && !IsArrayType(type));
}

/// Whether a comparison with a value has become that of a column with a constant, as `held` says.
bool IsHeldAs(const Expr& e, const HeldParameter& held) {
  if (e.kind != Expr::Kind::kFunction || e.function != held.compared || e.args.size() != 2) return false;
  const Expr &column = *e.args[0], &value = *e.args[1];
  return column.kind == Expr::Kind::kColumn && column.type == held.column && IsConstant(value) &&
         !value.constant.null && value.type == held.type && value.constant.type == held.type;
}

}  // namespace

bool FillHeld(const std::vector<HeldParameter>& held, const std::vector<Value>& values, const TimeZone* zone,
              vm::Program* program) {
  Dialect dialect;
  dialect.zone = zone;
  BindContext context;
  context.dialect = &dialect;
  ExpressionBinder binder(&context, nullptr, Clause::kWhere);
  for (const HeldParameter& h : held) {
    if (h.number > values.size()) return false;
    Result<ExprPtr> e = binder.Comparison(h.written, MakeColumn(0, 0, h.column, h.nullable, -1),
                                          MakeConstant(values[h.number - 1], -1), -1);
    if (!e.ok() || !IsHeldAs(**e, h)) return false;
    if (h.constant >= 0) program->constants[static_cast<size_t>(h.constant)] = std::move((*e)->args[1]->constant);
  }
  return true;
}

Result<ExprPtr> ExpressionBinder::CompareHeld(Function function, const ParseNode& l, const ParseNode& r, ExprPtr left,
                                              ExprPtr right, int position) {
  Parameters* const parameters = context_->dialect != nullptr ? context_->dialect->parameters : nullptr;
  const bool flipped = l.Is(Tag::kParamRef);
  const Expr& column = flipped ? *right : *left;
  if (parameters == nullptr || !parameters->holds || clause_ != Clause::kWhere || flipped == r.Is(Tag::kParamRef) ||
      column.kind != Expr::Kind::kColumn || !MayHold(column.type)) {
    return Comparison(function, std::move(left), std::move(right), position);
  }
  HeldParameter held;
  held.number = static_cast<size_t>((flipped ? l : r).Number(Field::k_number));
  held.written = flipped ? Mirrored(function) : function;
  held.column = column.type;
  held.nullable = column.nullable;
  TESSERA_ASSIGN(ExprPtr e, Comparison(function, std::move(left), std::move(right), position));
  if (e->kind != Expr::Kind::kFunction || !IsComparison(e->function)) return e;
  held.compared = e->function;
  held.type = e->args[1]->type;
  if (!IsHeldAs(*e, held)) return e;
  e->args[1]->kind = Expr::Kind::kParameter;
  e->args[1]->index = static_cast<int>(parameters->held.size());
  parameters->held.push_back(std::move(held));
  return e;
}

// ---- In expressions

Result<ExprPtr> ExpressionBinder::BindStatementParameter(size_t number, int position) {
  Parameters* const parameters = context_->dialect != nullptr ? context_->dialect->parameters : nullptr;
  const std::string name = NameOf(number);
  if (int levels = 0; FrameOf(*context_, &levels) != nullptr)
    return SqlError(ErrorKind::kUndefinedParameter, "there is no parameter " + name + " in a macro", position,
                    "Parameters of a macro have names.");
  if (parameters == nullptr) {
    return SqlError(ErrorKind::kUndefinedParameter, "there is no parameter " + name, position,
                    "Parameters stand in a statement that is prepared: PREPARE name AS ..., then EXECUTE name (...).");
  }
  if (parameters->values != nullptr) {
    const size_t count = parameters->values->size();
    if (number == 0 || number > count) {
      return SqlError(ErrorKind::kUndefinedParameter, "there is no parameter " + name, position,
                      count == 0 ? "No values were given." : "The last one is " + NameOf(count) + ".");
    }
    ++parameters->bound;
    return MakeConstant((*parameters->values)[number - 1], position);
  }
  if (number == 0 || number > kMostParameters)
    return SqlError(ErrorKind::kUndefinedParameter, "there is no parameter " + name, position,
                    "Parameters are $1 to " + NameOf(kMostParameters) + ".");
  if (parameters->types.size() < number) parameters->types.resize(number);
  if (parameters->positions.size() < number) parameters->positions.resize(number, -1);
  int& first = parameters->positions[number - 1];
  if (first < 0) first = position;
  parameters->places.push_back(position);
  ExprPtr e = MakeNull(parameters->types[number - 1], position);
  e->index = static_cast<int>(number);
  return e;
}

Result<ExprPtr> ExpressionBinder::UnitName(const ParseNode& node) {
  TESSERA_ASSIGN(ExprPtr e, Bind(node));
  const bool has_no_value = IsConstant(*e) && e->constant.null && e->index > 0;  // also one of a declared type
  TESSERA_ASSIGN(e, Resolve(std::move(e), SqlType::Text()));
  if (!IsConstant(*e) || e->type.id != TypeId::kText) return ExprPtr();
  if (has_no_value) return MakeConstant(Value::Text("day"), e->position);
  return e->constant.null ? ExprPtr() : std::move(e);
}

Status ExpressionBinder::NoteParameter(const Expr& e, const SqlType& type) const {
  if (!IsParameter(e) || context_->dialect == nullptr) return {};
  Parameters* const parameters = context_->dialect->parameters;
  if (parameters == nullptr || parameters->values != nullptr) return {};
  SqlType& known = parameters->types[static_cast<size_t>(e.index) - 1];
  if (known.id == TypeId::kNull) {
    known = type;
    if (known.id == TypeId::kText) known.length = 0;
    return {};
  }
  if (known.id == type.id) return {};
  parameters->inconsistent = true;
  return SqlError(ErrorKind::kIndeterminateType,
                  "inconsistent types deduced for parameter " + NameOf(static_cast<size_t>(e.index)), e.position,
                  known.ToString() + " versus " + type.ToString() + ". A cast says which it is.");
}

}  // namespace tessera
