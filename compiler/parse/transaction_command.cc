#include "compiler/parse/transaction_command.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "compiler/parse/sql_scanner.h"

namespace tessera {
namespace {

using Kind = TransactionCommand::Kind;

constexpr std::string_view kFirst[] = {"begin", "start",   "savepoint", "commit",  "end",
                                       "abort", "release", "rollback",  "prepare", "set"};

std::string Lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

/// The words of a statement, one after the other. Names are as the parser folds them.
class Words {
 public:
  explicit Words(std::string_view sql) : sql_(sql) {
    for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
      if ((t.kind == Token::Kind::kSpace && t.closed) || (t.kind == Token::Kind::kSymbol && sql[t.begin] == ';'))
        continue;
      tokens_.push_back(t);
      // Most statements are known by their first word, and the rest may be long.
      if (tokens_.size() == 1 && std::ranges::find(kFirst, Word(0)) == std::end(kFirst)) break;
    }
  }

  /// Whether the next word is `word`: then it is passed.
  bool Take(std::string_view word) {
    const bool found = Word(at_) == word;
    at_ += found ? 1 : 0;
    return found;
  }
  /// The same for words that follow each other: all or none.
  bool Take(std::initializer_list<std::string_view> words) {
    const size_t first = at_;
    for (const std::string_view word : words) {
      if (Take(word)) continue;
      at_ = first;
      return false;
    }
    return true;
  }
  bool AtEnd() const { return at_ >= tokens_.size(); }
  /// A comma between modes.
  void TakeComma() {
    if (!AtEnd() && sql_[tokens_[at_].begin] == ',') ++at_;
  }
  Result<std::string> TakeName() {
    if (AtEnd()) return SqlError(ErrorKind::kSyntax, "a savepoint needs a name", static_cast<int>(sql_.size()));
    const Token& t = tokens_[at_];
    const std::string_view text = sql_.substr(t.begin, t.end - t.begin);
    if (t.kind == Token::Kind::kWord) {
      ++at_;
      return Lower(text);
    }
    if (t.kind != Token::Kind::kQuoted || text.front() != '"' || !t.closed || text.size() < 3) return Unexpected();
    ++at_;
    std::string name;
    for (size_t i = 1; i + 1 < text.size(); ++i) {
      name += text[i];
      if (text[i] == '"') ++i;
    }
    return name;
  }
  Status Unexpected() const {
    if (AtEnd()) return SqlError(ErrorKind::kSyntax, "syntax error at end of input", static_cast<int>(sql_.size()));
    const Token& t = tokens_[at_];
    return SqlError(ErrorKind::kSyntax,
                    "syntax error at or near \"" + std::string(sql_.substr(t.begin, t.end - t.begin)) + "\"",
                    static_cast<int>(t.begin));
  }

 private:
  /// In lower case; "": no word.
  std::string Word(size_t i) const {
    if (i >= tokens_.size() || tokens_[i].kind != Token::Kind::kWord) return {};
    return Lower(sql_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin));
  }

  const std::string_view sql_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

/// What comes after ISOLATION LEVEL; nothing: it is none.
std::optional<IsolationLevel> TakeLevel(Words* words) {
  if (words->Take("serializable")) return IsolationLevel::kSerializable;
  if (words->Take("snapshot") || words->Take({"repeatable", "read"})) return IsolationLevel::kRepeatableRead;
  if (words->Take({"read", "committed"})) return IsolationLevel::kReadCommitted;
  if (words->Take({"read", "uncommitted"})) return IsolationLevel::kReadUncommitted;
  return std::nullopt;
}

/// ISOLATION LEVEL ..., READ ONLY and their like.
Status TakeModes(Words* words, TransactionCommand* out) {
  while (!words->AtEnd()) {
    if (words->Take({"read", "only"})) {
      out->reads_only = true;
    } else if (words->Take({"isolation", "level"})) {
      out->isolation = TakeLevel(words);
      if (!out->isolation) return words->Unexpected();
    } else if (!words->Take({"read", "write"}) && !words->Take({"not", "deferrable"}) && !words->Take("deferrable")) {
      return words->Unexpected();
    }
    words->TakeComma();
  }
  return Status::Ok();
}

Status TakeBegin(Words* words, TransactionCommand* out) {
  out->kind = Kind::kBegin;
  out->locks_now = words->Take("immediate") || words->Take("exclusive") || words->Take("concurrent");
  if (!out->locks_now) (void)words->Take("deferred");
  if (!words->Take("work")) (void)words->Take("transaction");
  return TakeModes(words, out);
}

Status TakeEnd(Words* words, Kind kind, TransactionCommand* out) {
  out->kind = kind;
  if (words->Take("prepared")) {
    return Unsupported(std::string(kind == Kind::kCommit ? "COMMIT" : "ROLLBACK") + " PREPARED is not supported", -1,
                       "A transaction ends with COMMIT or ROLLBACK.");
  }
  if (!words->Take("work")) (void)words->Take("transaction");
  if (kind == Kind::kRollback && words->Take("to")) {
    out->kind = Kind::kRollbackTo;
    (void)words->Take("savepoint");
    TESSERA_ASSIGN(out->savepoint, words->TakeName());
  } else if (words->Take({"and", "chain"})) {
    out->chains = true;
  } else {
    (void)words->Take({"and", "no", "chain"});
  }
  return Status::Ok();
}

Status ReadCommand(Words* words, TransactionCommand* out) {
  if (words->Take("begin")) return TakeBegin(words, out);
  if (words->Take({"start", "transaction"})) {
    out->kind = Kind::kBegin;
    return TakeModes(words, out);
  }
  if (words->Take("commit") || words->Take("end")) return TakeEnd(words, Kind::kCommit, out);
  if (words->Take("rollback") || words->Take("abort")) return TakeEnd(words, Kind::kRollback, out);
  if (words->Take({"set", "transaction"})) {
    out->kind = Kind::kSetModes;
    return TakeModes(words, out);
  }
  if (words->Take({"set", "session", "characteristics", "as", "transaction"})) {
    out->kind = Kind::kSetSessionModes;
    return TakeModes(words, out);
  }
  if (words->Take({"prepare", "transaction"})) {
    return Unsupported("PREPARE TRANSACTION is not supported", -1, "A transaction ends with COMMIT or ROLLBACK.");
  }
  if (words->Take("savepoint")) {
    out->kind = Kind::kSavepoint;
    TESSERA_ASSIGN(out->savepoint, words->TakeName());
  } else if (words->Take("release")) {
    out->kind = Kind::kRelease;
    (void)words->Take("savepoint");
    TESSERA_ASSIGN(out->savepoint, words->TakeName());
  }
  return Status::Ok();
}

}  // namespace

Result<TransactionCommand> ReadTransactionCommand(std::string_view sql) {
  Words words(sql);
  TransactionCommand command;
  TESSERA_TRY(ReadCommand(&words, &command));
  if (command.kind != Kind::kNone && !words.AtEnd()) return words.Unexpected();
  return command;
}

}  // namespace tessera
