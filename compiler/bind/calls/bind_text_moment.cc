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

/// What a text that matches the pattern of a format becomes: one in the form that a cast reads. It is made of pieces: parts as
/// they are, collected in as_is_, and others.
class ExpressionBinder::MomentOfText {
 public:
  MomentOfText(ExpressionBinder* binder, const Expr& x, const vm::FormatPattern& pattern, std::string regex,
               bool strptime, int position)
      : binder_(*binder),
        x_(x),
        pattern_(pattern),
        regex_(std::move(regex)),
        strptime_(strptime),
        position_(position) {}

  Result<ExprPtr> Text(bool has_time) {
    TESSERA_TRY(AddYear());
    as_is_ += "-";
    TESSERA_TRY(AddMonth());
    as_is_ += "-" + ReferenceOr(Group::kDay, "01");
    if (has_time) {
      as_is_ += " ";
      TESSERA_TRY(AddHour());
      as_is_ += ":" + ReferenceOr(Group::kMinute, "00") + ":" + ReferenceOr(Group::kSecond, "00");
    }
    TESSERA_TRY(Add(nullptr));
    ExprPtr text;
    for (ExprPtr& piece : pieces_) {
      if (text == nullptr) {
        text = std::move(piece);
      } else {
        TESSERA_ASSIGN(text, Call(Function::kConcat, kText, ExprList(std::move(text), std::move(piece))));
      }
    }
    if (!has_time) return text;
    // A cast reads times of two digits each.
    TESSERA_ASSIGN(text, Call(Function::kRegexReplace, kText,
                              ExprList(std::move(text), TextConstant("\\b(\\d)\\b", position_),
                                       TextConstant("0\\1", position_), IntegerConstant(1, position_))));
    if (!Has(Group::kFraction)) return text;
    TESSERA_ASSIGN(ExprPtr fraction, Replaced("." + Reference(Group::kFraction)));
    return Call(Function::kConcat, kText, ExprList(std::move(text), std::move(fraction)));
  }

 private:
  using Group = vm::FormatPattern::Group;

  bool Has(Group g) const { return pattern_.Find(g) >= 0; }
  std::string Reference(Group g) const { return "\\" + std::to_string(pattern_.Find(g) + 1); }
  std::string ReferenceOr(Group g, const char* otherwise) const { return Has(g) ? Reference(g) : otherwise; }

  Result<ExprPtr> Call(Function f, const SqlType& type, std::vector<ExprPtr> args) {
    return binder_.Folded(MakeFunction(f, type, position_, std::move(args)));
  }
  Result<ExprPtr> Replaced(std::string with) {
    TESSERA_ASSIGN(ExprPtr text, binder_.Copy(x_));
    return Call(Function::kRegexReplace, kText,
                ExprList(std::move(text), TextConstant(regex_, position_), TextConstant(std::move(with), position_),
                         IntegerConstant(0, position_)));
  }
  /// The first letters of a group, in lower case.
  Result<ExprPtr> FirstLetters(Group g, int letters) {
    TESSERA_ASSIGN(ExprPtr text, Replaced(Reference(g)));
    TESSERA_ASSIGN(text, Call(Function::kLeft, kText, ExprList(std::move(text), IntegerConstant(letters, position_))));
    return Call(Function::kLower, kText, ExprList(std::move(text)));
  }

  Status Add(ExprPtr piece) {
    if (!as_is_.empty()) {
      TESSERA_ASSIGN(ExprPtr before, Replaced(std::exchange(as_is_, {})));
      pieces_.push_back(std::move(before));
    }
    if (piece != nullptr) pieces_.push_back(std::move(piece));
    return {};
  }

  Status AddYear() {
    if (!Has(Group::kShortYear)) {
      as_is_ += Reference(Group::kYear);
      return {};
    }
    // As PostgreSQL and C: 70 is 1970, 69 is 2069 (in C 1969).
    TESSERA_ASSIGN(ExprPtr year, Replaced(Reference(Group::kShortYear)));
    ExprPtr least = TextConstant(strptime_ ? "69" : "70", position_);
    TESSERA_ASSIGN(ExprPtr late, binder_.Comparison(Function::kLt, std::move(year), std::move(least), position_));
    TESSERA_ASSIGN(ExprPtr century, binder_.MakeCase(ExprList(std::move(late), TextConstant("20", position_),
                                                              TextConstant("19", position_)),
                                                     position_));
    TESSERA_TRY(Add(std::move(century)));
    as_is_ += Reference(Group::kShortYear);
    return {};
  }

  Status AddMonth() {
    if (!Has(Group::kMonthName)) {
      as_is_ += ReferenceOr(Group::kMonth, "01");
      return {};
    }
    TESSERA_ASSIGN(ExprPtr month, FirstLetters(Group::kMonthName, 3));
    ExprPtr months = TextConstant("jan feb mar apr may jun jul aug sep oct nov dec", position_);
    TESSERA_ASSIGN(month, Call(Function::kPosition, kInteger, ExprList(std::move(months), std::move(month))));
    TESSERA_ASSIGN(month, binder_.WithNumber("+", std::move(month), 3, position_));
    TESSERA_ASSIGN(month, binder_.WithNumber("/", std::move(month), 4, position_));
    TESSERA_ASSIGN(month, binder_.Folded(MakeCast(std::move(month), kText)));
    return Add(std::move(month));
  }

  Status AddHour() {
    if (!Has(Group::kHour12)) {
      as_is_ += ReferenceOr(Group::kHour, "00");
      return {};
    }
    // 12 is 0 in the morning.
    TESSERA_ASSIGN(ExprPtr hour, Replaced(Reference(Group::kHour12)));
    TESSERA_ASSIGN(hour, binder_.Folded(MakeCast(std::move(hour), kInteger)));
    TESSERA_ASSIGN(hour, binder_.WithNumber("%", std::move(hour), 12, position_));
    if (Has(Group::kNoon)) {
      TESSERA_ASSIGN(ExprPtr noon, FirstLetters(Group::kNoon, 1));
      TESSERA_ASSIGN(noon, binder_.Comparison(Function::kEq, std::move(noon), TextConstant("p", position_), position_));
      TESSERA_ASSIGN(noon, binder_.MakeCase(
                               ExprList(std::move(noon), IntegerConstant(12, position_), IntegerConstant(0, position_)),
                               position_));
      TESSERA_ASSIGN(hour, binder_.Infix("+", std::move(hour), std::move(noon), position_));
    }
    TESSERA_ASSIGN(hour, binder_.Folded(MakeCast(std::move(hour), kText)));
    return Add(std::move(hour));
  }

  ExpressionBinder& binder_;
  const Expr& x_;
  const vm::FormatPattern& pattern_;
  const std::string regex_;
  const bool strptime_;
  const int position_;
  std::vector<ExprPtr> pieces_;
  std::string as_is_;
};

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
  MomentOfText moment(this, *x, pattern, regex, strptime, position);
  TESSERA_ASSIGN(ExprPtr text, moment.Text(type.id != TypeId::kDate));
  // A text of another form: the cast refuses what it becomes, and says it.
  TESSERA_ASSIGN(ExprPtr again, Copy(*x));
  TESSERA_ASSIGN(ExprPtr matches, BindMatch(std::move(again), TextConstant(regex, position), position));
  ExprPtr otherwise = MakeNull(kText, position);
  if (may_fail) {
    TESSERA_ASSIGN(ExprPtr given, Copy(*x));
    TESSERA_ASSIGN(
        otherwise,
        Folded(MakeFunction(
            Function::kConcat, kText, position,
            ExprList(std::move(given), TextConstant("\" is not in the format \"" + format->constant.text, position)))));
  }
  TESSERA_ASSIGN(text, Folded(MakeFunction(Function::kCase, kText, position,
                                           ExprList(std::move(matches), std::move(text), std::move(otherwise)))));
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
