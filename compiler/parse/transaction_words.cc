#include "compiler/parse/transaction_words.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "compiler/parse/sql_scanner.h"

namespace tessera {
namespace {

constexpr std::string_view kFirst[] = {"BEGIN", "START", "SAVEPOINT", "COMMIT", "END", "ROLLBACK", "ABORT"};
constexpr size_t kMostWords = 5;  // ROLLBACK TRANSACTION AND NO CHAIN

/// In upper case. Another token than a word is "?".
struct Words {
  std::vector<std::string> words;
  int position = 0;  ///< of the first

  const std::string& at(size_t i) const {
    static const std::string none;
    return i < words.size() ? words[i] : none;
  }
};

/// The first words of a statement, and one more, which says that there are more.
Words FirstWords(std::string_view sql) {
  Words out;
  for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd && out.words.size() <= kMostWords;
       t = NextToken(sql, t.end)) {
    if (t.kind == Token::Kind::kSpace && t.closed) continue;
    if (t.kind == Token::Kind::kSymbol && sql[t.begin] == ';') continue;
    if (out.words.empty()) out.position = static_cast<int>(t.begin);
    std::string word = t.kind == Token::Kind::kWord ? std::string(sql.substr(t.begin, t.end - t.begin)) : "?";
    std::transform(word.begin(), word.end(), word.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    out.words.push_back(std::move(word));
    // Most statements are known by their first word, and their second one may be long.
    if (out.words.size() == 1 && std::find(std::begin(kFirst), std::end(kFirst), out.words[0]) == std::end(kFirst))
      break;
  }
  return out;
}

bool Ends(const Words& w) {
  const std::string& first = w.at(0);
  if (first != "COMMIT" && first != "END" && first != "ROLLBACK" && first != "ABORT") return false;
  size_t next = w.at(1) == "WORK" || w.at(1) == "TRANSACTION" ? 2 : 1;
  if (w.at(next) == "AND" && w.at(next + 1) == "NO" && w.at(next + 2) == "CHAIN") next += 3;
  return w.words.size() == next;
}

}  // namespace

TransactionWords TransactionWordsOf(std::string_view sql) {
  const Words w = FirstWords(sql);
  const bool starts = w.at(0) == "START" && w.at(1) == "TRANSACTION";
  if (starts || w.at(0) == "BEGIN" || w.at(0) == "SAVEPOINT")
    return {TransactionRole::kBegins, starts ? "START TRANSACTION" : w.at(0), w.position};
  if (Ends(w)) return {TransactionRole::kEnds, w.at(0), w.position};
  return {};
}

}  // namespace tessera
