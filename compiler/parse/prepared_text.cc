#include "compiler/parse/prepared_text.h"

#include <algorithm>
#include <charconv>

#include "compiler/parse/sql_scanner.h"

namespace tessera {
namespace {

/// The next token that is neither space nor a semicolon before the statement.
Token Next(std::string_view sql, size_t at, bool first = false) {
  Token t = NextToken(sql, at);
  while ((t.kind == Token::Kind::kSpace && t.closed) ||
         (first && t.kind == Token::Kind::kSymbol && sql[t.begin] == ';'))
    t = NextToken(sql, t.end);
  return t;
}

bool IsWord(std::string_view sql, const Token& t, std::string_view word) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return t.kind == Token::Kind::kWord && std::ranges::equal(sql.substr(t.begin, t.end - t.begin), word, {}, lower);
}

}  // namespace

size_t PreparedTextAt(std::string_view sql) {
  Token t = Next(sql, 0, true);
  if (!IsWord(sql, t, "prepare")) return 0;
  t = Next(sql, t.end);  // the name
  if (t.kind != Token::Kind::kWord && t.kind != Token::Kind::kQuoted) return 0;
  t = Next(sql, t.end);
  if (t.kind == Token::Kind::kSymbol && sql[t.begin] == '(') {
    for (int depth = 1; depth > 0;) {
      t = Next(sql, t.end);
      if (t.kind == Token::Kind::kEnd) return 0;
      if (t.kind == Token::Kind::kSymbol) depth += sql[t.begin] == '(' ? 1 : sql[t.begin] == ')' ? -1 : 0;
    }
    t = Next(sql, t.end);
  }
  return IsWord(sql, t, "as") ? t.end : 0;
}

size_t ParameterCount(std::string_view sql) {
  size_t greatest = 0, unnumbered = 0;
  for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    if (t.kind != Token::Kind::kSymbol || (sql[t.begin] != '$' && sql[t.begin] != '?')) continue;
    const Token next = NextToken(sql, t.end);
    size_t number = 0;
    if (next.kind == Token::Kind::kNumber) {
      std::from_chars(sql.data() + next.begin, sql.data() + next.end, number);
    } else if (sql[t.begin] == '?') {
      number = ++unnumbered;
    }
    greatest = std::max(greatest, number);
  }
  return greatest;
}

}  // namespace tessera
