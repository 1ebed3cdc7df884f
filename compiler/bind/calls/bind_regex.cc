// Binding regular expressions: operators, SIMILAR TO and functions. A pattern is a constant that RE2 has tried, or rows have
// theirs, which is tried when they run; flags stand at its head, as (?i).
#include <algorithm>
#include <cctype>
#include <string>

#include "compiler/bind/expression_binder.h"
#include "vm/meaning/regex.h"
#include "vm/meaning/text_meaning.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);

}  // namespace

/// REGEXP_... and SUBSTRING: the places of their arguments; 0: there is none.
struct RegexFunction {
  std::string_view name;
  enum class Kind : uint8_t { kMatches, kFull, kCount, kPlace, kSubstr, kExtract, kReplace, kSubstring } kind;
  size_t flags_at, start_at, match_at, group_at;

  bool Is(Kind k) const { return kind == k; }
  SqlType result() const {
    if (Is(Kind::kMatches) || Is(Kind::kFull)) return kBoolean;
    return Is(Kind::kCount) || Is(Kind::kPlace) ? kInteger : SqlType::Text();
  }
};

namespace {

constexpr RegexFunction kRegexFunctions[] = {
    {"regexp_like", RegexFunction::Kind::kMatches, 2, 0, 0, 0},
    {"regexp_matches", RegexFunction::Kind::kMatches, 2, 0, 0, 0},
    {"regexp_full_match", RegexFunction::Kind::kFull, 2, 0, 0, 0},
    {"regexp_count", RegexFunction::Kind::kCount, 3, 2, 0, 0},
    {"regexp_instr", RegexFunction::Kind::kPlace, 0, 0, 0, 0},
    {"regexp_substr", RegexFunction::Kind::kSubstr, 4, 2, 3, 5},
    {"regexp_extract", RegexFunction::Kind::kExtract, 3, 0, 0, 2},
    {"regexp_replace", RegexFunction::Kind::kReplace, 3, 0, 0, 0},
    {"substring", RegexFunction::Kind::kSubstring, 0, 0, 0, 0},
};

struct Flags {
  bool ignore_case = false;
  bool by_line = false;  ///< ^ and $ match at lines, and . no line feed
  bool all = false;      ///< REGEXP_REPLACE: every match
};

/// Reads the flags of an argument. Errors: not constant, an unknown letter; 'g' if not `takes_all`.
Status ReadFlags(const Expr& e, std::string_view function, bool takes_all, Flags* flags) {
  if (!IsConstant(e))
    return Unsupported("flags of a regular expression that are not constant are not supported", e.position);
  for (const char c : e.constant.text) {
    switch (c) {
      case 'i':
        flags->ignore_case = true;
        break;
      case 'c':
        flags->ignore_case = false;
        break;
      case 'n':
      case 'm':
        flags->by_line = true;
        break;
      case 's':
        flags->by_line = false;
        break;
      case 'g':
        if (takes_all) {
          flags->all = true;
          break;
        }
        [[fallthrough]];
      default:
        return SqlError(ErrorKind::kInvalidRegex, "invalid regular expression option: \"" + std::string(1, c) + "\"",
                        e.position, std::string(function) + " takes i, c, n, m, s" + (takes_all ? " and g." : "."));
    }
  }
  return Status::Ok();
}

std::string WithFlags(std::string pattern, const Flags& flags) {
  if (!flags.ignore_case && !flags.by_line) return pattern;
  return std::string("(?") + (flags.ignore_case ? "i" : "") + (flags.by_line ? "m-s" : "") + ")" + pattern;
}

Status TryRegex(const std::string& pattern, int position) {
  const vm::Regex regex(pattern);
  if (regex.error().empty()) return Status::Ok();
  return SqlError(ErrorKind::kInvalidRegex, "invalid regular expression: " + regex.error(), position,
                  "The syntax is that of RE2: without back-references and without looking ahead or behind.");
}

/// The pattern of LIKE that matches what a regular expression does; false if it has more than text, ^ and $.
bool AsLike(std::string_view regex, std::string* like) {
  const bool starts = regex.starts_with('^');
  if (starts) regex.remove_prefix(1);
  const bool ends = regex.ends_with('$') && !regex.ends_with("\\$");
  if (ends) regex.remove_suffix(1);
  if (regex.find_first_of("\\^$.|?*+()[]{}") != std::string_view::npos) return false;
  if (!starts) *like = "%";
  for (const char c : regex) {
    if (c == '%' || c == '_') like->push_back('\\');
    like->push_back(c);
  }
  if (!ends) like->push_back('%');
  return true;
}

Status LaterCharacter(const Expr& start, std::string_view function) {
  return Unsupported(std::string(function) + " from a later character on is not supported", start.position,
                     "substr(x, n) is.");
}

ExprPtr Number(int64_t v, int position) { return MakeConstant(Value::Int(kInteger, v), position); }

}  // namespace

/// x has a match of the constant `pattern`, flags and all.
Result<ExprPtr> ExpressionBinder::BindMatch(ExprPtr x, ExprPtr pattern, int position) {
  TESSERA_TRY(TryRegex(pattern->constant.text, pattern->position));
  std::string like;
  const bool plain = AsLike(pattern->constant.text, &like);
  if (plain) pattern->constant.text = like;
  return Folded(MakeFunction(plain ? Function::kLike : Function::kRegexMatch, kBoolean, position,
                             ExprList(std::move(x), std::move(pattern))));
}

/// `before` || pattern || `behind`.
Result<ExprPtr> ExpressionBinder::Around(const std::string& before, ExprPtr pattern, const std::string& behind,
                                         int position) {
  for (const bool front : {true, false}) {
    const std::string& part = front ? before : behind;
    if (part.empty()) continue;
    ExprPtr text = MakeConstant(Value::Text(part), position);
    if (front) std::swap(text, pattern);
    TESSERA_ASSIGN(pattern, Infix("||", std::move(pattern), std::move(text), position));
  }
  return pattern;
}

/// x ~ pattern, of a pattern that rows have; or not.
Result<ExprPtr> ExpressionBinder::MatchesPattern(ExprPtr x, ExprPtr pattern, bool negated, int position) {
  TESSERA_ASSIGN(ExprPtr match, Folded(MakeFunction(Function::kRegexHas, kInteger, position,
                                                    ExprList(std::move(x), std::move(pattern)))));
  return Comparison(negated ? Function::kEq : Function::kNe, std::move(match), Number(0, position), position);
}

Result<ExprPtr> ExpressionBinder::BindRegexOfRows(const RegexFunction& function, std::vector<ExprPtr> a, int position) {
  using Kind = RegexFunction::Kind;
  const std::string_view name = function.name;
  const size_t flags_at = function.flags_at;
  const bool full = function.Is(Kind::kFull), replace = function.Is(Kind::kReplace);
  const bool substr = function.Is(Kind::kSubstr) || function.Is(Kind::kSubstring),
             extract = function.Is(Kind::kExtract);
  const bool count = function.Is(Kind::kCount), counts = count || function.Is(Kind::kPlace);
  Flags flags;
  for (size_t i = 2; i < a.size(); ++i) {
    if (replace && i == 2) continue;
    if (!IsConstant(*a[i])) {
      return Unsupported(std::string(name) + " with an argument of its own for each row is not supported",
                         a[i]->position, "Text, pattern and replacement may be other than constants.");
    }
    if (a[i]->constant.null) return MakeNull(function.result(), position);
    if (i == flags_at) TESSERA_TRY(ReadFlags(*a[i], name, replace, &flags));
    if (count && i == 2 && a[i]->constant.i64 != 1) return LaterCharacter(*a[i], name);
  }
  ExprPtr x = std::move(a[0]), pattern = std::move(a[1]);
  TESSERA_ASSIGN(pattern,
                 Around(WithFlags(full ? "\\A(?:" : "", flags), std::move(pattern), full ? ")\\z" : "", position));
  if (replace) {
    return Folded(MakeFunction(flags.all ? Function::kRegexAll : Function::kRegexFirst, SqlType::Text(), position,
                               ExprList(std::move(x), std::move(pattern), std::move(a[2]))));
  }
  if (counts) {
    return Folded(MakeFunction(count ? Function::kRegexTimes : Function::kRegexBegin, kInteger, position,
                               ExprList(std::move(x), std::move(pattern))));
  }
  if (!substr && !extract) return MatchesPattern(std::move(x), std::move(pattern), false, position);
  int64_t group = 0;
  if (extract && a.size() > 2) group = a[2]->constant.i64;
  for (size_t i = 2; substr && i < a.size(); ++i) {
    if (i != flags_at && a[i]->constant.i64 != (i == 5 ? 0 : 1)) {
      return Unsupported(
          "regexp_substr of another match than the first, or of a group, is not supported with a pattern "
          "that is not a constant",
          a[i]->position, extract ? "" : "regexp_extract(x, y, n) gives a group.");
    }
  }
  const auto part = [&](ExprPtr of, ExprPtr by) {
    return Folded(MakeFunction(Function::kRegexGroup, SqlType::Text(), position,
                               ExprList(std::move(of), std::move(by), Number(group, position))));
  };
  if (extract) return part(std::move(x), std::move(pattern));
  TESSERA_ASSIGN(ExprPtr same, Copy(*x));
  TESSERA_ASSIGN(ExprPtr again, Copy(*pattern));
  TESSERA_ASSIGN(ExprPtr matches, MatchesPattern(std::move(same), std::move(again), false, position));
  TESSERA_ASSIGN(ExprPtr found, part(std::move(x), std::move(pattern)));
  return Folded(MakeFunction(Function::kCase, SqlType::Text(), position,
                             ExprList(std::move(matches), std::move(found), MakeNull(SqlType::Text(), position))));
}

Result<ExprPtr> ExpressionBinder::BindRegexOperator(std::string_view symbol, ExprPtr x, ExprPtr pattern, int position) {
  TESSERA_ASSIGN(x, Resolve(std::move(x), SqlType::Text()));
  TESSERA_ASSIGN(pattern, Resolve(std::move(pattern), SqlType::Text()));
  if (x->type.id != TypeId::kText || pattern->type.id != TypeId::kText) {
    return SqlError(
        ErrorKind::kUndefinedFunction,
        "operator does not exist: " + x->type.ToString() + " " + std::string(symbol) + " " + pattern->type.ToString(),
        position, "Regular expressions are for texts. You might need to add explicit type casts.");
  }
  if (!IsConstant(*pattern)) {
    TESSERA_ASSIGN(pattern, Around(symbol.ends_with('*') ? "(?i)" : "", std::move(pattern), "", position));
    return MatchesPattern(std::move(x), std::move(pattern), symbol[0] == '!', position);
  }
  if (pattern->constant.null) return MakeNull(kBoolean, position);
  pattern->constant.text = WithFlags(std::move(pattern->constant.text), {.ignore_case = symbol.ends_with('*')});
  TESSERA_ASSIGN(ExprPtr match, BindMatch(std::move(x), std::move(pattern), position));
  if (symbol[0] != '!') return match;
  return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(match))));
}

Result<ExprPtr> ExpressionBinder::BindSimilar(const ParseNode& node) {
  const int position = node.location();
  const bool negated = node.Get(Field::k_name)->first()->Text(Field::k_sval).starts_with('!');
  TESSERA_ASSIGN(ExprPtr x, BindTyped(*node.Get(Field::k_lexpr)));
  // The parser writes SIMILAR_TO_ESCAPE(pattern [, escape]).
  const ParseNode& pattern_node = *node.Get(Field::k_rexpr)->Get(Field::k_args)->first();
  TESSERA_ASSIGN(ExprPtr pattern, BindTyped(pattern_node));
  ExprPtr escape;
  if (pattern_node.next() != nullptr) {
    TESSERA_ASSIGN(escape, BindTyped(*pattern_node.next()));
  }
  if (x->type.id != TypeId::kText || pattern->type.id != TypeId::kText)
    return SqlError(ErrorKind::kUndefinedFunction,
                    "operator does not exist: " + x->type.ToString() + " SIMILAR TO " + pattern->type.ToString(),
                    position);
  TESSERA_ASSIGN(pattern, InForm(vm::kSimilarRegex, std::move(pattern), std::move(escape)));
  if (!IsConstant(*pattern)) return MatchesPattern(std::move(x), std::move(pattern), negated, position);
  if (pattern->constant.null) return MakeNull(kBoolean, position);
  TESSERA_ASSIGN(ExprPtr match, BindMatch(std::move(x), std::move(pattern), position));
  if (!negated) return match;
  return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(match))));
}

namespace {

/// GLOB's pattern as one of LIKE, or, if it has brackets, as a regular expression for all of a text.
bool GlobAsLike(std::string_view glob, std::string* out) {
  for (size_t i = 0; i < glob.size(); ++i) {
    const char c = glob[i];
    if (c == '[') return false;
    if (c == '*' || c == '?') {
      *out += c == '*' ? '%' : '_';
      continue;
    }
    const char literal = c == '\\' && i + 1 < glob.size() ? glob[++i] : c;
    if (literal == '%' || literal == '_' || literal == '\\') *out += '\\';
    *out += literal;
  }
  return true;
}

std::string GlobAsRegex(std::string_view glob) {
  std::string out = "\\A(?s:";
  const auto literal = [&](char c) {
    if (c > 0 && c < 127 && !std::isalnum(static_cast<unsigned char>(c))) out += '\\';
    out += c;
  };
  for (size_t i = 0; i < glob.size(); ++i) {
    const char c = glob[i];
    // A ] that is the first in brackets is one of the characters.
    const size_t first = i + 1 + (i + 1 < glob.size() && glob[i + 1] == '!' ? 1 : 0);
    const size_t end = c == '[' ? glob.find(']', first + 1) : std::string_view::npos;
    if (c == '*') {
      out += ".*";
    } else if (c == '?') {
      out += '.';
    } else if (c == '[' && end != std::string_view::npos) {
      out += first > i + 1 ? "[^" : "[";
      for (size_t k = first; k < end; ++k) {
        if (glob[k] == '-' && k > first && k + 1 < end) {
          out += '-';
        } else {
          literal(glob[k]);
        }
      }
      out += ']';
      i = end;
    } else {
      literal(c == '\\' && i + 1 < glob.size() ? glob[++i] : c);
    }
  }
  return out + ")\\z";
}

/// The regular expression with quantifiers that take as little as they can.
std::string Reluctant(std::string_view regex) {
  std::string out;
  bool brackets = false;
  for (size_t i = 0; i < regex.size(); ++i) {
    const char c = regex[i];
    out += c;
    if (c == '\\' && i + 1 < regex.size()) {
      out += regex[++i];
      continue;
    }
    if (c == '[') brackets = true;
    if (c == ']') brackets = false;
    const bool opens = c == '?' && i > 0 && regex[i - 1] == '(';
    if (!brackets && !opens && (c == '*' || c == '+' || c == '?' || c == '}')) out += '?';
  }
  return out;
}

}  // namespace

Result<ExprPtr> ExpressionBinder::BindGlob(const ParseNode& node) {
  const int position = node.location();
  const bool negated = node.Get(Field::k_name)->first()->Text(Field::k_sval).starts_with('!');
  TESSERA_ASSIGN(ExprPtr x, BindTyped(*node.Get(Field::k_lexpr)));
  TESSERA_ASSIGN(ExprPtr pattern, BindTyped(*node.Get(Field::k_rexpr)));
  if (x->type.id != TypeId::kText || pattern->type.id != TypeId::kText) {
    return SqlError(ErrorKind::kUndefinedFunction,
                    "operator does not exist: " + x->type.ToString() + " GLOB " + pattern->type.ToString(), position,
                    "GLOB is for texts.");
  }
  if (!IsConstant(*pattern)) {
    return Unsupported("GLOB with a pattern that is not a constant is not supported", pattern->position,
                       "LIKE and ~ take columns.");
  }
  if (pattern->constant.null) return MakeNull(kBoolean, position);
  std::string like;
  const bool plain = GlobAsLike(pattern->constant.text, &like);
  pattern->constant.text = plain ? like : GlobAsRegex(pattern->constant.text);
  if (!plain) TESSERA_TRY(TryRegex(pattern->constant.text, pattern->position));
  TESSERA_ASSIGN(ExprPtr match, Folded(MakeFunction(plain ? Function::kLike : Function::kRegexMatch, kBoolean, position,
                                                    ExprList(std::move(x), std::move(pattern)))));
  if (!negated) return match;
  return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(match))));
}

/// The pattern has three parts, with the escape and a double quote between them: the middle one is what is given, the first
/// takes as little as it can.
Result<ExprPtr> ExpressionBinder::BindSimilarPart(std::string_view, std::vector<ExprPtr>* args, int position) {
  std::vector<ExprPtr>& a = *args;
  const SqlType text = SqlType::Text();
  const auto is_text = [](const ExprPtr& e) { return e->type.id == TypeId::kText || e->type.id == TypeId::kNull; };
  const bool typed = a[1]->type.id == TypeId::kText || a[2]->type.id == TypeId::kText;
  const bool written = !a[2]->constant.null;
  if (!std::all_of(a.begin(), a.end(), is_text) || !(typed || written)) return ExprPtr();
  for (ExprPtr& e : a) {
    TESSERA_ASSIGN(e, Resolve(std::move(e), text));
  }
  for (size_t i = 1; i < a.size(); ++i) {
    if (!IsConstant(*a[i])) {
      return Unsupported("SUBSTRING ... SIMILAR with a pattern or an escape that is not a constant is not supported",
                         a[i]->position, "regexp_extract(x, y, 1) takes columns.");
    }
    if (a[i]->constant.null) return MakeNull(text, position);
  }
  const std::string &pattern = a[1]->constant.text, &escape = a[2]->constant.text;
  if (vm::CharacterCount(escape) > 1)
    return SqlError(ErrorKind::kInvalidParameterValue, "invalid escape string", a[2]->position,
                    "Escape string must be empty or one character.");
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < pattern.size();) {
    const bool escaped = !escape.empty() && std::string_view(pattern).substr(i).starts_with(escape);
    const size_t behind = i + escape.size();
    if (escaped && behind < pattern.size() && pattern[behind] == '"') {
      parts.emplace_back();
      i = behind + 1;
      continue;
    }
    const size_t length = escaped ? escape.size() + (behind < pattern.size() ? 1 : 0) : 1;
    parts.back() += pattern.substr(i, length);
    i += length;
  }
  if (parts.size() > 3) {
    return SqlError("SQL regular expression may not contain more than two escape-double-quote separators",
                    a[1]->position);
  }
  std::string regex = "\\A";
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string part;
    const Status status = vm::RewritePattern(parts[i], escape, vm::kSimilarRegex, &part);
    if (!status.ok()) return status.At(a[1]->position);
    // Without what makes it match all of a text.
    constexpr std::string_view kBegin = "\\A", kEnd = "\\z";
    if (part.starts_with(kBegin)) part = part.substr(kBegin.size());
    if (part.ends_with(kEnd)) part.resize(part.size() - kEnd.size());
    const bool given = parts.size() == 1 || i == 1;
    regex += i == 0 && !given ? "(?:" + Reluctant(part) + ")" : given ? "(" + part + ")" : "(?:" + part + ")";
  }
  regex += "\\z";
  TESSERA_TRY(TryRegex(regex, a[1]->position));
  return Folded(MakeFunction(
      Function::kRegexPart, text, position,
      ExprList(std::move(a[0]), MakeConstant(Value::Text(regex), position), Number(1, position), Number(1, position))));
}

/// The pattern with an escape, a backslash if that is nullptr, in another form.
Result<ExprPtr> ExpressionBinder::InForm(int64_t form, ExprPtr pattern, ExprPtr escape) {
  const int position = pattern->position;
  if (escape == nullptr) escape = MakeConstant(Value::Text("\\"), position);
  const bool wrong = escape->type.id != TypeId::kText ||
                     (IsConstant(*escape) && (escape->constant.null || vm::CharacterCount(escape->constant.text) > 1));
  if (wrong)
    return SqlError(ErrorKind::kInvalidParameterValue, "invalid escape string", escape->position,
                    "Escape string must be empty or one character.");
  if (IsConstant(*pattern) && IsConstant(*escape)) {
    if (pattern->constant.null) return pattern;
    std::string text;
    const Status status = vm::RewritePattern(pattern->constant.text, escape->constant.text, form, &text);
    if (!status.ok()) return status.At(position);
    pattern->constant.text = std::move(text);
    return pattern;
  }
  return Folded(MakeFunction(Function::kPattern, SqlType::Text(), position,
                             ExprList(std::move(pattern), std::move(escape), Number(form, position))));
}

Result<ExprPtr> ExpressionBinder::BindTrim(std::string_view name, std::vector<ExprPtr>* arguments, int position) {
  std::vector<ExprPtr>& args = *arguments;
  if (IsConstant(*args[1]) && args[1]->constant.text == " ") {  // TRIM(BOTH ' ' FROM x) names the default
    args.pop_back();
    return ExprPtr();
  }
  for (ExprPtr& a : args) {
    TESSERA_ASSIGN(a, Resolve(std::move(a), SqlType::Text()));
    if (a->type.id != TypeId::kText) {
      return SqlError(ErrorKind::kUndefinedFunction,
                      "function " + std::string(name) + "(" + args[0]->type.ToString() + ", " +
                          args[1]->type.ToString() + ") does not exist",
                      position, "TRIM takes texts.");
    }
  }
  if (!IsConstant(*args[1]))
    return Unsupported("TRIM of characters that are not constants is not supported", args[1]->position);
  if (args[1]->constant.null) return MakeNull(SqlType::Text(), position);
  if (args[1]->constant.text.empty()) return std::move(args[0]);
  std::string one_of = "[";
  for (const char c : args[1]->constant.text) {
    if (c > 0 && c < 127 && c != ' ' && !std::isalnum(c)) one_of += '\\';
    one_of += c;
  }
  one_of += "]+";
  const std::string at_start = "\\A" + one_of, at_end = one_of + "\\z";
  std::string pattern = name == "ltrim" ? at_start : name == "rtrim" ? at_end : at_start + "|" + at_end;
  TESSERA_TRY(TryRegex(pattern, args[1]->position));
  return Folded(MakeFunction(Function::kRegexReplace, SqlType::Text(), position,
                             ExprList(std::move(args[0]), MakeConstant(Value::Text(std::move(pattern)), position),
                                      MakeConstant(Value::Text(""), position), Number(1, position))));
}

Result<ExprPtr> ExpressionBinder::BindRegexFunction(std::string_view name, std::vector<ExprPtr>* args, int position) {
  std::vector<ExprPtr>& a = *args;
  const auto* const found = std::find_if(std::begin(kRegexFunctions), std::end(kRegexFunctions),
                                         [&](const RegexFunction& f) { return f.name == name; });
  using Kind = RegexFunction::Kind;
  const auto is = [&](Kind kind) { return found->Is(kind); };
  const bool full = is(Kind::kFull), matches = full || is(Kind::kMatches), count = is(Kind::kCount);
  const bool replace = is(Kind::kReplace), substring = is(Kind::kSubstring), extract = is(Kind::kExtract);
  const auto& [called, kind, flags_at, start_at, match_at, group_at] = *found;
  const size_t least = replace ? 3 : 2;
  const size_t most = std::max({least, flags_at + 1, group_at + 1});
  if (a.size() < least || a.size() > most) return ExprPtr();
  if (substring && a[1]->type.id != TypeId::kText && a[1]->type.id != TypeId::kNull) return ExprPtr();

  for (size_t i = 0; i < a.size(); ++i) {
    const bool number = i == start_at || i == match_at || i == group_at;
    const bool text = i < 2 || !number;
    TESSERA_ASSIGN(a[i], Resolve(std::move(a[i]), text ? SqlType::Text() : kInteger));
    if (text ? a[i]->type.id != TypeId::kText : !a[i]->type.IsInteger()) return ExprPtr();
  }
  const SqlType type = found->result();
  for (size_t i = 1; i < a.size(); ++i) {
    if ((i == 1 || (replace && i == 2)) && !IsConstant(*a[i])) return BindRegexOfRows(*found, std::move(a), position);
    if (!IsConstant(*a[i])) {
      return Unsupported(std::string(name) + " with an argument of its own for each row is not supported",
                         a[i]->position, "Only its first argument may be other than a constant.");
    }
    if (a[i]->constant.null) return MakeNull(type, position);
  }
  const auto number = [&](size_t at, int64_t otherwise) {
    return at == 0 || at >= a.size() ? otherwise : a[at]->constant.i64;
  };
  if (number(start_at, 1) != 1) return LaterCharacter(*a[start_at], name);
  Flags flags;
  if (flags_at > 0 && flags_at < a.size()) TESSERA_TRY(ReadFlags(*a[flags_at], name, replace, &flags));

  ExprPtr x = std::move(a[0]), pattern = std::move(a[1]);
  std::string& text = pattern->constant.text;
  TESSERA_TRY(TryRegex(text, pattern->position));
  if (full) text = "\\A(?:" + text + ")\\z";
  text = WithFlags(std::move(text), flags);
  TESSERA_TRY(TryRegex(text, pattern->position));
  if (matches) return BindMatch(std::move(x), std::move(pattern), position);
  if (count || is(Kind::kPlace)) {
    return Folded(MakeFunction(count ? Function::kRegexCount : Function::kRegexPlace, kInteger, position,
                               ExprList(std::move(x), std::move(pattern))));
  }
  if (replace) {
    return Folded(
        MakeFunction(Function::kRegexReplace, type, position,
                     ExprList(std::move(x), std::move(pattern), std::move(a[2]), Number(flags.all, position))));
  }
  const int groups = vm::Regex(text).groups();
  const int64_t group = substring ? std::min(groups, 1) : number(group_at, 0);
  const int64_t match = extract ? 0 : number(match_at, 1);
  if (group < 0 || group > groups) {
    return SqlError("the regular expression has no group " + std::to_string(group), a[group_at]->position,
                    "It has " + std::to_string(groups) + ".");
  }
  if (!extract && (match < 1 || match > INT32_MAX))
    return SqlError("invalid number of a match: " + std::to_string(match), a[match_at]->position, "The first is 1.");
  return Folded(
      MakeFunction(Function::kRegexPart, type, position,
                   ExprList(std::move(x), std::move(pattern), Number(group, position), Number(match, position))));
}

}  // namespace tessera
