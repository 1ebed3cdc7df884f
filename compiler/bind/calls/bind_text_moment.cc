// Binding functions that read moments and numbers from texts by a format: STRPTIME, TO_DATE, TO_TIMESTAMP, TO_NUMBER. The format becomes a
// regular expression; what its groups match becomes a text in the form that a cast reads.
#include <string>
#include <utility>

#include "compiler/bind/expression_binder.h"
#include "vm/meaning/format.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kTimestamp = SqlType::Of(TypeId::kTimestamp);
const SqlType kText = SqlType::Text();

ExprPtr TextConstant(std::string text, int position) { return MakeConstant(Value::Text(std::move(text)), position); }
ExprPtr IntegerConstant(int64_t n, int position) { return MakeConstant(Value::Int(kInteger, n), position); }

}  // namespace

Result<ExprPtr> ExpressionBinder::BindEpoch(ExprPtr seconds, int position) {
  const bool exact = !seconds->type.IsFloat();
  TESSERA_ASSIGN(ExprPtr micros, WithNumber("*", std::move(seconds), 1'000'000, position));
  if (!exact || !micros->type.IsInteger()) {
    TESSERA_ASSIGN(micros, Folded(MakeCast(std::move(micros), kBigint)));
  }
  const SqlType moment = SqlType::Of(TypeId::kTimestampTz);
  return AddNumber(Function::kAddMicros, MakeConstant(Value::Int(moment, 0), position), std::move(micros), position);
}

Result<ExprPtr> ExpressionBinder::BindTextMoment(std::string_view name, ExprPtr x, ExprPtr format, int position) {
  const bool strptime = name.ends_with("strptime"), may_fail = name != "try_strptime";
  const SqlType type = name == "to_date"        ? SqlType::Of(TypeId::kDate)
                       : name == "to_timestamp" ? SqlType::Of(TypeId::kTimestampTz)
                                                : kTimestamp;
  TESSERA_ASSIGN(x, Resolve(std::move(x), kText));
  TESSERA_ASSIGN(format, Resolve(std::move(format), kText));
  if (x->type.id != TypeId::kText || format->type.id != TypeId::kText) {
    return SqlError("function " + std::string(name) + "(" + x->type.ToString() + ", " + format->type.ToString() +
                        ") does not exist",
                    position, "It takes a text and a format.");
  }
  if (!IsConstant(*format))
    return Unsupported(std::string(name) + " with a format that is not a constant is not supported", format->position);
  if (format->constant.null) return MakeNull(type, position);
  const auto language = strptime ? vm::Format::Language::kStrftime : vm::Format::Language::kToChar;
  const vm::Format read(format->constant.text, kTimestamp, language);
  if (!read.error().empty()) return SqlError(read.error(), format->position);
  const vm::FormatPattern pattern = read.Pattern(language);
  if (!pattern.error.empty()) return SqlError(pattern.error, format->position);
  // What follows the format is left out, or there is nothing: then it does not match.
  const std::string regex = "(?s)" + pattern.regex + (strptime ? "" : ".*\\z");

  using Group = vm::FormatPattern::Group;
  const auto has = [&](Group g) { return pattern.Find(g) >= 0; };
  const auto reference = [&](Group g) { return "\\" + std::to_string(pattern.Find(g) + 1); };
  const auto replaced = [&](std::string with) -> Result<ExprPtr> {
    TESSERA_ASSIGN(ExprPtr text, Copy(*x));
    return Folded(MakeFunction(Function::kRegexReplace, kText, position,
                               ExprList(std::move(text), TextConstant(regex, position),
                                        TextConstant(std::move(with), position), IntegerConstant(0, position))));
  };
  const auto call = [&](Function f, const SqlType& of, std::vector<ExprPtr> args) {
    return Folded(MakeFunction(f, of, position, std::move(args)));
  };
  // The pieces of the text: parts as they are, collected in `as_is`, and others.
  std::vector<ExprPtr> pieces;
  std::string as_is;
  const auto add = [&](ExprPtr piece) -> Status {
    if (!as_is.empty()) {
      TESSERA_ASSIGN(ExprPtr before, replaced(std::exchange(as_is, {})));
      pieces.push_back(std::move(before));
    }
    if (piece != nullptr) pieces.push_back(std::move(piece));
    return {};
  };
  if (has(Group::kShortYear)) {
    // As PostgreSQL and C: 70 is 1970, 69 is 2069 (in C 1969).
    TESSERA_ASSIGN(ExprPtr year, replaced(reference(Group::kShortYear)));
    ExprPtr least = TextConstant(strptime ? "69" : "70", position);
    TESSERA_ASSIGN(ExprPtr late, Comparison(Function::kLt, std::move(year), std::move(least), position));
    TESSERA_ASSIGN(
        ExprPtr century,
        MakeCase(ExprList(std::move(late), TextConstant("20", position), TextConstant("19", position)), position));
    TESSERA_TRY(add(std::move(century)));
    as_is += reference(Group::kShortYear);
  } else {
    as_is += reference(Group::kYear);
  }
  as_is += "-";
  if (has(Group::kMonthName)) {
    TESSERA_ASSIGN(ExprPtr month, replaced(reference(Group::kMonthName)));
    TESSERA_ASSIGN(month, call(Function::kLeft, kText, ExprList(std::move(month), IntegerConstant(3, position))));
    TESSERA_ASSIGN(month, call(Function::kLower, kText, ExprList(std::move(month))));
    ExprPtr months = TextConstant("jan feb mar apr may jun jul aug sep oct nov dec", position);
    TESSERA_ASSIGN(month, call(Function::kPosition, kInteger, ExprList(std::move(months), std::move(month))));
    TESSERA_ASSIGN(month, WithNumber("+", std::move(month), 3, position));
    TESSERA_ASSIGN(month, WithNumber("/", std::move(month), 4, position));
    TESSERA_ASSIGN(month, Folded(MakeCast(std::move(month), kText)));
    TESSERA_TRY(add(std::move(month)));
  } else {
    as_is += has(Group::kMonth) ? reference(Group::kMonth) : "01";
  }
  as_is += "-" + (has(Group::kDay) ? reference(Group::kDay) : "01");
  const bool has_time = type.id != TypeId::kDate;
  if (has_time) {
    as_is += " ";
    if (has(Group::kHour12)) {
      // 12 is 0 in the morning.
      TESSERA_ASSIGN(ExprPtr hour, replaced(reference(Group::kHour12)));
      TESSERA_ASSIGN(hour, Folded(MakeCast(std::move(hour), kInteger)));
      TESSERA_ASSIGN(hour, WithNumber("%", std::move(hour), 12, position));
      if (has(Group::kNoon)) {
        TESSERA_ASSIGN(ExprPtr noon, replaced(reference(Group::kNoon)));
        TESSERA_ASSIGN(noon, call(Function::kLeft, kText, ExprList(std::move(noon), IntegerConstant(1, position))));
        TESSERA_ASSIGN(noon, call(Function::kLower, kText, ExprList(std::move(noon))));
        TESSERA_ASSIGN(noon, Comparison(Function::kEq, std::move(noon), TextConstant("p", position), position));
        TESSERA_ASSIGN(
            noon,
            MakeCase(ExprList(std::move(noon), IntegerConstant(12, position), IntegerConstant(0, position)), position));
        TESSERA_ASSIGN(hour, Infix("+", std::move(hour), std::move(noon), position));
      }
      TESSERA_ASSIGN(hour, Folded(MakeCast(std::move(hour), kText)));
      TESSERA_TRY(add(std::move(hour)));
    } else {
      as_is += has(Group::kHour) ? reference(Group::kHour) : "00";
    }
    as_is += ":" + (has(Group::kMinute) ? reference(Group::kMinute) : "00");
    as_is += ":" + (has(Group::kSecond) ? reference(Group::kSecond) : "00");
  }
  TESSERA_TRY(add(nullptr));
  ExprPtr text;
  for (ExprPtr& piece : pieces) {
    if (text == nullptr) {
      text = std::move(piece);
    } else {
      TESSERA_ASSIGN(text, call(Function::kConcat, kText, ExprList(std::move(text), std::move(piece))));
    }
  }
  if (has_time) {
    // A cast reads times of two digits each.
    TESSERA_ASSIGN(text, call(Function::kRegexReplace, kText,
                              ExprList(std::move(text), TextConstant("\\b(\\d)\\b", position),
                                       TextConstant("0\\1", position), IntegerConstant(1, position))));
    if (has(Group::kFraction)) {
      TESSERA_ASSIGN(ExprPtr fraction, replaced("." + reference(Group::kFraction)));
      TESSERA_ASSIGN(text, call(Function::kConcat, kText, ExprList(std::move(text), std::move(fraction))));
    }
  }
  // A text of another form: the cast refuses what it becomes, and says it.
  TESSERA_ASSIGN(ExprPtr again, Copy(*x));
  TESSERA_ASSIGN(ExprPtr matches, BindMatch(std::move(again), TextConstant(regex, position), position));
  ExprPtr otherwise = MakeNull(kText, position);
  if (may_fail) {
    TESSERA_ASSIGN(ExprPtr given, Copy(*x));
    TESSERA_ASSIGN(
        otherwise,
        call(Function::kConcat, kText,
             ExprList(std::move(given), TextConstant("\" is not in the format \"" + format->constant.text, position))));
  }
  TESSERA_ASSIGN(text,
                 call(Function::kCase, kText, ExprList(std::move(matches), std::move(text), std::move(otherwise))));
  return may_fail ? Cast(std::move(text), type) : BindTryCast(std::move(text), type, position);
}

/// TO_NUMBER(x, format): as many digits before and after the point as the format has. What is no digit, point or sign
/// is passed over, as commas and currencies are.
Result<ExprPtr> ExpressionBinder::BindTextNumber(ExprPtr x, ExprPtr format, int position) {
  TESSERA_ASSIGN(x, Resolve(std::move(x), kText));
  TESSERA_ASSIGN(format, Resolve(std::move(format), kText));
  if (x->type.id != TypeId::kText || format->type.id != TypeId::kText) {
    return SqlError("function to_number(" + x->type.ToString() + ", " + format->type.ToString() + ") does not exist",
                    position, "It takes a text and a format.");
  }
  if (!IsConstant(*format))
    return Unsupported("to_number with a format that is not a constant is not supported", format->position);
  if (format->constant.null) return MakeNull(SqlType::Decimal(18, 3), position);
  const vm::Format read(format->constant.text, SqlType::Decimal(38, 0), vm::Format::Language::kToChar);
  if (!read.error().empty()) return SqlError(read.error(), format->position);
  int before = 0, behind = 0;
  if (!read.CountDigits(&before, &behind) || before + behind > 38) {
    return Unsupported(
        "a format of to_number without digits, with EEEE, RN or V, or with more than 38 digits is not supported",
        format->position, "to_number(x, '999G999D99')");
  }
  const auto replaced = [&](ExprPtr text, std::string regex, std::string with) {
    return Folded(MakeFunction(Function::kRegexReplace, kText, position,
                               ExprList(std::move(text), TextConstant(std::move(regex), position),
                                        TextConstant(std::move(with), position), IntegerConstant(1, position))));
  };
  // A sign may stand at either end; < is that of <12>.
  TESSERA_ASSIGN(ExprPtr again, Copy(*x));
  TESSERA_ASSIGN(ExprPtr negative, BindMatch(std::move(again), TextConstant("[-<]", position), position));
  TESSERA_ASSIGN(ExprPtr digits, replaced(std::move(x), "[^0-9.]", ""));
  const std::string whole = "([0-9]{0," + std::to_string(before) + "})[0-9]*";
  const std::string fraction = behind == 0 ? "" : "(?:\\.([0-9]{0," + std::to_string(behind) + "}))?";
  TESSERA_ASSIGN(digits,
                 replaced(std::move(digits), "\\A" + whole + fraction + ".*\\z", behind == 0 ? "\\1" : "\\1.\\2"));
  const SqlType type = SqlType::Decimal(before + behind, behind);
  TESSERA_ASSIGN(ExprPtr number, Cast(std::move(digits), type));
  TESSERA_ASSIGN(ExprPtr same, Copy(*number));
  TESSERA_ASSIGN(same, Folded(MakeFunction(Function::kNeg, type, position, ExprList(std::move(same)))));
  return Folded(
      MakeFunction(Function::kCase, type, position, ExprList(std::move(negative), std::move(same), std::move(number))));
}

}  // namespace tessera
