// Binding names of types, casts, and constants whose type depends on where they stand.
#include <optional>
#include <span>
#include <string>

#include "base/lower_case.h"
#include "compiler/bind/array_binder.h"
#include "compiler/bind/array_text.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/relation_name.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/fold.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/parameters.h"
#include "tablet/values/array_type.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

Status CannotCast(const SqlType& from, const SqlType& to, int position) {
  return SqlError(ErrorKind::kCannotCoerce, "cannot cast type " + from.ToString() + " to " + to.ToString(), position);
}

bool IsUntyped(const Expr& e) { return e.type.id == TypeId::kNull; }

/// If both types have the same machine representation, a wider type needs no cast: the column stays bare.
bool IsFreeWidening(const SqlType& from, const SqlType& to) {
  if (from.IsInteger() && to.IsInteger()) return from.id < to.id;
  if (from.id == TypeId::kReal && to.id == TypeId::kDouble) return true;
  if (from.id == TypeId::kText && to.id == TypeId::kText)
    return to.length == 0 || (from.length != 0 && from.length <= to.length);
  return from.id == TypeId::kDecimal && to.id == TypeId::kDecimal && from.scale == to.scale &&
         from.precision <= to.precision && from.storage() == to.storage();
}

}  // namespace

Result<ExprPtr> ExpressionBinder::Resolve(ExprPtr e, const SqlType& type, const TimeZone* zone) {
  if (!IsUntyped(*e)) return e;
  if (e->constant.null) return MakeNull(type, e->position);
  const int position = e->position;
  if (type.id == TypeId::kInterval) {
    Result<Interval> interval = ParseInterval(e->constant.text);
    if (!interval.ok()) return interval.status().At(position);
    return MakeConstant(IntervalOf(*interval), position);
  }
  Result<Value> value = ParseValue(e->constant.text, type, zone);
  if (!value.ok()) return value.status().At(position);
  return MakeConstant(std::move(value).value(), position);
}

Result<ExprPtr> ExpressionBinder::Resolve(ExprPtr e, const SqlType& type) const {
  if (IsUntyped(*e)) TESSERA_TRY(NoteParameter(*e, type));
  return Resolve(std::move(e), type, zone());
}

Result<ExprPtr> ExpressionBinder::Coerce(ExprPtr e, const SqlType& type, CastContext allowed) {
  if (IsUntyped(*e)) return Resolve(std::move(e), type);
  if (e->type == type) return e;
  // Constants change their type. Other expressions stay as they are if the machine holds both types in the same way.
  if (!IsConstant(*e) && IsFreeWidening(e->type, type)) return e;
  if (FindCast(e->type, type) > allowed) {
    return CannotCast(e->type, type, e->position);
  }
  return Cast(std::move(e), type);
}

Result<ExprPtr> ExpressionBinder::InZone(Function function, const SqlType& type, ExprPtr x,
                                         const TimeZone& zone) const {
  const int position = x->position;
  ExprPtr name = MakeConstant(Value::Text(zone.name()), position);
  return Folded(MakeFunction(function, type, position, ExprList(std::move(x), std::move(name))));
}

Result<ExprPtr> ExpressionBinder::Cast(ExprPtr e, const SqlType& type) const {
  const TimeZone* const zone = this->zone();
  const bool from = e->type.id == TypeId::kTimestampTz, to = type.id == TypeId::kTimestampTz;
  if (zone != nullptr && from != to && e->type.id != TypeId::kNull) {
    const SqlType timestamp = SqlType::Of(TypeId::kTimestamp);
    if (to && e->type.id == TypeId::kText) return InZone(Function::kZonedMoment, type, std::move(e), *zone);
    if (to) {
      TESSERA_ASSIGN(e, Folded(MakeCast(std::move(e), timestamp)));
      return InZone(Function::kMomentOfLocal, type, std::move(e), *zone);
    }
    const bool text = type.id == TypeId::kText;
    TESSERA_ASSIGN(e, InZone(text ? Function::kZonedText : Function::kLocalTime, text ? SqlType::Text() : timestamp,
                             std::move(e), *zone));
  }
  return Folded(MakeCast(std::move(e), type));
}

namespace {

/// The error for a name that is no type: what it might be instead, or that it is one of others.
Status NoType(std::string_view name, const std::vector<std::string_view>& names_known, int position) {
  struct Row {
    std::string_view name, spelled;
  };
  constexpr Row kKnown[] = {{"timetz", "TIME WITH TIME ZONE"},
                            {"bit", "BIT"},
                            {"varbit", "BIT VARYING"},
                            {"json", "JSON"},
                            {"jsonb", "JSONB"},
                            {"serial", "SERIAL"},
                            {"bigserial", "BIGSERIAL"},
                            {"money", "MONEY"},
                            {"xml", "XML"},
                            {"tinyint", "TINYINT"},
                            {"char", "\"char\""}};
  for (const Row& row : kKnown) {
    if (row.name == name) return Unsupported("type " + std::string(row.spelled) + " is not supported", position);
  }
  const std::string nearest = NearestName(name, names_known);
  return SqlError(ErrorKind::kUndefinedObject, "type \"" + std::string(name) + "\" does not exist", position,
                  nearest.empty() ? "" : "Perhaps you meant type \"" + nearest + "\".");
}

/// The type with what is in the parentheses after its name.
Result<SqlType> WithModifiers(TypeId id, std::string_view name, const std::vector<int64_t>& numbers, int position) {
  switch (id) {
    case TypeId::kDecimal: {
      if (name == "hugeint" || name == "int128") {
        if (!numbers.empty()) return SqlError("type modifier is not allowed for type HUGEINT", position);
        return SqlType::Decimal(38, 0);
      }
      if (numbers.size() > 2) return SqlError("invalid type modifier of DECIMAL", position);
      const int64_t precision = numbers.empty() ? 18 : numbers[0];
      const int64_t scale = numbers.empty() ? 3 : (numbers.size() > 1 ? numbers[1] : 0);
      if (precision < 1 || precision > 38) {
        return SqlError("DECIMAL precision " + std::to_string(precision) + " must be between 1 and 38", position);
      }
      if (scale < 0 || scale > precision) {
        return SqlError(
            "DECIMAL scale " + std::to_string(scale) + " must be between 0 and precision " + std::to_string(precision),
            position);
      }
      return SqlType::Decimal(static_cast<int>(precision), static_cast<int>(scale));
    }
    case TypeId::kText: {
      if (numbers.empty()) return SqlType::Text();
      constexpr int64_t kLongest = 10485760;  // as PostgreSQL
      if (name == "text" || name == "string" || numbers.size() > 1)
        return SqlError("type modifier is not allowed for type TEXT", position);
      if (numbers[0] < 1) return SqlError("length for type VARCHAR must be at least 1", position);
      if (numbers[0] > kLongest)
        return SqlError("length for type VARCHAR cannot exceed " + std::to_string(kLongest), position);
      return SqlType::Text(static_cast<int32_t>(numbers[0]));
    }
    case TypeId::kTimestamp:
    case TypeId::kTimestampTz:
      if (!numbers.empty() && numbers[0] != 6) {
        return Unsupported("TIMESTAMP(" + std::to_string(numbers[0]) + ") is not supported", position,
                           "TIMESTAMP has 6 digits.");
      }
      return SqlType::Of(id);
    default:
      if (!numbers.empty())
        return SqlError("type modifier is not allowed for type " + SqlType::Of(id).ToString(), position);
      return SqlType::Of(id);
  }
}

}  // namespace

Result<SqlType> ExpressionBinder::BindType(const ParseNode& type_name, int position, bool of_elements) {
  const ParseNode* names = type_name.Get(Field::k_names);
  if (names == nullptr || names->first() == nullptr) return Status(ErrorCode::kInternal, "a type without a name");
  std::string_view name;
  bool system = false;  // from a keyword of the grammar, not written by the user
  for (const ParseNode& n : *names) {
    system = system || name == "pg_catalog";
    name = n.Text(Field::k_sval);
  }
  if (names->size() > (system || IsDefaultSchema(names->first()->Text(Field::k_sval)) ? 2 : 1))
    return Unsupported("a type name with a schema is not supported", position);
  if (type_name.Get(Field::k_arrayBounds) != nullptr && !of_elements)
    return Unsupported("array types are not supported", position);
  if (type_name.Get(Field::k_setof) != nullptr) return Unsupported("SETOF is not supported", position);
  const std::optional<TypeId> id = FindTypeName(name);
  const std::vector<EnumType>* const types = context_->dialect != nullptr ? context_->dialect->types : nullptr;
  std::vector<std::string_view> names_known = TypeNames();
  // (A span, because a copy of the types would be gone before names_known, which refers to their names.)
  for (const EnumType& type : types != nullptr ? std::span<const EnumType>(*types) : std::span<const EnumType>()) {
    if (id || type.name != name) {
      names_known.push_back(type.name);
      continue;
    }
    if (type_name.Get(Field::k_typmods) != nullptr)
      return SqlError("type modifier is not allowed for type " + type.name, position);
    return EnumSqlType(type);
  }
  if (!id) return NoType(name, names_known, position);

  // What is in the parentheses after the name.
  std::vector<int64_t> numbers;
  if (const ParseNode* typmods = type_name.Get(Field::k_typmods)) {
    if (*id == TypeId::kInterval) return SqlType::Of(*id);  // fields of an interval, see BindInterval
    for (const ParseNode& m : *typmods) {
      if (!m.Is(Tag::kA_Const) || m.Get(Field::k_ival) == nullptr)
        return SqlError("type modifiers must be integers", m.location() >= 0 ? m.location() : position);
      numbers.push_back(IntegerOfConstant(context_->sql, m));
    }
  }
  return WithModifiers(*id, name, numbers, position);
}

namespace {

/// The name of what a number stands for, as a text over x.
constexpr std::pair<std::string_view, const char*> kNamesOfOids[] = {
    {"regclass", "(SELECT c.relname FROM pg_catalog.pg_class AS c WHERE c.oid = x)"},
    {"regtype", "format_type(x, NULL)"},
    {"regnamespace", "(SELECT n.nspname FROM pg_catalog.pg_namespace AS n WHERE n.oid = x)"},
    {"regproc", "(SELECT p.proname FROM pg_catalog.pg_proc AS p WHERE p.oid = x)"},
    {"regrole", "(SELECT r.rolname FROM pg_catalog.pg_roles AS r WHERE r.oid = x)"},
};

/// By PostgreSQL's names, SQL's, or that of an enum; -1: there is none.
int64_t OidOfType(std::string_view text, const std::vector<EnumType>* types) {
  const std::string name = LowerCase(std::string_view(text.starts_with("pg_catalog.") ? text.substr(11) : text));
  for (const CatalogType& type : CatalogTypes()) {
    if (name == type.internal || name == type.name || name == LowerCase(std::string_view(type.sql))) return type.oid;
  }
  for (size_t i = 0; types != nullptr && i < types->size(); ++i) {
    if ((*types)[i].name == name) return OidOfEnum(name);
  }
  return -1;
}

/// The text of an array, with its elements as the type writes them. Errors: one is no value of the type.
Result<std::string> ArrayAs(std::string_view text, const SqlType& element, const TimeZone* zone, int position) {
  TESSERA_ASSIGN(auto elements, ElementsOfArray(text, position));
  for (std::optional<std::string>& e : elements) {
    if (!e || element.id == TypeId::kText) continue;
    const Result<Value> value = ParseValue(*e, element, zone);
    if (!value.ok()) return value.status().At(position);
    e = element.id == TypeId::kBoolean ? (value->i64 != 0 ? "t" : "f") : ToText(*value);
  }
  return ArrayText(elements);
}

/// The oid of the relation of that name, or that number. NULL: a parameter that has no value yet.
Result<ExprPtr> RelationOid(const Expr& name, const Snapshot& snapshot, int position) {
  const SqlType type = SqlType::Of(TypeId::kBigint);
  if (!IsConstant(name) || name.constant.null) return MakeNull(type, position);
  const std::string& relation = name.constant.text;
  if (!relation.empty() && relation.size() < 16 && relation.find_first_not_of("0123456789") == std::string::npos)
    return MakeConstant(Value::Int(type, std::stoll(relation)), position);
  NoteMoment();
  const int64_t oid = OidOfName(relation, snapshot);
  if (oid < 0) return TableNotFound(relation, name.position, snapshot);
  return MakeConstant(Value::Int(type, oid), position);
}

}  // namespace

Result<ExprPtr> ExpressionBinder::BindCast(const ParseNode& node) {
  const ParseNode& type_name = *node.Get(Field::k_typeName);
  const int position = node.location() >= 0 ? node.location() : type_name.location();
  const bool tries = FindMark(*context_, Dialect::Mark::Kind::kTryCast, node.location()) != nullptr;
  const ParseNode* const names = type_name.Get(Field::k_names);
  std::string_view name = names != nullptr ? names->first()->Text(Field::k_sval) : "";
  if (name == "pg_catalog" && names->size() == 2) name = names->first()->next()->Text(Field::k_sval);
  const ParseNode* const text = node.Get(Field::k_arg)->Get(Field::k_sval);
  const bool is_oid = name == "oid" || name == "xid" || (name == "regtype" && text != nullptr);
  for (const auto& [of, name_of] : kNamesOfOids) {
    if (of != name || text != nullptr || context_->snapshot == nullptr) continue;
    TESSERA_ASSIGN(ExprPtr oid, BindTyped(*node.Get(Field::k_arg)));
    if (name == "regclass" && node.Get(Field::k_arg)->Is(Tag::kParamRef) && oid->type.id == TypeId::kText)
      return RelationOid(*oid, *context_->snapshot, position);
    if (oid->type.id == TypeId::kText) return oid;  // it is the name already
    return BindText(name_of, ExprList(std::move(oid)), position);
  }
  if (name == "regtype" && text != nullptr) {
    const int64_t oid = OidOfType(text->Text(Field::k_sval), dialect().types);
    if (oid < 0) return SqlError("type \"" + std::string(text->Text(Field::k_sval)) + "\" does not exist", position);
    return MakeConstant(Value::Int(SqlType::Of(TypeId::kBigint), oid), position);
  }
  if (name == "regclass" && text != nullptr && context_->snapshot != nullptr) {
    const ExprPtr relation =
        MakeConstant(Value::Text(std::string(text->Text(Field::k_sval))), node.Get(Field::k_arg)->location());
    return RelationOid(*relation, *context_->snapshot, position);
  }
  if (type_name.Get(Field::k_arrayBounds) != nullptr && !tries) {
    TESSERA_ASSIGN(ExprPtr array, Bind(*node.Get(Field::k_arg)));
    SqlType element = SqlType::Of(TypeId::kBigint);
    if (name != "oid") {
      TESSERA_ASSIGN(element, BindType(type_name, type_name.location(), true));
    }
    const SqlType wanted = name == "oid" ? OidArray() : ArrayOf(element);
    TESSERA_ASSIGN(array, Resolve(std::move(array), IsParameter(*array) ? wanted : SqlType::Text()));
    if (IsConstant(*array) && array->type.id == TypeId::kText && !array->constant.null) {
      TESSERA_ASSIGN(array->constant.text, ArrayAs(array->constant.text, element, zone(), position));
    }
    if (array->type.id == TypeId::kText) return ArrayBinder::WithType(std::move(array), wanted);
    return Unsupported("array types are not supported", type_name.location());
  }
  SqlType type = SqlType::Of(TypeId::kBigint);  // of what PostgreSQL calls an oid
  if (!is_oid) {
    TESSERA_ASSIGN(type, BindType(type_name, type_name.location()));
  }
  TESSERA_ASSIGN(ExprPtr e, Bind(*node.Get(Field::k_arg)));
  if (type.id == TypeId::kInterval && (!tries || IsConstant(*e))) {
    Result<ExprPtr> interval = BindInterval(type_name, std::move(e));
    return interval.ok() || !tries ? std::move(interval) : MakeNull(type, position);
  }
  if (IsUntyped(*e) && !e->constant.null) {
    TESSERA_ASSIGN(ExprPtr moment, BindNamedMoment(e->constant.text, type, position));
    if (moment != nullptr) return moment;
  }
  if (IsUntyped(*e)) {
    // A literal is read as the type without its length; then CAST cuts it.
    SqlType plain = tries && IsParameter(*e) ? SqlType::Text() : type;  // it is not known yet what the text is
    if (plain.id == TypeId::kText) plain.length = 0;
    Result<ExprPtr> value = Resolve(std::move(e), plain);
    if (!value.ok()) return tries ? Result<ExprPtr>(MakeNull(type, position)) : value.status();
    e = std::move(value).value();
  }
  if (IsArrayType(e->type) && type.id == TypeId::kText && type.length == 0)
    return ArrayBinder::WithType(std::move(e), type);
  if (e->type == type || (!IsConstant(*e) && e->type.id == TypeId::kText && IsFreeWidening(e->type, type))) return e;
  if (FindCast(e->type, type) == CastContext::kNone) {
    return CannotCast(e->type, type, position);
  }
  if (tries) return BindTryCast(std::move(e), type, position);
  e->position = position;
  return Cast(std::move(e), type);
}

}  // namespace tessera
