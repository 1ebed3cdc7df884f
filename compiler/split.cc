// SplitStatements: a script cut at its semicolons.
#include <algorithm>
#include <string_view>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/sql_scanner.h"

namespace tessera {

std::vector<StatementText> SplitStatements(std::string_view script, bool* complete) {
  std::vector<StatementText> statements;
  int line = 1;          // of the token
  bool started = false;  // a statement has begun
  bool open_quote = false;
  StatementText current;
  size_t last = 0;  // end of the last token that belongs to the statement
  for (Token t = NextToken(script, 0); t.kind != Token::Kind::kEnd; t = NextToken(script, t.end)) {
    if (t.kind == Token::Kind::kSymbol && script[t.begin] == ';') {
      if (started) {
        current.sql = script.substr(current.offset, last - current.offset);
        statements.push_back(current);
      }
      started = false;
    } else if (t.kind != Token::Kind::kSpace) {
      if (!started) {
        current.offset = t.begin;
        current.line = line;
        started = true;
      }
      last = t.end;
    }
    if (!t.closed) open_quote = true;
    line += static_cast<int>(std::count(script.begin() + static_cast<ptrdiff_t>(t.begin),
                                        script.begin() + static_cast<ptrdiff_t>(t.end), '\n'));
  }
  if (started) {
    current.sql = script.substr(current.offset, last - current.offset);
    statements.push_back(current);
  }
  if (complete != nullptr) *complete = !started && !open_quote;
  return statements;
}

}  // namespace tessera
