// CREATE MACRO and DROP MACRO: the grammar reads the body as a query, and DROP TYPE for DROP MACRO.
#include "compiler/parse/dialect_reader.h"
#include "compiler/parse/macro_definition.h"

namespace tessera {

Status DialectReader::ReadMacro() {
  size_t at = 0;
  const auto word = [&](size_t n) { return n < tokens_.size() ? NameOf(tokens_[n]) : std::string(); };
  Dialect::MacroWords macro;
  const auto take = [&](const char* first, const char* second = nullptr, const char* third = nullptr) {
    size_t n = at;
    for (const char* w : {first, second, third}) {
      if (w != nullptr && word(n++) != w) return false;
    }
    at += first == nullptr ? 0 : second == nullptr ? 1 : third == nullptr ? 2 : 3;
    return true;
  };
  macro.drops = word(0) == "drop";
  if (!take(macro.drops ? "drop" : "create")) return {};
  if (!macro.drops) macro.or_replace = take("or", "replace");
  if (word(at) == "temp" || word(at) == "temporary") {
    if (word(at + 1) != "macro") return {};
    return Unsupported("a temporary macro is not supported", PositionOf(at),
                       "Leave the word out, and drop it at last.");
  }
  const bool function = word(at) == "function";
  if (!take("macro") && !take("function")) return {};
  if (macro.drops) {
    macro.of_rows = take("table");
    const size_t end = at;
    take("if", "exists");
    const bool alone = at + 1 < tokens_.size() && tokens_[at + 1].symbol != '.';
    if (!alone || !IsName(tokens_[at], sql_)) return {};
    macro.name = word(at);
    Replace(tokens_[1].begin, tokens_[end - 1].end, "TYPE");
    out_.dialect.macro = std::move(macro);
    return {};
  }
  macro.if_not_exists = take("if", "not", "exists");
  if (at + 1 >= tokens_.size() || !IsName(tokens_[at], sql_) || tokens_[at + 1].symbol != '(') return {};
  macro.name = word(at);
  macro.position = PositionOf(at);
  const size_t open = at + 1;
  size_t end = open;
  while (tokens_[end].kind != Token::Kind::kEnd && tokens_[end].symbol != ';') ++end;
  macro.definition = sql_.substr(tokens_[open].begin, tokens_[end - 1].end - tokens_[open].begin);
  macro.begin = PositionOf(open);
  // A function of PostgreSQL says what it returns.
  int depth = 0;
  size_t close = open;
  for (; close < end; ++close) {
    depth += tokens_[close].symbol == '(' ? 1 : tokens_[close].symbol == ')' ? -1 : 0;
    if (depth == 0) break;
  }
  if (function && word(close + 1) != "as") return {};
  Result<MacroDefinition> definition = ReadMacroDefinition(macro.definition);
  if (!definition.ok()) {
    const Status& s = definition.status();
    return {s.kind(), s.message(), s.hint(), macro.begin + s.position()};
  }
  macro.of_rows = definition->of_rows;
  const size_t body = tokens_[open].begin + definition->body;
  Replace(tokens_[0].begin, body, macro.of_rows ? "" : "SELECT ");
  while (tokens_[i_].begin < body) ++i_;
  out_.dialect.macro = std::move(macro);
  return {};
}

}  // namespace tessera
