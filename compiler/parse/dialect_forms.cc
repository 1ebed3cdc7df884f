// Forms of expressions and of FROM: operators, numbers, IGNORE NULLS, samples.
#include <algorithm>
#include <iterator>
#include <optional>

#include "base/lower_case.h"
#include "compiler/parse/dialect_reader.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/parse/unsupported_statement.h"

namespace tessera {

Status DialectReader::ReadSymbol() {
  const Lexeme& t = At(0);
  const int position = static_cast<int>(t.begin);
  if (t.symbol == '=' && At(1).symbol == '=' && At(1).begin == t.end) {
    const bool longer = At(-1).end == t.begin && At(-1).kind == Token::Kind::kSymbol &&
                        std::string_view("<>!=~@#&|+-*/^%").find(At(-1).symbol) != std::string_view::npos;
    if (!longer) Replace(At(1).begin, At(1).end, "");
  }
  if ((t.symbol == '/' || t.symbol == '*') && At(1).symbol == t.symbol && At(1).begin == t.end) {
    // Of other operators than the grammar's own it takes all to bind alike.
    const bool longer = [&] {
      for (const Lexeme& other : {At(-1), At(2)}) {
        const bool beside = other.end == t.begin || other.begin == At(1).end;
        if (beside && std::string_view("<>!=~@#&|/*^%`?").find(other.symbol) != std::string_view::npos) return true;
      }
      return false;
    }();
    if (!longer) Replace(t.begin, At(1).end, t.symbol == '/' ? "/" : "^");
  }
  if (t.symbol == '[' && ReadSubscript()) return {};
  if (t.symbol == '[' && !EndsOperand(At(-1)))
    return Unsupported("a list is not supported: there are no arrays", position, "Write x IN (1, 2, 3) to compare.");
  if (t.symbol == '{') return Unsupported("a struct is not supported", position, "Write its fields as columns.");
  if (t.symbol == '?' || t.symbol == '$') return ReadParameter();
  return {};
}

Status DialectReader::ReadParameter() {
  const Lexeme& t = At(0);
  const bool numbered = At(1).kind == Token::Kind::kNumber && At(1).begin == t.end;
  if (t.symbol == '$' && !numbered) return {};
  unnumbered_ += numbered ? 0 : 1;
  numbered_ = numbered_ || numbered;
  if (numbered_ && unnumbered_ > 0) {
    return Unsupported("parameters with and without numbers in one statement are not supported",
                       static_cast<int>(t.begin), "Write $1, $2, ... everywhere, or ? everywhere.");
  }
  if (t.symbol == '?') Replace(t.begin, t.end, numbered ? "$" : "$" + std::to_string(unnumbered_) + " ");
  return {};
}

bool DialectReader::ReadBytes() {
  const Lexeme& text = At(1);
  if ((sql_[At(0).begin] | 0x20) != 'x' || text.begin != At(0).end || !IsText(text) || sql_[text.begin] != '\'')
    return false;
  const std::string_view digits = sql_.substr(text.begin + 1, text.end - text.begin - 2);
  if (digits.size() % 2 != 0 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
    return false;
  Replace(At(0).begin, text.end, "'\\x" + std::string(digits) + "'::bytea");
  ++i_;
  return true;
}

bool DialectReader::ReadCharacter() {
  if (At(0).end - At(0).begin != 4 || At(1).symbol != '(' || NameOf(At(0)) != "char") return false;
  const std::string first = NameOf(tokens_[0]);
  const bool has_types = first == "create" || first == "alter" || first == "prepare";
  const char before = At(-1).symbol;
  const bool begins = before == ',' || before == '(' || before == '|' || At(-1).keyword == Keyword::kSelect;
  if (has_types || !begins) return false;
  Replace(At(0).begin, At(0).end, "chr");
  return true;
}

void DialectReader::ReadInterval() {
  if (At(1).kind != Token::Kind::kNumber || At(2).kind != Token::Kind::kWord) return;
  const std::string_view number = sql_.substr(At(1).begin, At(1).end - At(1).begin);
  Replace(At(1).begin, At(2).end, "'" + std::string(number) + " " + NameOf(At(2)) + "'");
}

bool DialectReader::ReadNulls() {
  const bool outside = At(-1).symbol == ')' && NameOf(At(2)) == "over", inside = At(2).symbol == ')';
  const size_t open = outside ? closed_ : levels_.back().open;
  if (!(inside || outside) || open == kNothing || open == 0 || !IsName(tokens_[open - 1], sql_)) return false;
  if (NameOf(At(0)) == "ignore") AddMark(Dialect::Mark::Kind::kIgnoreNulls, tokens_[open - 1].begin);
  Replace(At(0).begin, At(1).end, "");
  return true;
}

bool DialectReader::IsPercent(size_t at) const {
  if (at + 1 >= tokens_.size() || tokens_[at].kind != Token::Kind::kNumber) return false;
  const Lexeme& sign = tokens_[at + 1];
  if (NameOf(sign) == "percent") return true;
  return sign.symbol == '%' && (at + 2 >= tokens_.size() || !BeginsCondition(tokens_[at + 2]));
}

std::string DialectReader::TextOf(const Lexeme& l) const {
  std::string text(sql_.substr(l.begin, l.end - l.begin));
  return text.find_first_not_of("0123456789") == std::string::npos ? text + ".0" : text;
}

Status DialectReader::CheckSample(const std::string& method, bool percent, size_t at) const {
  const auto position = static_cast<int>(tokens_[std::min(at, tokens_.size() - 1)].begin);
  if (method == "reservoir" && percent) {
    return Unsupported("a RESERVOIR sample of a percentage is not supported", position,
                       "BERNOULLI and SYSTEM take a percentage, RESERVOIR a number of rows.");
  }
  if (method != "reservoir" && !percent)
    return SqlError(ErrorKind::kSyntax, "a sample by " + method + " takes a percentage", position,
                    "RESERVOIR takes a number of rows.");
  return {};
}

Status DialectReader::ReadTableSample() {
  const bool named = At(1).kind == Token::Kind::kWord && At(2).symbol == '(', open = At(1).symbol == '(';
  const size_t number = i_ + (named ? 3 : open ? 2 : 1);
  if (number >= tokens_.size() || tokens_[number].kind != Token::Kind::kNumber) return {};
  const bool percent = IsPercent(number), rows = IsRows(number + 1);
  if (named) {
    if (!percent && !rows) return {};
    TESSERA_TRY(CheckSample(NameOf(At(1)), percent, number));
    Replace(tokens_[number + 1].begin, tokens_[number + 1].end, "");
    return {};
  }
  const size_t end = number + (percent || rows ? 1 : 0) + (open ? 1 : 0);
  if (open && (end >= tokens_.size() || tokens_[end].symbol != ')')) return {};
  Replace(At(1).begin, tokens_[end].end, (percent ? "SYSTEM (" : "RESERVOIR (") + TextOf(tokens_[number]) + ")");
  if (open) i_ = end;
  return {};
}

Status DialectReader::ReadUsingSample() {
  const size_t begin = i_;
  const auto position = [&](size_t at) { return static_cast<int>(tokens_[std::min(at, tokens_.size() - 1)].begin); };
  const auto wrong = [&](size_t at) {
    return SqlError(ErrorKind::kSyntax, "USING SAMPLE takes a percentage or a number of rows", position(at),
                    "USING SAMPLE 10%, USING SAMPLE bernoulli(10%), USING SAMPLE 100 ROWS.");
  };
  size_t at = i_ + 2;
  std::string method;
  const bool named = At(2).kind == Token::Kind::kWord && At(3).symbol == '(';
  if (named) {
    method = NameOf(At(2));
    at += 2;
  }
  const auto is_percentage = [&](size_t k) {
    return IsPercent(k) ||
           (k + 1 < tokens_.size() && tokens_[k].kind == Token::Kind::kNumber && tokens_[k + 1].symbol == '%');
  };
  if (at >= tokens_.size() || tokens_[at].kind != Token::Kind::kNumber) return wrong(at);
  const size_t number = at;
  const bool percent = is_percentage(number);
  at += percent || IsRows(number + 1) ? 2 : 1;
  const auto is = [&](size_t k, char symbol) { return k < tokens_.size() && tokens_[k].symbol == symbol; };
  std::string seed;
  if (named) {
    if (!is(at++, ')')) return wrong(at);
  } else if (is(at, '(') && at + 1 < tokens_.size() && tokens_[at + 1].kind == Token::Kind::kWord) {
    method = NameOf(tokens_[at + 1]);
    at += 2;
    if (is(at, ',') && at + 1 < tokens_.size()) {
      seed = TextOf(tokens_[at + 1]);
      at += 2;
    }
    if (!is(at++, ')')) return wrong(at);
  }
  if (at + 3 < tokens_.size() && NameOf(tokens_[at]) == "repeatable" && is(at + 1, '(') && is(at + 3, ')')) {
    seed = TextOf(tokens_[at + 2]);
    at += 4;
  }
  if (method.empty()) method = percent ? "system" : "reservoir";
  TESSERA_TRY(CheckSample(method, percent, number));
  const Level& level = levels_.back();
  const size_t end = std::min(level.from_end, begin);
  const bool one =
      level.from != kNothing && std::all_of(tokens_.begin() + static_cast<std::ptrdiff_t>(level.from) + 1,
                                            tokens_.begin() + static_cast<std::ptrdiff_t>(end),
                                            [&](const Lexeme& l) { return IsName(l, sql_) && NameOf(l) != "join"; });
  if (!one || end - level.from > 4) {
    return Unsupported("USING SAMPLE of other than one table is not supported", position(begin),
                       "Write FROM t TABLESAMPLE BERNOULLI (10).");
  }
  const size_t behind = tokens_[end - 1].end;
  Replace(behind, behind,
          " TABLESAMPLE " + method + " (" + TextOf(tokens_[number]) + ")" +
              (seed.empty() ? "" : " REPEATABLE (" + seed + ")"));
  Replace(tokens_[begin].begin, tokens_[at - 1].end, "");
  i_ = at - 1;
  return {};
}
Status DialectReader::ReadForeign() {
  const Lexeme& t = At(0);
  const std::string word = NameOf(t);
  const bool behind = EndsOperand(At(-1));
  if (At(1).keyword == Keyword::kNulls && behind && ReadNulls()) return {};
  if (word == "using" && NameOf(At(1)) == "sample" && behind) return ReadUsingSample();
  if (word == "tablesample") return ReadTableSample();
  if (word == "filter") ReadFilter();
  if (word == "at" && ReadMoment()) return {};
  if (word == "matched" && NameOf(At(-1)) == "not" && NameOf(At(1)) == "by") {
    // WHEN NOT MATCHED BY TARGET is what the grammar calls WHEN NOT MATCHED.
    if (NameOf(At(2)) == "target") Replace(At(1).begin, At(2).end, "");
    if (NameOf(At(2)) == "source") {
      const bool has_condition = NameOf(At(3)) == "and";
      Replace(At(-1).begin, At(has_condition ? 3 : 2).end,
              "MATCHED AND '" + std::string(kBySource) + "'" + (has_condition ? " OR" : ""));
    }
    return {};
  }
  if (word == "glob" && ReadGlob()) return {};
  if (word == "asof" && behind) ReadAsOf();
  if (word == "pivot" || word == "unpivot") {
    bool read = false;
    TESSERA_TRY(ReadPivot(&read));
    if (read) return {};
  }
  std::optional<Status> refused = ForeignForm(word, Following(), behind, static_cast<int>(t.begin));
  return refused ? *std::move(refused) : Status::Ok();
}

Status DialectReader::ReadNumber() {
  const Lexeme& t = At(0);
  const std::string_view text = sql_.substr(t.begin, t.end - t.begin);
  if (IsPlainNumber(text)) return {};
  const std::string plain = PlainNumber(text);
  if (plain.empty()) {
    return SqlError(ErrorKind::kSyntax, "invalid number \"" + std::string(text) + "\"", static_cast<int>(t.begin),
                    "Numbers are 1_000, 0x1F, 0b101 and 0o17; an underscore stands between two digits.");
  }
  Replace(t.begin, t.end, plain);
  return {};
}

void DialectReader::ReadFilter() {
  const Level& level = levels_.back();
  const bool in_from = level.from != kNothing && level.from_end == kNothing;
  const bool of_call = At(-1).symbol == ')' && closed_ != kNothing && closed_ > 0 && IsName(tokens_[closed_ - 1], sql_);
  if (in_from || !of_call || At(1).symbol != '(' || At(2).keyword == Keyword::kWhere) return;
  Insert(At(1).end, "WHERE ");
}

void DialectReader::ReadLimit() {
  if (At(1).kind != Token::Kind::kNumber || At(2).symbol != ',' || At(3).kind != Token::Kind::kNumber) return;
  out_.edits_.push_back({At(3).end, At(3).end, " OFFSET ", At(1).begin, At(1).end});
  Replace(At(1).begin, At(1).end, "");
  Replace(At(2).begin, At(2).end, "");
}

bool DialectReader::ReadGlob() {
  const Lexeme &before = At(-1), &next = At(1);
  if (!EndsOperand(before)) return false;
  const bool operand = next.symbol == '(' || next.kind == Token::Kind::kQuoted ||
                       (next.kind == Token::Kind::kWord && next.keyword == Keyword::kNone);
  constexpr std::string_view kBehindTables[] = {"join",    "left", "right", "inner", "full", "cross",
                                                "natural", "on",   "as",    "and",   "or",   "then"};
  const std::string word = next.kind == Token::Kind::kWord ? NameOf(next) : "";
  if (!operand || std::find(std::begin(kBehindTables), std::end(kBehindTables), word) != std::end(kBehindTables))
    return false;
  AddMark(Dialect::Mark::Kind::kGlob, NameOf(before) == "not" ? before.begin : At(0).begin);
  Replace(At(0).begin, At(0).end, "LIKE");
  return true;
}

Status DialectReader::ReadSetOperation() {
  const bool all = At(1).keyword == Keyword::kAll;
  const Lexeme &by = At(all ? 2 : 1), &name = At(all ? 3 : 2);
  if (by.keyword != Keyword::kBy) return {};
  if (At(0).keyword != Keyword::kUnion || NameOf(name) != "name") {
    return Unsupported("BY NAME is not supported but of UNION", static_cast<int>(by.begin),
                       "Name the columns of all arms in the same order.");
  }
  Replace(by.begin, name.end, "TABLE \"" + std::string(kByName) + "\" UNION" + (all ? " ALL" : ""));
  return {};
}

void DialectReader::ReadAsOf() {
  const std::string first = NameOf(At(1));
  const bool side = first == "left" || first == "right" || first == "full" || first == "inner";
  if (first != "join" && !(side && (NameOf(At(2)) == "join" || NameOf(At(3)) == "join"))) return;
  const size_t at = EndOf(i_ + 1, {"on", "using"});
  const Lexeme& word = tokens_[at];
  const bool with_using = NameOf(word) == "using" && tokens_[at + 1].symbol == '(';
  if (!with_using && NameOf(word) != "on") return;  // the grammar's error
  Replace(At(0).begin, At(0).end, "");
  if (with_using) {
    Insert(tokens_[at + 1].end, "\"" + std::string(kAsOf) + "\", ");
  } else {
    Insert(word.end, " '" + std::string(kAsOf) + "' OR ");
  }
}

bool DialectReader::ReadSubscript() {
  if (At(-1).symbol == '(' && NameOf(At(-2)) == "unnest") {
    Insert(At(0).begin, "ARRAY");
    return true;
  }
  if (At(-1).symbol != ')' || At(1).symbol == ']' || closed_ == kNothing || closed_ == 0) return false;
  const Lexeme& name = tokens_[closed_ - 1];
  if (name.kind != Token::Kind::kWord || !tessera::IsName(name.keyword)) return false;
  Insert(name.begin, "(");
  Insert(At(-1).end, ")");
  return true;
}

void DialectReader::ReadCollate() {
  if (!EndsOperand(At(-1))) return;
  const auto word = [&](int by) {
    std::string name = LowerCase(sql_.substr(At(by).begin, At(by).end - At(by).begin));
    if (name.size() > 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
    return name;
  };
  const int last = word(1) == "pg_catalog" && At(2).symbol == '.' ? 3 : 1;
  const std::string name = word(last);
  if (name == "default" || name == "c" || name == "posix" || name == "ucs_basic")
    Replace(At(0).begin, At(last).end, "");
}

bool DialectReader::ReadInsertOr() {
  size_t first = NameOf(tokens_[0]) == "explain" ? 1 : 0;
  const auto text = [&](size_t n) { return n < tokens_.size() ? NameOf(tokens_[n]) : std::string(); };
  if (first == 1 && text(1) == "analyze") ++first;
  if (text(first) == "replace" && text(first + 1) == "into") {
    out_.dialect.insert_or = Dialect::InsertOr::kReplace;
    Replace(tokens_[first].begin, tokens_[first].end, "INSERT");
    return true;
  }
  if (text(first) != "insert" || text(first + 1) != "or" || text(first + 3) != "into") return false;
  const std::string word = text(first + 2);
  if (word != "replace" && word != "ignore" && word != "abort") return false;
  if (word == "replace") out_.dialect.insert_or = Dialect::InsertOr::kReplace;
  if (word == "ignore") out_.dialect.insert_or = Dialect::InsertOr::kIgnore;
  Replace(tokens_[first + 1].begin, tokens_[first + 2].end, "");
  return true;
}

void DialectReader::ReadVariable() {
  const bool set = NameOf(tokens_[0]) == "set";
  if (tokens_.size() < 4 || !IsName(tokens_[2], sql_)) return;
  if (set && tokens_[3].symbol != '=' && NameOf(tokens_[3]) != "to") return;
  if (!set && NameOf(tokens_[0]) != "reset") return;
  out_.dialect.variable = NameOf(tokens_[2]);
  out_.dialect.reset = !set;
  if (set) {
    Replace(tokens_[0].begin, tokens_[3].end, "SELECT ");
  } else {
    Replace(tokens_[0].begin, tokens_[2].end, "SELECT NULL");
  }
}

}  // namespace tessera
