#include "shell/sqlite_sequence.h"

#include <fmt/format.h>

#include <vector>

#include "base/lower_case.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/schema_text.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// Its tokens, words in lower case.
std::vector<std::string> TokensOf(std::string_view sql) {
  std::vector<std::string> tokens;
  for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    if (t.kind == Token::Kind::kSpace) continue;
    const std::string_view text = sql.substr(t.begin, t.end - t.begin);
    tokens.push_back(t.kind == Token::Kind::kWord ? LowerCase(text) : std::string(text));
  }
  return tokens;
}

}  // namespace

std::optional<std::string> SequenceStatement(std::string_view sql, const Snapshot& snapshot) {
  for (const auto& table : snapshot.tables) {
    if (table->schema.name == "sqlite_sequence") return std::nullopt;
  }
  const std::vector<std::string> t = TokensOf(sql);
  if (t == std::vector<std::string>{"delete", "from", "sqlite_sequence"}) return "";
  const bool inserts = t.size() == 9 && t[0] == "insert" && t[1] == "into" && t[2] == "sqlite_sequence" &&
                       t[3] == "values" && t[4] == "(" && t[6] == "," && t[8] == ")" && t[5].starts_with('\'');
  if (!inserts) return std::nullopt;
  for (const auto& table : snapshot.tables) {
    if (QuotedText(table->schema.name) != t[5]) continue;
    for (const Sequence& sequence : snapshot.names.sequences) {
      if (sequence.table_id != table->id) continue;
      // (A table that never had a row has 0 there.)
      const std::string name = QuotedText(QuotedName(sequence.name));
      return t[7] == "0" ? "" : fmt::format("SELECT setval({}, {})", name, t[7]);
    }
  }
  return "";
}

}  // namespace tessera
