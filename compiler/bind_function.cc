// Binding function calls, aggregates, casts, names of types and intervals.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "compiler/expression_binder.h"
#include "compiler/fold.h"
#include "compiler/nearest_name.h"
#include "tablet/value_parser.h"
#include "vm/meaning.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);

bool IsUntyped(const Expr& e) { return e.type.id == TypeId::kNull; }

std::string Lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

/// Between machine representations that are the same, a wider type needs no cast: the column stays bare.
bool IsFreeWidening(const SqlType& from, const SqlType& to) {
  if (from.IsInteger() && to.IsInteger()) return from.id < to.id;
  if (from.id == TypeId::kReal && to.id == TypeId::kDouble) return true;
  if (from.id == TypeId::kText && to.id == TypeId::kText)
    return to.length == 0 || (from.length != 0 && from.length <= to.length);
  return from.id == TypeId::kDecimal && to.id == TypeId::kDecimal && from.scale == to.scale &&
         from.precision <= to.precision && from.storage() == to.storage();
}

/// The type that an untyped argument takes for a class.
SqlType PreferredType(TypeClass c) {
  if ((c & kClassText) != 0) return SqlType::Text();
  if ((c & kClassFloat) != 0) return kDouble;
  if ((c & kClassInteger) != 0) return kInteger;
  return SqlType::Text();
}

std::string Signature(std::string_view name, const std::vector<ExprPtr>& args) {
  std::string out(name);
  out.push_back('(');
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out.append(", ");
    out.append(IsUntyped(*args[i]) ? "unknown" : args[i]->type.ToString());
  }
  out.push_back(')');
  return out;
}

/// Whether an exact number must become a double, because there is no opcode for it but one for doubles.
bool NeedsDouble(const OpcodesByClass& opcodes, const SqlType& type) {
  return type.IsNumeric() && opcodes.For(type.storage()) == kNoOpcode && opcodes.real != kNoOpcode;
}

Status NoFunction(const std::string& signature, int position, std::string hint) {
  return SqlError("function " + signature + " does not exist", position, std::move(hint));
}

constexpr const char* kCastHint =
    "No function matches the given name and argument types. You might need to add explicit type casts.";

}  // namespace

// ---- Types

Result<ExprPtr> ExpressionBinder::Resolve(ExprPtr e, const SqlType& type) {
  if (!IsUntyped(*e)) return e;
  if (e->constant.null) return MakeNull(type, e->position);
  const int position = e->position;
  if (type.id == TypeId::kInterval) {
    Result<Span> span = ParseInterval(e->constant.text, {});
    if (!span.ok()) return span.status().At(position);
    return MakeConstant(IntervalOf(*span), position);
  }
  Result<Value> value = ParseValue(e->constant.text, type);
  if (!value.ok()) return value.status().At(position);
  return MakeConstant(std::move(value).value(), position);
}

Result<ExprPtr> ExpressionBinder::Coerce(ExprPtr e, const SqlType& type, CastContext allowed) {
  if (IsUntyped(*e)) return Resolve(std::move(e), type);
  if (e->type == type) return e;
  // Constants change their type for good; of the rest, what the machine holds in the same way stays as it is.
  if (!IsConstant(*e) && IsFreeWidening(e->type, type)) return e;
  if (FindCast(e->type, type) > allowed) {
    return SqlError("cannot cast type " + e->type.ToString() + " to " + type.ToString(), e->position);
  }
  return Folded(MakeCast(std::move(e), type));
}

Result<SqlType> ExpressionBinder::BindType(const ParseNode& type_name, int position) {
  const ParseNode* names = type_name.Get(Field::k_names);
  if (names == nullptr || names->first() == nullptr) return Status(ErrorCode::kInternal, "a type without a name");
  std::string_view name;
  bool system = false;  // from a keyword of the grammar, not written by the user
  for (const ParseNode& n : *names) {
    system = system || name == "pg_catalog";
    name = n.Text(Field::k_sval);
  }
  if (names->size() > (system ? 2 : 1)) return Unsupported("a type name with a schema is not supported", position);
  if (type_name.Get(Field::k_arrayBounds) != nullptr) return Unsupported("array types are not supported", position);
  if (type_name.Get(Field::k_setof) != nullptr) return Unsupported("SETOF is not supported", position);

  const std::optional<TypeId> id = FindTypeName(name);
  if (!id) {
    struct Row {
      std::string_view name, spelled;
    };
    constexpr Row kKnown[] = {{"timestamptz", "TIMESTAMP WITH TIME ZONE"},
                              {"time", "TIME"},
                              {"timetz", "TIME WITH TIME ZONE"},
                              {"bit", "BIT"},
                              {"varbit", "BIT VARYING"},
                              {"bytea", "BYTEA"},
                              {"json", "JSON"},
                              {"jsonb", "JSONB"},
                              {"uuid", "UUID"},
                              {"serial", "SERIAL"},
                              {"bigserial", "BIGSERIAL"},
                              {"money", "MONEY"},
                              {"xml", "XML"},
                              {"hugeint", "HUGEINT"},
                              {"tinyint", "TINYINT"},
                              {"blob", "BLOB"},
                              {"char", "\"char\""}};
    for (const Row& row : kKnown) {
      if (row.name == name) return Unsupported("type " + std::string(row.spelled) + " is not supported", position);
    }
    const std::string nearest = NearestName(name, TypeNames());
    return SqlError("type \"" + std::string(name) + "\" does not exist", position,
                    nearest.empty() ? "" : "Perhaps you meant type \"" + nearest + "\".");
  }

  // What stands in the parentheses behind the name.
  std::vector<int64_t> numbers;
  if (const ParseNode* typmods = type_name.Get(Field::k_typmods)) {
    if (*id == TypeId::kInterval) return SqlType::Of(*id);  // fields of an interval, see BindInterval
    for (const ParseNode& m : *typmods) {
      if (!m.Is(Tag::kA_Const) || m.Get(Field::k_ival) == nullptr) {
        return SqlError("type modifiers must be integers", m.location() >= 0 ? m.location() : position);
      }
      numbers.push_back(IntegerOfConstant(context_->sql, m));
    }
  }
  const std::string spelled = SqlType::Of(*id).ToString();
  switch (*id) {
    case TypeId::kDecimal: {
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
      if (!numbers.empty() && numbers[0] != 6) {
        return Unsupported("TIMESTAMP(" + std::to_string(numbers[0]) + ") is not supported", position,
                           "TIMESTAMP has 6 digits.");
      }
      return SqlType::Of(*id);
    default:
      if (!numbers.empty()) return SqlError("type modifier is not allowed for type " + spelled, position);
      return SqlType::Of(*id);
  }
}

Result<ExprPtr> ExpressionBinder::BindCast(const ParseNode& node) {
  const ParseNode& type_name = *node.Get(Field::k_typeName);
  const int position = node.location() >= 0 ? node.location() : type_name.location();
  TESSERA_ASSIGN(const SqlType type, BindType(type_name, type_name.location()));
  TESSERA_ASSIGN(ExprPtr e, Bind(*node.Get(Field::k_arg)));
  if (type.id == TypeId::kInterval) return BindInterval(type_name, std::move(e));
  if (IsUntyped(*e)) {
    // A literal is read as the type; only its length is a matter of CAST, which cuts.
    SqlType plain = type;
    plain.length = 0;
    TESSERA_ASSIGN(e, Resolve(std::move(e), plain));
  }
  if (e->type == type || (!IsConstant(*e) && e->type.id == TypeId::kText && IsFreeWidening(e->type, type))) return e;
  if (FindCast(e->type, type) == CastContext::kNone) {
    return SqlError("cannot cast type " + e->type.ToString() + " to " + type.ToString(), position);
  }
  ExprPtr cast = MakeCast(std::move(e), type);
  cast->position = position;
  return Folded(std::move(cast));
}

// ---- Intervals

Span SpanOf(const Value& interval) {
  const int64_t packed = Low64(interval.wide);
  return {packed >> 32, static_cast<int32_t>(packed & 0xFFFFFFFF), interval.i64};
}

Value IntervalOf(const Span& span) {
  Value v = Value::Int(SqlType::Of(TypeId::kInterval), span.micros);
  v.wide = span.months * (int64_t{1} << 32) + static_cast<int64_t>(static_cast<uint32_t>(span.days));
  return v;
}

namespace {

struct IntervalUnit {
  std::string_view name;  ///< singular; a plural s is accepted
  int64_t months, days, micros;
};
constexpr IntervalUnit kIntervalUnits[] = {
    {"microsecond", 0, 0, 1},
    {"millisecond", 0, 0, 1000},
    {"second", 0, 0, 1'000'000},
    {"sec", 0, 0, 1'000'000},
    {"minute", 0, 0, 60'000'000},
    {"min", 0, 0, 60'000'000},
    {"hour", 0, 0, 3'600'000'000},
    {"day", 0, 1, 0},
    {"week", 0, 7, 0},
    {"month", 1, 0, 0},
    {"mon", 1, 0, 0},
    {"quarter", 3, 0, 0},
    {"year", 12, 0, 0},
    {"decade", 120, 0, 0},
    {"century", 1200, 0, 0},
};

/// hh:mm[:ss[.f]] as microseconds.
bool ParseClock(std::string_view text, double* micros) {
  double parts[3] = {0, 0, 0};
  int n = 0;
  while (n < 3) {
    const size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    double v = 0;
    if (ParseDouble(part, &v) != ParseError::kNone || v < 0 || (n > 0 && v >= 60)) return false;
    parts[n++] = v;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
    if (n == 3) return false;
  }
  *micros = ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1e6;
  return n > 1;
}

}  // namespace

Result<Span> ParseInterval(std::string_view text, std::string_view field) {
  const Status bad = SqlError("invalid input syntax for type interval: \"" + std::string(text.substr(0, 60)) + "\"");
  double months = 0, days = 0, micros = 0;
  bool ago = false, any = false;
  size_t i = 0;
  const auto word = [&] {
    while (i < text.size() && IsBlank(text[i])) ++i;
    const size_t begin = i;
    while (i < text.size() && !IsBlank(text[i])) ++i;
    return text.substr(begin, i - begin);
  };
  std::string_view w = word();
  while (!w.empty()) {
    // A number, its unit behind it at once or after blanks: "3 months", "3months", "12:30", "-1 day".
    const std::string lower = Lower(w);
    if (lower == "ago" && any) {
      ago = true;
      w = word();
      if (!w.empty()) return bad;
      break;
    }
    size_t digits = 0;
    if (digits < w.size() && (w[0] == '-' || w[0] == '+')) ++digits;
    while (digits < w.size() && ((w[digits] >= '0' && w[digits] <= '9') || w[digits] == '.' || w[digits] == ':'))
      ++digits;
    std::string_view number = w.substr(0, digits);
    std::string unit = Lower(w.substr(digits));
    const bool negative = number.starts_with('-');
    if (number.starts_with('-') || number.starts_with('+')) number.remove_prefix(1);
    if (number.empty()) return bad;
    const double sign = negative ? -1 : 1;
    w = word();
    if (number.find(':') != std::string_view::npos) {
      double clock = 0;
      if (!unit.empty() || !ParseClock(number, &clock)) return bad;
      micros += sign * clock;
      any = true;
      continue;
    }
    double v = 0;
    if (ParseDouble(number, &v) != ParseError::kNone) return bad;
    if (unit.empty() && !w.empty()) {
      const bool is_unit = (w[0] >= 'a' && w[0] <= 'z') || (w[0] >= 'A' && w[0] <= 'Z');
      if (is_unit && Lower(w) != "ago") {
        unit = Lower(w);
        w = word();
      }
    }
    if (unit.empty()) unit = field.empty() ? "second" : Lower(field);
    if (unit == "centuries") unit = "century";
    const IntervalUnit* found = nullptr;
    for (const IntervalUnit& u : kIntervalUnits) {
      if (unit == u.name ||
          (unit.size() == u.name.size() + 1 && unit.back() == 's' && std::string_view(unit).starts_with(u.name)))
        found = &u;
    }
    if (found == nullptr) return bad;
    months += sign * v * static_cast<double>(found->months);
    days += sign * v * static_cast<double>(found->days);
    micros += sign * v * static_cast<double>(found->micros);
    any = true;
  }
  if (!any) return bad;
  // Half a month is not a number of days that all agree on.
  if (months != std::floor(months)) return bad;
  const double whole_days = std::trunc(days);
  micros = std::nearbyint(micros + (days - whole_days) * static_cast<double>(vm::kMicrosPerDay));
  // Far beyond the years 1 to 9999, and small enough that nothing overflows.
  if (std::fabs(months) > 120000 || std::fabs(whole_days) > 4e6 || std::fabs(micros) > 4e17) {
    return SqlError("interval out of range: \"" + std::string(text.substr(0, 60)) + "\"");
  }
  const double direction = ago ? -1 : 1;
  return Span{static_cast<int64_t>(direction * months), static_cast<int64_t>(direction * whole_days),
              static_cast<int64_t>(direction * micros)};
}

Result<ExprPtr> ExpressionBinder::BindInterval(const ParseNode& type_name, ExprPtr text) {
  const int position = text->position;
  std::string_view field;
  if (const ParseNode* typmods = type_name.Get(Field::k_typmods)) {
    // The grammar gives a mask of fields, 1 << code of each (PostgreSQL's datetime.h).
    const int64_t mask =
        typmods->first()->Get(Field::k_ival) != nullptr ? IntegerOfConstant(context_->sql, *typmods->first()) : 0;
    switch (mask) {
      case 1 << 2:
        field = "year";
        break;
      case 1 << 1:
        field = "month";
        break;
      case 1 << 3:
        field = "day";
        break;
      case 1 << 10:
        field = "hour";
        break;
      case 1 << 11:
        field = "minute";
        break;
      case 1 << 12:
        field = "second";
        break;
      case 0x7FFF:
        break;  // INTERVAL(p)
      default:
        return Unsupported("INTERVAL with a range of fields is not supported", type_name.location(),
                           "Write INTERVAL '1 year 2 months'.");
    }
  }
  if (IsUntyped(*text) && text->constant.null) return MakeNull(SqlType::Of(TypeId::kInterval), position);
  const bool is_text =
      IsConstant(*text) && (IsUntyped(*text) || text->type.id == TypeId::kText) && !text->constant.null;
  if (text->type.id == TypeId::kInterval) return text;
  if (!is_text) return Unsupported("an INTERVAL that is not a constant is not supported", position);
  Result<Span> span = ParseInterval(text->constant.text, field);
  if (!span.ok()) return span.status().At(position);
  return MakeConstant(IntervalOf(*span), position);
}

// ---- Functions

Result<ExprPtr> ExpressionBinder::BindFunction(const ParseNode& node) {
  const int position = node.location();
  const ParseNode* names = node.Get(Field::k_funcname);
  std::string_view name;
  bool system = false;
  for (const ParseNode& n : *names) {
    system = system || name == "pg_catalog";
    name = n.Text(Field::k_sval);
  }
  if (names->size() > (system ? 2 : 1)) return Unsupported("a function name with a schema is not supported", position);
  if (node.Get(Field::k_over) != nullptr) return Unsupported("window functions are not supported", position);
  if (node.Get(Field::k_func_variadic) != nullptr) return Unsupported("VARIADIC is not supported", position);
  if (IsAggregateName(name)) return BindAggregate(name, node);
  for (const auto& [field, what] : {std::pair{Field::k_agg_star, "*"},
                                    {Field::k_agg_distinct, "DISTINCT"},
                                    {Field::k_agg_order, "ORDER BY"},
                                    {Field::k_agg_filter, "FILTER"},
                                    {Field::k_agg_within_group, "WITHIN GROUP"}}) {
    if (node.Get(field) != nullptr) {
      return SqlError(std::string(what) + " specified, but " + std::string(name) + " is not an aggregate function",
                      position);
    }
  }
  if (system && name == "timezone") return Unsupported("AT TIME ZONE is not supported", position);
  const ParseNode* list = node.Get(Field::k_args);
  const size_t count = list != nullptr ? list->size() : 0;
  if ((name == "extract" || name == "date_part") && count == 2) {
    const ParseNode& field = *list->first();
    const ParseNode* literal = field.Is(Tag::kA_Const) ? field.Get(Field::k_sval) : nullptr;
    if (literal == nullptr) return Unsupported("EXTRACT of a field that is not a constant is not supported", position);
    return BindExtract(literal->Text(Field::k_sval), field.location(), *list->first()->next(), position);
  }
  if (count == 1 && FindDateField(name)) return BindExtract(name, position, *list->first(), position);

  std::vector<ExprPtr> args;
  if (list != nullptr) {
    for (const ParseNode& child : *list) {
      if (child.text() == "NamedArgExpr") return Unsupported("named arguments are not supported", child.location());
      TESSERA_ASSIGN(ExprPtr e, Bind(child));
      args.push_back(std::move(e));
    }
  }
  if (name == "mod" && args.size() == 2) return Infix("%", std::move(args[0]), std::move(args[1]), position);
  if (name == "concat" && !args.empty()) return BindConcat(std::move(args), position);
  if (system && args.size() == 2 && (name == "btrim" || name == "ltrim" || name == "rtrim")) {
    // TRIM(BOTH ' ' FROM x) says what is done anyway.
    if (IsConstant(*args[1]) && args[1]->constant.text == " ") {
      args.pop_back();
    } else {
      return Unsupported("TRIM of other characters than blanks is not supported", position);
    }
  }

  std::vector<SqlType> types;
  for (const ExprPtr& a : args) types.push_back(a->type);
  FunctionRule rule;
  switch (FindFunction(name, types, &rule)) {
    case FunctionMatch::kNoSuchName: {
      const std::string nearest = NearestName(name, FunctionNames());
      return NoFunction(Signature(name, args), position,
                        nearest.empty() ? "" : "Perhaps you meant function \"" + nearest + "\".");
    }
    case FunctionMatch::kWrongArguments:
      return NoFunction(Signature(name, args), position, kCastHint);
    case FunctionMatch::kFound:
      break;
  }
  bool resolved = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!IsUntyped(*args[i])) continue;
    resolved = true;
    TESSERA_ASSIGN(args[i], Resolve(std::move(args[i]), PreferredType(ArgumentClass(name, i))));
    types[i] = args[i]->type;
  }
  // The first row that fits an untyped constant need not be the row of the type that it got.
  if (resolved && FindFunction(name, types, &rule) != FunctionMatch::kFound)
    return NoFunction(Signature(name, args), position, kCastHint);

  const FunctionInfo& info = Info(rule.function);
  if (info.translation == Translation::kOpcode) {
    for (ExprPtr& a : args) {
      if (!NeedsDouble(info.opcodes, a->type)) continue;
      TESSERA_ASSIGN(a, Folded(MakeCast(std::move(a), kDouble)));
    }
  }
  switch (rule.function) {
    case Function::kRound:
      return BindRound(std::move(args), rule.result, position);
    case Function::kFloor:
    case Function::kCeil:
      if (args[0]->type.IsInteger()) return std::move(args[0]);
      break;
    default:
      break;
  }
  return Folded(MakeFunction(rule.function, rule.result, position, std::move(args)));
}

Result<ExprPtr> ExpressionBinder::BindExtract(std::string_view field, int field_position, const ParseNode& argument,
                                              int position) {
  const std::string name = Lower(field);
  const std::optional<DateField> part = FindDateField(name);
  if (!part) {
    const std::string nearest = NearestName(name, DateFieldNames());
    return SqlError("unit \"" + name + "\" is not recognized", field_position,
                    nearest.empty() ? "" : "Perhaps you meant \"" + nearest + "\".");
  }
  TESSERA_ASSIGN(ExprPtr x, BindTyped(argument));
  if ((ClassOf(x->type) & kClassDateTime) == 0) {
    return SqlError("function extract(" + name + " from " + x->type.ToString() + ") does not exist", position,
                    "EXTRACT takes a DATE or a TIMESTAMP.");
  }
  const bool fraction = *part == DateField::kSecond && x->type.id == TypeId::kTimestamp;
  ExprPtr e = MakeFunction(Function::kExtract, SqlType::Of(fraction ? TypeId::kDouble : TypeId::kBigint), position,
                           ExprList(std::move(x)));
  e->field = *part;
  return Folded(std::move(e));
}

Result<ExprPtr> ExpressionBinder::BindRound(std::vector<ExprPtr> args, const SqlType& type, int position) {
  int64_t digits = 0;
  if (args.size() > 1) {
    if (!IsConstant(*args[1]))
      return Unsupported("ROUND to a number of digits that is not a constant is not supported", args[1]->position);
    if (args[1]->constant.null) return MakeNull(type, position);
    digits = std::clamp<int64_t>(args[1]->constant.i64, -400, 400);
  }
  SqlType result = type;
  if (!type.IsFloat()) {
    if (digits < 0) {
      return Unsupported("ROUND of an exact number to a negative number of digits is not supported", args[1]->position,
                         "Cast it to DOUBLE PRECISION.");
    }
    const SqlType from = args[0]->type;
    if (from.IsInteger() || digits >= from.scale) return std::move(args[0]);
    // One more digit before the point: 99.9 rounds to 100.
    const int scale = static_cast<int>(digits);
    result = SqlType::Decimal(std::min(38, from.precision - from.scale + 1 + scale), scale);
  }
  if (args.size() > 1 || !type.IsFloat()) {
    ExprPtr n = MakeConstant(Value::Int(kInteger, digits), position);
    args.resize(1);
    args.push_back(std::move(n));
  }
  return Folded(MakeFunction(Function::kRound, result, position, std::move(args)));
}

/// CONCAT passes over NULLs: a || b with '' in their place. Pairs, then pairs of pairs: a long list makes no deep
/// expression.
Result<ExprPtr> ExpressionBinder::BindConcat(std::vector<ExprPtr> args, int position) {
  for (ExprPtr& a : args) {
    TESSERA_ASSIGN(a, Coerce(std::move(a), SqlType::Text(), CastContext::kAssignment));
    if (!a->nullable) continue;
    TESSERA_ASSIGN(ExprPtr again, Copy(*a));
    TESSERA_ASSIGN(ExprPtr present,
                   Folded(MakeFunction(Function::kIsNotNull, kBoolean, position, ExprList(std::move(again)))));
    ExprPtr empty = MakeConstant(Value::Text({}), position);
    TESSERA_ASSIGN(a, Folded(MakeFunction(Function::kCase, SqlType::Text(), position,
                                          ExprList(std::move(present), std::move(a), std::move(empty)))));
    if (IsFunction(*a, Function::kCase)) a->nullable = false;
  }
  while (args.size() > 1) {
    std::vector<ExprPtr> pairs;
    for (size_t i = 0; i + 1 < args.size(); i += 2) {
      TESSERA_ASSIGN(ExprPtr pair, Folded(MakeFunction(Function::kConcat, SqlType::Text(), position,
                                                       ExprList(std::move(args[i]), std::move(args[i + 1])))));
      pairs.push_back(std::move(pair));
    }
    if (args.size() % 2 != 0) pairs.push_back(std::move(args.back()));
    args = std::move(pairs);
  }
  return std::move(args[0]);
}

// ---- Aggregates

Result<ExprPtr> ExpressionBinder::BindAggregate(std::string_view name, const ParseNode& node) {
  const int position = node.location();
  const char* place = nullptr;
  switch (clause_) {
    case Clause::kWhere:
      place = "WHERE";
      break;
    case Clause::kOn:
      place = "JOIN conditions";
      break;
    case Clause::kGroupBy:
      place = "GROUP BY";
      break;
    case Clause::kValues:
      place = "VALUES";
      break;
    case Clause::kLimit:
      place = "LIMIT";
      break;
    case Clause::kOffset:
      place = "OFFSET";
      break;
    case Clause::kSelect:
    case Clause::kHaving:
    case Clause::kOrderBy:
      break;
  }
  if (place != nullptr) return SqlError("aggregate functions are not allowed in " + std::string(place), position);
  if (in_aggregate_) return SqlError("aggregate function calls cannot be nested", position);
  if (node.Get(Field::k_agg_order) != nullptr || node.Get(Field::k_agg_within_group) != nullptr) {
    return Unsupported("ORDER BY in an aggregate is not supported", position);
  }
  const ParseNode* list = node.Get(Field::k_args);
  const ParseNode* filter = node.Get(Field::k_agg_filter);
  const bool star = node.Get(Field::k_agg_star) != nullptr;
  bool distinct = node.Get(Field::k_agg_distinct) != nullptr;
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  if (star && name != "count") return NoFunction(std::string(name) + "(*)", position, {});
  if (!star && list == nullptr) {
    return name == "count" ? SqlError("count(*) must be used to call a parameterless aggregate function", position)
                           : NoFunction(std::string(name) + "()", position, {});
  }
  in_aggregate_ = true;
  ExprPtr condition;
  if (filter != nullptr) {
    TESSERA_ASSIGN(condition, BindBoolean(*filter, "argument of FILTER"));
    ++may_skip_;
  }
  ExprPtr argument;
  if (star) {
    if (condition == nullptr) {
      in_aggregate_ = false;
      return AddAggregate(AggregateFunction::kCountStar, nullptr, false, bigint, position);
    }
    argument = MakeConstant(Value::Int(kInteger, 1), position);
  } else {
    std::vector<ExprPtr> args;
    for (const ParseNode& child : *list) {
      TESSERA_ASSIGN(ExprPtr e, Bind(child));
      args.push_back(std::move(e));
    }
    if (args.size() != 1) return NoFunction(Signature(name, args), position, kCastHint);
    argument = std::move(args[0]);
    TESSERA_ASSIGN(argument, Resolve(std::move(argument), PreferredType(AggregateArgumentClass(name))));
  }
  if (condition != nullptr) {
    --may_skip_;
    // FILTER (WHERE c): the argument is NULL where c is not true.
    const SqlType type = argument->type;
    TESSERA_ASSIGN(argument,
                   Folded(MakeFunction(Function::kCase, type, position,
                                       ExprList(std::move(condition), std::move(argument), MakeNull(type, position)))));
  }
  in_aggregate_ = false;
  // By the standard it belongs to the block that has those columns.
  const auto outward = [](const Expr& e, auto& self) -> int {  // 0: no columns; 1: only outer ones; 2: own ones
    int found = e.kind == Expr::Kind::kOuter ? 1 : (e.kind == Expr::Kind::kColumn ? 2 : 0);
    for (const ExprPtr& a : e.args) found = std::max(found, self(*a, self));
    return found;
  };
  if (outward(*argument, outward) == 1) {
    return Unsupported("an aggregate over columns of an enclosing query only is not supported", position,
                       "Compute it in that query.");
  }
  const std::optional<AggregateRule> rule = FindAggregate(name, argument->type);
  if (!rule) {
    std::vector<ExprPtr> args;
    args.push_back(std::move(argument));
    return NoFunction(Signature(name, args), position, kCastHint);
  }
  const AggregateInfo& info = Info(rule->function);
  if (NeedsDouble(info.opcodes, argument->type)) {
    TESSERA_ASSIGN(argument, Folded(MakeCast(std::move(argument), kDouble)));
  }
  if (info.ignores_duplicates) distinct = false;
  if (rule->function == AggregateFunction::kCount && !distinct && !argument->nullable) {
    return AddAggregate(AggregateFunction::kCountStar, nullptr, false, bigint, position);
  }
  return AddAggregate(rule->function, std::move(argument), distinct, rule->result, position);
}

Result<ExprPtr> ExpressionBinder::AddAggregate(AggregateFunction function, ExprPtr argument, bool distinct,
                                               const SqlType& type, int position) {
  if (context_->aggregates == nullptr) return SqlError("aggregate functions are not allowed here", position);
  const bool nullable = !Info(function).zero_if_empty && (argument->nullable || !context_->has_group_by);
  std::vector<Aggregate>& all = *context_->aggregates;
  size_t index = 0;
  for (; index < all.size(); ++index) {
    const Aggregate& a = all[index];
    if (a.function != function || a.distinct != distinct) continue;
    if (argument == nullptr || a.argument->SameAs(*argument)) break;
  }
  if (index == all.size()) {
    if (index == kMaxItems) return Unsupported("more than 4096 aggregates in one SELECT are not supported", position);
    Aggregate a;
    a.function = function;
    a.argument = std::move(argument);
    a.distinct = distinct;
    a.type = type;
    a.position = position;
    all.push_back(std::move(a));
  }
  auto e = std::make_unique<Expr>();
  e->kind = Expr::Kind::kAggregate;
  e->type = type;
  e->nullable = nullable;
  e->position = position;
  e->index = static_cast<int>(index);
  return e;
}

}  // namespace tessera
