// Where tokens begin and end.
#include "compiler/parse/sql_scanner.h"

#include <algorithm>
#include <iterator>

#include "base/int128.h"

namespace tessera {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c); }

/// The offset after the closing quote. A doubled quote is part of the text, and so is what follows a backslash if
/// `escapes`.
size_t SkipQuoted(std::string_view sql, size_t at, char quote, bool escapes, bool* closed) {
  for (; at < sql.size(); ++at) {
    if (escapes && sql[at] == '\\') {
      ++at;
    } else if (sql[at] == quote) {
      if (at + 1 >= sql.size() || sql[at + 1] != quote) return at + 1;
      ++at;
    }
  }
  *closed = false;
  return sql.size();
}

/// `*depth`: of the comments around `at`, and then around the end.
size_t SkipSpace(std::string_view sql, size_t at, int* depth) {
  while (at < sql.size()) {
    if (*depth > 0 || sql.substr(at, 2) == "/*") {
      if (sql.substr(at, 2) == "/*") {
        ++*depth;
        at += 2;
      } else if (sql.substr(at, 2) == "*/") {
        --*depth;
        at += 2;
      } else {
        ++at;
      }
    } else if (IsSpace(sql[at])) {
      ++at;
    } else if (sql.substr(at, 2) == "--") {
      while (at < sql.size() && sql[at] != '\n') ++at;
    } else {
      break;
    }
  }
  return at;
}

/// Length of $tag$ at `at`, or 0.
size_t DollarTag(std::string_view sql, size_t at) {
  size_t i = at + 1;
  if (i < sql.size() && IsDigit(sql[i])) return 0;  // a parameter
  while (i < sql.size() && IsWordPart(sql[i])) ++i;
  return i < sql.size() && sql[i] == '$' ? i + 1 - at : 0;
}

bool EqualsIgnoringCase(std::string_view a, std::string_view lower) {
  return a.size() == lower.size() && std::equal(a.begin(), a.end(), lower.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x) == y;
         });
}

/// Keywords that end a select list. All are reserved, so an unquoted column name is none of them.
bool EndsSelectList(std::string_view word) {
  constexpr std::string_view kWords[] = {"from",   "into",  "where", "group", "having",    "order",  "limit",
                                         "offset", "fetch", "for",   "union", "intersect", "except", "window"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view k) { return EqualsIgnoringCase(word, k); });
}

}  // namespace

Token NextToken(std::string_view sql, size_t at, const Token* open) {
  Token t;
  t.begin = t.end = at;
  if (at >= sql.size()) return t;
  const char c = sql[at];
  if (open != nullptr) t.depth = open->depth;
  const size_t known = open != nullptr ? open->end : 0;
  const bool may_be_space = IsSpace(c) || c == '-' || c == '/';
  const size_t space = may_be_space ? SkipSpace(sql, t.depth > 0 ? known : at, &t.depth) : at;
  if (space > at) {
    t.kind = Token::Kind::kSpace;
    t.end = space;
    t.closed = t.depth == 0;
  } else if (c == '\'' || c == '"') {
    t.kind = Token::Kind::kQuoted;
    t.end = SkipQuoted(sql, std::max(at + 1, known), c, false, &t.closed);
  } else if ((c == 'e' || c == 'E') && at + 1 < sql.size() && sql[at + 1] == '\'') {
    t.kind = Token::Kind::kQuoted;
    t.end = SkipQuoted(sql, std::max(at + 2, known), '\'', true, &t.closed);
  } else if (c == '$' && DollarTag(sql, at) > 0) {
    t.kind = Token::Kind::kQuoted;
    const std::string_view tag = sql.substr(at, DollarTag(sql, at));
    const size_t close = sql.find(tag, std::max(at + tag.size(), known));
    t.closed = close != std::string_view::npos;
    t.end = t.closed ? close + tag.size() : sql.size();
  } else if (IsWordStart(c)) {
    t.kind = Token::Kind::kWord;
    // A name may hold dollars, but not start with one.
    while (t.end < sql.size() && (IsWordPart(sql[t.end]) || sql[t.end] == '$')) ++t.end;
  } else if (IsDigit(c)) {
    t.kind = Token::Kind::kNumber;
    while (t.end < sql.size() && (IsWordPart(sql[t.end]) || sql[t.end] == '.')) ++t.end;
  } else {
    t.kind = Token::Kind::kSymbol;
    t.end = at + 1;
  }
  return t;
}

int FindKeyword(std::string_view sql, int from, std::string_view word) {
  for (Token t = NextToken(sql, static_cast<size_t>(std::max(from, 0))); t.kind != Token::Kind::kEnd;
       t = NextToken(sql, t.end)) {
    if (t.kind == Token::Kind::kWord && EqualsIgnoringCase(sql.substr(t.begin, t.end - t.begin), word))
      return static_cast<int>(t.begin);
  }
  return -1;
}

std::string ExpressionText(std::string_view sql, size_t begin) {
  constexpr size_t kLongest = 100;
  std::string out;
  int depth = 0;
  bool space = false;
  std::string_view previous;
  for (Token t = NextToken(sql, begin); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    const std::string_view text = sql.substr(t.begin, t.end - t.begin);
    if (t.kind == Token::Kind::kSpace) {
      space = true;
      continue;
    }
    if (t.kind == Token::Kind::kSymbol) {
      if (depth == 0 && (text == "," || text == ")" || text == ";")) break;
      if (text == "(" || text == "[") ++depth;
      if (text == ")" || text == "]") --depth;
    }
    // Only in IS DISTINCT FROM such a keyword is inside an expression.
    if (t.kind == Token::Kind::kWord && depth == 0 && EndsSelectList(text) && !EqualsIgnoringCase(previous, "distinct"))
      break;
    if (space && !out.empty()) out.push_back(' ');
    space = false;
    out.append(text);
    previous = text;
    if (out.size() > kLongest) {
      size_t cut = kLongest;
      while (cut > 0 && (static_cast<unsigned char>(out[cut]) & 0xC0) == 0x80) --cut;
      out.resize(cut);
      out.append("...");
      break;
    }
  }
  return out;
}

bool IsPlainNumber(std::string_view number) {
  const bool prefixed =
      number.size() > 1 && number[0] == '0' && std::string_view("xXbBoO").find(number[1]) != number.npos;
  return !prefixed && number.find('_') == std::string_view::npos;
}

std::string PlainNumber(std::string_view number) {
  constexpr uint128_t kMost = ~static_cast<uint128_t>(0) >> 2;  // of 38 digits
  const auto digit = [](char c) {
    return IsDigit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
  };
  const bool prefixed = number.size() > 1 && number[0] == '0' && !IsDigit(number[1]) && number[1] != '_' &&
                        number[1] != '.' && number[1] != 'e' && number[1] != 'E';
  const int base = !prefixed                              ? 10
                   : number[1] == 'x' || number[1] == 'X' ? 16
                   : number[1] == 'o' || number[1] == 'O' ? 8
                                                          : 2;
  std::string digits;
  for (size_t i = prefixed ? 2 : 0; i < number.size(); ++i) {
    if (number[i] != '_') {
      digits.push_back(number[i]);
      continue;
    }
    // Between digits, or after the prefix.
    const bool before = (prefixed && i == 2) || (i > 0 && digit(number[i - 1]) < base);
    if (!before || i + 1 == number.size() || digit(number[i + 1]) >= base) return {};
  }
  if (!prefixed) return digits;
  uint128_t value = 0;
  for (const char c : digits) {
    if (digit(c) >= base || value > kMost / static_cast<unsigned>(base)) return {};
    value = value * static_cast<unsigned>(base) + static_cast<unsigned>(digit(c));
  }
  if (digits.empty()) return {};
  std::string decimal;
  do decimal.insert(decimal.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
  while ((value /= 10) != 0);
  return decimal;
}

}  // namespace tessera
