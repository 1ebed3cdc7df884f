// Binding calls that are made of other functions: what SQL has names for and the machine needs no opcodes for.
#include <algorithm>
#include <string>

#include "base/lower_case.h"
#include "base/user_name.h"
#include "base/version.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/macro_call.h"
#include "compiler/query/activity_source.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/random_calls.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/value_parser.h"
#include "vm/meaning/format.h"
#include "vm/meaning/meaning.h"
#include "vm/meaning/text_functions.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);

bool IsNumber(const Expr& e) { return (ClassOf(e.type) & kClassNumber) != 0; }

/// The labels as PostgreSQL shows an array of them: {sad,"so so",ok}.
std::string LabelList(const EnumType& type) {
  std::string out = "{";
  for (const std::string& label : type.labels) {
    if (out.size() > 1) out += ",";
    const bool quoted =
        label.empty() || LowerCase(label) == "null" || label.find_first_of("{},\"\\ \t\n\v\f\r") != std::string::npos;
    if (quoted) out += '"';
    for (const char c : label) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    if (quoted) out += '"';
  }
  return out + "}";
}

}  // namespace

/// encode(bytes, form) and decode(text, form). Without a value: the first argument has another type.
Result<ExprPtr> ExpressionBinder::BindByteForm(std::string_view name, std::vector<ExprPtr>* args, int position) {
  ExprPtr &x = (*args)[0], &form = (*args)[1];
  const SqlType bytes = SqlType::Of(TypeId::kBytea), text = SqlType::Text();
  const bool encodes = name == "encode";
  TESSERA_ASSIGN(x, Resolve(std::move(x), encodes ? bytes : text));
  if (x->type.id != (encodes ? TypeId::kBytea : TypeId::kText)) return ExprPtr();
  const std::string spelled = IsConstant(*form) && !form->constant.null ? LowerCase(form->constant.text) : "";
  if (!IsConstant(*form))
    return Unsupported(std::string(name) + " with a form that is not a constant is not supported", form->position);
  if (form->constant.null) return MakeNull(encodes ? text : bytes, position);
  if (spelled != "hex" && spelled != "base64" && spelled != "escape") {
    return SqlError(ErrorKind::kInvalidParameterValue, "unrecognized encoding: \"" + form->constant.text + "\"",
                    form->position, "It is 'hex', 'base64' or 'escape'.");
  }
  const int64_t number = spelled == "hex"      ? vm::meaning::kHexForm
                         : spelled == "base64" ? vm::meaning::kBase64Form
                                               : vm::meaning::kEscapeForm;
  form = MakeConstant(Value::Int(kInteger, number), form->position);
  return Folded(MakeFunction(encodes ? Function::kEncode : Function::kDecode, encodes ? text : bytes, position,
                             std::move(*args)));
}

Result<ExprPtr> ExpressionBinder::BindRandom(int position) {
  return MakeRandom(RandomSite(*context_, position), position, 0);
}

Result<ExprPtr> ExpressionBinder::BindRandomUuid(int position) { return MakeRandomUuid(position); }

Result<ExprPtr> ExpressionBinder::BindVersion(int position) {
  // (SQLAlchemy and others look for PostgreSQL's version in it.)
  return MakeConstant(Value::Text(std::string("Tessera ") + kVersion + ", compatible with PostgreSQL 15.0"), position);
}

Result<ExprPtr> ExpressionBinder::BindFormatType(ExprPtr oid, ExprPtr modifier, int position) {
  return BindText(FormatTypeText(dialect().types), ExprList(std::move(oid), std::move(modifier)), position);
}

Result<ExprPtr> ExpressionBinder::BindTypeOf(ExprPtr x, int position) {
  const bool unknown = x->type.id == TypeId::kNull;
  return MakeConstant(Value::Text(unknown ? "unknown" : x->type.ToString()), position);
}

Result<ExprPtr> ExpressionBinder::BindEnumRange(ExprPtr x, int position) {
  return MakeConstant(Value::Text(LabelList(EnumOf(x->type))), position);
}

Result<ExprPtr> ExpressionBinder::BindEnumFirst(ExprPtr x, int position) {
  return MakeConstant(Value::Int(x->type, 0), position);
}

Result<ExprPtr> ExpressionBinder::BindEnumLast(ExprPtr x, int position) {
  return MakeConstant(Value::Int(x->type, static_cast<int64_t>(EnumOf(x->type).labels.size()) - 1), position);
}

/// Of the texts of all, in which NULL is another text than every value.
Result<ExprPtr> ExpressionBinder::BindHash(std::vector<ExprPtr> args, int position) {
  ExprPtr all;
  for (ExprPtr& a : args) {
    TESSERA_ASSIGN(ExprPtr text, BindText("coalesce(x::text, chr(30))", ExprList(std::move(a)), position));
    if (all != nullptr) {
      TESSERA_ASSIGN(text, BindText("x || chr(31) || y", ExprList(std::move(all), std::move(text)), position));
    }
    all = std::move(text);
  }
  return Folded(MakeFunction(Function::kHash, SqlType::Of(TypeId::kBigint), position, ExprList(std::move(all))));
}

Result<ExprPtr> ExpressionBinder::BindNullCount(std::string_view name, std::vector<ExprPtr>* args, int position) {
  const std::string one =
      std::string("CASE WHEN x IS ") + (name == "num_nulls" ? "NULL" : "NOT NULL") + " THEN 1 ELSE 0 END";
  ExprPtr sum;
  for (ExprPtr& a : *args) {
    TESSERA_ASSIGN(ExprPtr counted, BindText(one, ExprList(std::move(a)), position));
    if (sum != nullptr) {
      TESSERA_ASSIGN(counted, Infix("+", std::move(sum), std::move(counted), position));
    }
    sum = std::move(counted);
  }
  return sum;
}

Result<ExprPtr> ExpressionBinder::BindIf(const ParseNode& call) {
  ++may_skip_;
  const ParseNode& condition = *call.Get(Field::k_args)->first();
  const ParseNode& value = *condition.next();
  TESSERA_ASSIGN(ExprPtr when, BindBoolean(condition, "first argument of IF"));
  TESSERA_ASSIGN(ExprPtr then, Bind(value));
  TESSERA_ASSIGN(ExprPtr otherwise, Bind(*value.next()));
  --may_skip_;
  return MakeCase(ExprList(std::move(when), std::move(then), std::move(otherwise)), call.location());
}

/// TRUNC of a float: CASE WHEN x < 0 THEN ceil(x) ELSE floor(x) END.
Result<ExprPtr> ExpressionBinder::BindTruncated(ExprPtr x, int position) {
  TESSERA_ASSIGN(ExprPtr again, Copy(*x));
  TESSERA_ASSIGN(ExprPtr same, Copy(*x));
  ExprPtr zero = MakeConstant(Value::Float(kDouble, 0), position);
  TESSERA_ASSIGN(ExprPtr negative, Comparison(Function::kLt, std::move(again), std::move(zero), position));
  TESSERA_ASSIGN(ExprPtr up, Folded(MakeFunction(Function::kCeil, kDouble, position, ExprList(std::move(same)))));
  TESSERA_ASSIGN(ExprPtr down, Folded(MakeFunction(Function::kFloor, kDouble, position, ExprList(std::move(x)))));
  return Folded(
      MakeFunction(Function::kCase, kDouble, position, ExprList(std::move(negative), std::move(up), std::move(down))));
}

/// With a constant part it is LIKE, which has conditions of its own; else left(x, length(part)) = part and its kin.
Result<ExprPtr> ExpressionBinder::BindPartOf(std::string_view name, ExprPtr x, ExprPtr part, int position) {
  const bool starts = name == "starts_with", ends = name == "ends_with";
  if (IsConstant(*part) && !part->constant.null) {
    std::string pattern = starts ? "" : "%";
    for (const char c : part->constant.text) {
      if (c == '%' || c == '_' || c == '\\') pattern.push_back('\\');
      pattern.push_back(c);
    }
    if (!ends) pattern.push_back('%');
    ExprPtr value = MakeConstant(Value::Text(std::move(pattern)), part->position);
    return Folded(MakeFunction(Function::kLike, kBoolean, position, ExprList(std::move(x), std::move(value))));
  }
  if (!starts && !ends) {
    TESSERA_ASSIGN(ExprPtr at, Folded(MakeFunction(Function::kPosition, kInteger, position,
                                                   ExprList(std::move(x), std::move(part)))));
    return Comparison(Function::kGt, std::move(at), MakeConstant(Value::Int(kInteger, 0), position), position);
  }
  TESSERA_ASSIGN(ExprPtr again, Copy(*part));
  TESSERA_ASSIGN(ExprPtr length,
                 Folded(MakeFunction(Function::kLength, kInteger, position, ExprList(std::move(again)))));
  TESSERA_ASSIGN(ExprPtr end, Folded(MakeFunction(starts ? Function::kLeft : Function::kRight, SqlType::Text(),
                                                  position, ExprList(std::move(x), std::move(length)))));
  return Comparison(Function::kEq, std::move(end), std::move(part), position);
}

/// The separator stands before each value that is not NULL, and then the first one is cut off.
Result<ExprPtr> ExpressionBinder::BindConcatWithSeparator(std::vector<ExprPtr> args, int position) {
  const SqlType text = SqlType::Text();
  for (ExprPtr& a : args) {
    TESSERA_ASSIGN(a, Coerce(std::move(a), text, CastContext::kAssignment));
  }
  if (IsNullConstant(*args[0])) return MakeNull(text, position);
  std::vector<ExprPtr> pieces;
  for (size_t i = 1; i < args.size(); ++i) {
    TESSERA_ASSIGN(ExprPtr separator, Copy(*args[0]));
    TESSERA_ASSIGN(ExprPtr piece, Folded(MakeFunction(Function::kConcat, text, position,
                                                      ExprList(std::move(separator), std::move(args[i])))));
    pieces.push_back(std::move(piece));
  }
  TESSERA_ASSIGN(ExprPtr joined, BindConcat(std::move(pieces), position));
  const bool nullable = args[0]->nullable;
  ExprPtr present;
  if (nullable) {
    TESSERA_ASSIGN(ExprPtr separator, Copy(*args[0]));
    TESSERA_ASSIGN(present,
                   Folded(MakeFunction(Function::kIsNotNull, kBoolean, position, ExprList(std::move(separator)))));
  }
  TESSERA_ASSIGN(ExprPtr length,
                 Folded(MakeFunction(Function::kLength, kInteger, position, ExprList(std::move(args[0])))));
  TESSERA_ASSIGN(ExprPtr from,
                 Infix("+", std::move(length), MakeConstant(Value::Int(kInteger, 1), position), position));
  TESSERA_ASSIGN(ExprPtr rest, Folded(MakeFunction(Function::kSubstring, text, position,
                                                   ExprList(std::move(joined), std::move(from)))));
  if (!nullable) return rest;
  return Folded(MakeFunction(Function::kCase, text, position,
                             ExprList(std::move(present), std::move(rest), MakeNull(text, position))));
}

// ---- Formats

/// TO_CHAR(x, format); STRFTIME and its kin.
Result<ExprPtr> ExpressionBinder::BindFormat(std::string_view name, ExprPtr x, ExprPtr format, int position) {
  const bool to_char = name == "to_char";
  // strftime(format, x)
  if (!to_char && (ClassOf(format->type) & (kClassMoment | kClassTime)) != 0) std::swap(x, format);
  const SqlType timestamp = SqlType::Of(TypeId::kTimestamp), text = SqlType::Text();
  TESSERA_ASSIGN(x, Resolve(std::move(x), timestamp));
  TESSERA_ASSIGN(format, Resolve(std::move(format), text));
  const bool zoned = x->type.id == TypeId::kTimestampTz, interval = x->type.id == TypeId::kInterval;
  if (!vm::IsFormatted(x->type) || ((x->type.IsNumeric() || interval) && !to_char) ||
      format->type.id != TypeId::kText) {
    return SqlError(ErrorKind::kUndefinedFunction,
                    "function " + std::string(name) + "(" + x->type.ToString() + ", " + format->type.ToString() +
                        ") does not exist",
                    position,
                    to_char ? "to_char takes a number, a date, a time, a timestamp or an interval, and a format."
                            : std::string(name) + " takes a date, a time or a timestamp.");
  }
  if (!IsConstant(*format))
    return Unsupported(std::string(name) + " with a format that is not a constant is not supported", format->position);
  if (format->constant.null) return MakeNull(text, position);
  const auto language = to_char ? vm::Format::Language::kToChar : vm::Format::Language::kStrftime;
  const vm::Format read(format->constant.text, zoned ? timestamp : x->type, language);
  if (zoned && read.HasZone()) {
    const std::string clocks = zone() == nullptr ? "UTC" : zone()->name();
    format->constant.text = clocks + vm::Format::kZoneEnd + format->constant.text;
    const vm::Format with_zone(format->constant.text, x->type, language);
    if (!with_zone.error().empty()) return SqlError(with_zone.error(), format->position);
  } else if (zoned) {
    TESSERA_ASSIGN(x, Cast(std::move(x), timestamp));
  }
  if (!read.error().empty()) return SqlError(ErrorKind::kInvalidDatetime, read.error(), format->position);
  ExprPtr number = MakeConstant(Value::Int(kInteger, static_cast<int>(language)), position);
  return Folded(
      MakeFunction(Function::kFormat, text, position, ExprList(std::move(x), std::move(format), std::move(number))));
}

// ---- Random numbers

Result<ExprPtr> ExpressionBinder::BindSetSeed(ExprPtr x, int position) {
  TESSERA_ASSIGN(x, Resolve(std::move(x), kDouble));
  if (!IsNumber(*x))
    return SqlError(ErrorKind::kUndefinedFunction, "function setseed(" + x->type.ToString() + ") does not exist",
                    position);
  if (!IsConstant(*x)) return Unsupported("setseed of a value that is not a constant is not supported", x->position);
  TESSERA_ASSIGN(x, Folded(MakeCast(std::move(x), kDouble)));
  if (x->constant.null) return MakeNull(SqlType::Text(), position);
  if (!(x->constant.f64 >= -1 && x->constant.f64 <= 1))
    return SqlError("setseed parameter " + ToText(x->constant) + " is out of allowed range [-1,1]", x->position);
  ExprPtr e = MakeFunction(Function::kSetSeed, SqlType::Text(), position, ExprList(std::move(x)));
  e->nullable = true;
  return e;
}

// ---- The moment of the statement

Result<ExprPtr> ExpressionBinder::Moment(TypeId type, int position) const {
  NoteMoment();
  const TimeZone* const zone = ZoneOf(*context_);
  const int64_t local = zone != nullptr && type != TypeId::kTimestampTz ? zone->LocalOf(context_->now) : context_->now;
  const int64_t value = type == TypeId::kDate   ? vm::FloorDiv(local, vm::kMicrosPerDay)
                        : type == TypeId::kTime ? vm::FloorMod(local, vm::kMicrosPerDay)
                                                : local;
  return MakeConstant(Value::Int(SqlType::Of(type), value), position);
}

Result<ExprPtr> ExpressionBinder::BindNamedMoment(std::string_view text, const SqlType& type, int position) const {
  const bool time = type.id == TypeId::kTime;
  if (type.id != TypeId::kDate && !type.IsTimestamp() && !time) return ExprPtr();
  const std::string name = LowerCase(TrimBlanks(text));
  if (name == "now") return Moment(type.id, position);
  if (time) return ExprPtr();
  if (name == "epoch") return MakeConstant(Value::Int(type, 0), position);
  const int days = name == "yesterday" ? -1 : name == "tomorrow" ? 1 : 0;
  if (days == 0 && name != "today") return ExprPtr();
  TESSERA_ASSIGN(ExprPtr day, Moment(TypeId::kDate, position));
  day->constant.i64 += days;
  return type.id == TypeId::kDate ? std::move(day) : Cast(std::move(day), type);
}

ExprPtr ExpressionBinder::UserName(int position) const {
  ActivitySource* const activity = dialect().activity;
  return MakeConstant(Value::Text(activity != nullptr ? activity->user() : UserOfProcess()), position);
}

Result<ExprPtr> ExpressionBinder::BindMoment(const ParseNode& node) {
  const std::string_view op = node.Text(Field::k_op);
  if (op == "SVFOP_CURRENT_DATE") return Moment(TypeId::kDate, node.location());
  if (op == "SVFOP_CURRENT_TIMESTAMP") return Moment(TypeId::kTimestampTz, node.location());
  if (op == "SVFOP_LOCALTIMESTAMP") return Moment(TypeId::kTimestamp, node.location());
  if (op == "SVFOP_CURRENT_TIME" || op == "SVFOP_LOCALTIME") return Moment(TypeId::kTime, node.location());
  for (const char* user : {"SVFOP_CURRENT_USER", "SVFOP_USER", "SVFOP_SESSION_USER", "SVFOP_CURRENT_ROLE"}) {
    if (op == user) return UserName(node.location());
  }
  std::vector<ExprPtr> none;
  if (op == "SVFOP_CURRENT_SCHEMA") return BindComposed(*FindComposed("current_schema"), &none, node.location());
  if (op == "SVFOP_CURRENT_CATALOG") return BindComposed(*FindComposed("current_database"), &none, node.location());
  return NotSupported(node);
}

}  // namespace tessera
