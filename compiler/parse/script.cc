// SplitStatements: a script cut at its semicolons. ScriptEnd: whether there is more to come.
#include "compiler/parse/script.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tessera {
namespace {

int CountLines(std::string_view script, size_t begin, size_t end) {
  const std::string_view part = script.substr(begin, end - begin);
  return static_cast<int>(std::count(part.begin(), part.end(), '\n'));
}

}  // namespace

std::vector<StatementText> SplitStatements(std::string_view script) {
  std::vector<StatementText> statements;
  int line = 1;          // of the token
  bool started = false;  // a statement has begun
  StatementText current;
  size_t last = 0;  // end of the last token that belongs to the statement
  for (Token t = NextToken(script, 0); t.kind != Token::Kind::kEnd; t = NextToken(script, t.end)) {
    if (t.kind == Token::Kind::kSymbol && script[t.begin] == ';') {
      if (started) {
        current.sql = script.substr(current.offset, last - current.offset);
        statements.push_back(current);
      }
      started = false;
    } else if (t.kind != Token::Kind::kSpace || !t.closed) {  // a comment without end is an error, and so no blank
      if (!started) {
        current.offset = script.find_first_not_of(" \t\n\v\f\r", t.begin);
        current.line = line + CountLines(script, t.begin, current.offset);
        started = true;
      }
      last = t.end;
    }
    if (t.kind != Token::Kind::kSpace && t.kind != Token::Kind::kQuoted) continue;
    line += CountLines(script, t.begin, t.end);
  }
  if (started) {
    current.sql = script.substr(current.offset, last - current.offset);
    statements.push_back(current);
  }
  return statements;
}

bool ScriptEnd::IsBetweenStatements(std::string_view script) {
  for (;;) {
    const Token t = NextToken(script, scanned_, open_.closed ? nullptr : &open_);
    open_ = t;
    if (t.kind == Token::Kind::kEnd) break;
    if (t.kind != Token::Kind::kSpace) started_ = t.kind != Token::Kind::kSymbol || script[t.begin] != ';';
    if (!t.closed) break;
    scanned_ = t.end;
  }
  return !started_ && open_.closed;
}

std::string_view ScriptEnd::Open(std::string_view script) const {
  if (open_.closed) return "";
  if (open_.kind == Token::Kind::kSpace) return "/*";
  const std::string_view first = script.substr(open_.begin, 1);
  return first == "\"" || first == "$" ? first : "'";
}

}  // namespace tessera
