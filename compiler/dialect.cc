#include "compiler/dialect.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "compiler/sql_scanner.h"
#include "compiler/unsupported_statement.h"

namespace tessera {
namespace {

enum class Keyword : uint8_t {
  kNone,
  kAll,
  kAnalyze,
  kAs,
  kAsc,
  kBy,
  kCreate,
  kDesc,
  kDescribe,
  kDistinct,
  kExcept,
  kExclude,
  kExplain,
  kFetch,
  kFor,
  kForeign,  ///< may begin a form of another engine, see ForeignForm
  kFrom,
  kGroup,
  kHaving,
  kIn,
  kInsert,
  kIntersect,
  kInterval,
  kLimit,
  kNulls,
  kOffset,
  kOr,
  kOrder,
  kQualify,
  kRename,
  kReplace,
  kSelect,
  kSummarize,
  kTable,
  kTrim,
  kTryCast,
  kUnion,
  kValues,
  kWhere,
  kWindow,
  kWith,
};

struct KeywordRow {
  std::string_view word;
  Keyword keyword;
};
constexpr KeywordRow kKeywords[] = {
    {"all", Keyword::kAll},
    {"analyze", Keyword::kAnalyze},
    {"anti", Keyword::kForeign},
    {"as", Keyword::kAs},
    {"asc", Keyword::kAsc},
    {"asof", Keyword::kForeign},
    {"by", Keyword::kBy},
    {"create", Keyword::kCreate},
    {"desc", Keyword::kDesc},
    {"describe", Keyword::kDescribe},
    {"distinct", Keyword::kDistinct},
    {"except", Keyword::kExcept},
    {"exclude", Keyword::kExclude},
    {"explain", Keyword::kExplain},
    {"fetch", Keyword::kFetch},
    {"for", Keyword::kFor},
    {"from", Keyword::kFrom},
    {"glob", Keyword::kForeign},
    {"group", Keyword::kGroup},
    {"having", Keyword::kHaving},
    {"ignore", Keyword::kForeign},
    {"in", Keyword::kIn},
    {"insert", Keyword::kInsert},
    {"intersect", Keyword::kIntersect},
    {"interval", Keyword::kInterval},
    {"limit", Keyword::kLimit},
    {"nulls", Keyword::kNulls},
    {"offset", Keyword::kOffset},
    {"or", Keyword::kOr},
    {"order", Keyword::kOrder},
    {"pivot", Keyword::kForeign},
    {"positional", Keyword::kForeign},
    {"qualify", Keyword::kQualify},
    {"regexp", Keyword::kForeign},
    {"rename", Keyword::kRename},
    {"replace", Keyword::kReplace},
    {"respect", Keyword::kForeign},
    {"rlike", Keyword::kForeign},
    {"select", Keyword::kSelect},
    {"semi", Keyword::kForeign},
    {"summarize", Keyword::kSummarize},
    {"table", Keyword::kTable},
    {"tablesample", Keyword::kForeign},
    {"top", Keyword::kForeign},
    {"trim", Keyword::kTrim},
    {"try_cast", Keyword::kTryCast},
    {"union", Keyword::kUnion},
    {"unpivot", Keyword::kForeign},
    {"using", Keyword::kForeign},
    {"values", Keyword::kValues},
    {"where", Keyword::kWhere},
    {"window", Keyword::kWindow},
    {"with", Keyword::kWith},
};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/// Where the words of a letter begin in kKeywords, which is sorted.
constexpr auto kFirstOfLetter = [] {
  std::array<uint8_t, 27> first{};
  for (size_t letter = 0; letter < 27; ++letter) {
    for (const KeywordRow& row : kKeywords) first[letter] += static_cast<size_t>(row.word[0] - 'a') < letter;
  }
  return first;
}();

Keyword FindWord(std::string_view word) {
  const auto letter = static_cast<size_t>(Lower(word[0]) - 'a');
  if (letter >= 26) return Keyword::kNone;
  for (size_t i = kFirstOfLetter[letter]; i < kFirstOfLetter[letter + 1]; ++i) {
    const std::string_view k = kKeywords[i].word;
    if (k.size() == word.size() &&
        std::equal(word.begin(), word.end(), k.begin(), [](char a, char b) { return Lower(a) == b; })) {
      return kKeywords[i].keyword;
    }
  }
  return Keyword::kNone;
}

/// Words that are names wherever the grammar takes one.
bool IsName(Keyword k) {
  return k == Keyword::kNone || k == Keyword::kForeign || k == Keyword::kInterval || k == Keyword::kRename;
}

bool IsSetOperation(Keyword k) { return k == Keyword::kUnion || k == Keyword::kIntersect || k == Keyword::kExcept; }

/// Words that end a clause before them.
bool BeginsClause(Keyword k) {
  switch (k) {
    case Keyword::kFrom:
    case Keyword::kWhere:
    case Keyword::kGroup:
    case Keyword::kHaving:
    case Keyword::kWindow:
    case Keyword::kQualify:
    case Keyword::kOrder:
    case Keyword::kLimit:
    case Keyword::kOffset:
    case Keyword::kFetch:
    case Keyword::kFor:
      return true;
    default:
      return IsSetOperation(k);
  }
}

/// Words that a query begins with.
bool IsQueryWord(Keyword k) {
  return k == Keyword::kSelect || k == Keyword::kWith || k == Keyword::kValues || k == Keyword::kTable ||
         k == Keyword::kFrom;
}

/// Levels of parentheses at which a query may begin with FROM.
constexpr size_t kDeepest = 1000;

}  // namespace

/// Looks at each token once, with the tokens around it, and notes what is to be edited.
class DialectReader {
 public:
  DialectReader(std::string_view sql, DialectText* out) : sql_(sql), out_(*out) {}

  Status Read() {
    Scan();
    if (tokens_.size() == 1) return {};
    TESSERA_TRY(ReadFirstWords());
    levels_.push_back({});
    for (i_ = 0; tokens_[i_].kind != Token::Kind::kEnd; ++i_) TESSERA_TRY(ReadToken());
    while (!levels_.empty()) {
      EndQuery();
      levels_.pop_back();
    }
    return {};
  }

 private:
  struct Lexeme {
    uint32_t begin = 0, end = 0;
    Token::Kind kind = Token::Kind::kEnd;
    Keyword keyword = Keyword::kNone;  ///< of a word that is not a name for its place
    char symbol = 0;
  };
  static constexpr size_t kNothing = ~size_t{0};

  /// What is known of the query in one pair of parentheses.
  struct Level {
    bool with = false;
    bool begun = false;            ///< a SELECT, FROM or another word of a query was read
    size_t from_first = kNothing;  ///< the FROM that it begins with
    size_t select = kNothing;      ///< the SELECT that follows that
    size_t select_end = kNothing;  ///< the end of its list
    bool window = false;           ///< a WINDOW was read
    bool ordered = false;          ///< an ORDER BY or LIMIT was read
    bool qualify = false;          ///< the tokens being read are the condition of QUALIFY
    size_t open = kNothing;        ///< its parenthesis
    std::string_view described;    ///< it is that of a DESCRIBE or SUMMARIZE: the alias that says so
    size_t from = kNothing;        ///< its FROM
    size_t from_end = kNothing;    ///< the end of that clause
  };

  void Scan() {
    tokens_.reserve(sql_.size() / 4 + 8);
    size_t statement = 0;    // its first token
    size_t body = kNothing;  // the AS behind which the query of a CREATE begins
    int depth = 0;
    for (Token t = NextToken(sql_, 0);; t = NextToken(sql_, t.end)) {
      if (t.kind == Token::Kind::kSpace) continue;
      Lexeme l{static_cast<uint32_t>(t.begin), static_cast<uint32_t>(t.end), t.kind, Keyword::kNone, 0};
      if (t.kind == Token::Kind::kSymbol) l.symbol = sql_[t.begin];
      // After a point or AS any word is a name.
      if (t.kind == Token::Kind::kWord && (tokens_.empty() || tokens_.size() - 1 == body ||
                                           (tokens_.back().symbol != '.' && tokens_.back().keyword != Keyword::kAs))) {
        l.keyword = FindWord(sql_.substr(t.begin, t.end - t.begin));
      }
      depth += l.symbol == '(' ? 1 : l.symbol == ')' ? -1 : 0;
      if (l.symbol == ';') {
        statement = tokens_.size() + 1;
        body = kNothing;
        depth = 0;
      } else if (l.keyword == Keyword::kAs && depth == 0 && body == kNothing && statement < tokens_.size() &&
                 tokens_[statement].keyword == Keyword::kCreate) {
        body = tokens_.size();
      }
      if (!tokens_.empty() && tokens_.back().keyword == Keyword::kQualify && !BeginsCondition(l))
        tokens_.back().keyword = Keyword::kNone;
      if (l.keyword == Keyword::kQualify && (tokens_.empty() || !EndsOperand(tokens_.back())))
        l.keyword = Keyword::kNone;
      tokens_.push_back(l);
      if (t.kind == Token::Kind::kEnd) return;
    }
  }

  /// QUALIFY is the clause, and no name, between what may end the clause before it and what may begin a condition.
  static bool EndsOperand(const Lexeme& l) {
    if (l.kind == Token::Kind::kEnd) return false;
    if (l.kind == Token::Kind::kSymbol) return l.symbol == ')' || l.symbol == ']' || l.symbol == '*';
    return tessera::IsName(l.keyword) || l.keyword == Keyword::kAll;
  }
  static bool BeginsCondition(const Lexeme& l) {
    if (l.kind == Token::Kind::kSymbol) return l.symbol == '(' || l.symbol == '+' || l.symbol == '-';
    const bool is_function =
        l.keyword == Keyword::kTryCast || l.keyword == Keyword::kReplace || l.keyword == Keyword::kTrim;
    return l.kind != Token::Kind::kEnd && (tessera::IsName(l.keyword) || is_function);
  }

  /// The token `by` places from the one being read; an end beyond either end.
  const Lexeme& At(int by) const {
    static const Lexeme none;
    const size_t k = i_ + static_cast<size_t>(by);
    return k < tokens_.size() ? tokens_[k] : none;
  }
  static bool IsName(const Lexeme& l, std::string_view sql) {
    return l.kind == Token::Kind::kWord || (l.kind == Token::Kind::kQuoted && sql[l.begin] == '"');
  }
  /// As the grammar folds it.
  std::string NameOf(const Lexeme& l) const {
    std::string name;
    if (!IsName(l, sql_)) return name;
    if (l.kind == Token::Kind::kWord) {
      for (size_t k = l.begin; k < l.end; ++k) name.push_back(Lower(sql_[k]));
      return name;
    }
    for (size_t k = l.begin + 1; k + 1 < l.end; ++k) {
      name.push_back(sql_[k]);
      if (sql_[k] == '"') ++k;  // doubled
    }
    return name;
  }
  Dialect::Mark* AddMark(Dialect::Mark::Kind kind, size_t position) {
    out_.dialect.marks.push_back({kind, static_cast<int>(position), {}, 0, 0});
    return &out_.dialect.marks.back();
  }
  void Replace(size_t begin, size_t end, std::string text) {
    out_.edits_.push_back({begin, end, std::move(text), 0, 0});
  }

  Status ReadFirstWords() {
    const auto word = [&](size_t n) { return n < tokens_.size() ? tokens_[n].keyword : Keyword::kNone; };
    if (word(0) == Keyword::kCreate && word(1) == Keyword::kOr && word(2) == Keyword::kReplace &&
        word(3) == Keyword::kTable) {
      out_.dialect.or_replace = true;
      Replace(tokens_[1].begin, tokens_[2].end, "");
    }
    const auto text = [&](size_t n) { return n < tokens_.size() ? NameOf(tokens_[n]) : std::string(); };
    if (tokens_[0].kind == Token::Kind::kWord) {
      std::optional<Status> refused = ForeignStatement(text(0), text(1), static_cast<int>(tokens_[0].begin));
      if (refused) return *std::move(refused);
    }
    const bool alone = tokens_.size() == 2 || tokens_[1].symbol == ';';
    if (alone && word(0) == Keyword::kDescribe) {
      Replace(tokens_[0].begin, tokens_[0].end, "SHOW TABLES");
      return {};
    }
    const bool summarize = word(0) == Keyword::kSummarize;
    if (summarize || word(0) == Keyword::kDescribe || word(0) == Keyword::kDesc) {
      out_.dialect.describe = !summarize;
      const bool is_query = IsQueryWord(word(1)) || tokens_[1].symbol == '(';
      std::string words = summarize ? "EXPLAIN (SUMMARIZE)" : "";
      if (!is_query) words += summarize ? " TABLE" : "TABLE";
      Replace(tokens_[0].begin, tokens_[0].end, std::move(words));
    }
    return {};
  }

  /// FROM (DESCRIBE ...) becomes FROM (SELECT * FROM (...) AS kDescribed), and SUMMARIZE likewise.
  void ReadDescribed() {
    const Lexeme &before = At(-1), &word = At(1), &next = At(2);
    if (before.keyword != Keyword::kFrom && before.symbol != ',' && NameOf(before) != "join") return;
    if (word.keyword != Keyword::kDescribe && word.keyword != Keyword::kSummarize) return;
    const bool is_query = IsQueryWord(next.keyword) || next.symbol == '(';
    if (!is_query && !IsName(next, sql_)) return;
    levels_.back().described = word.keyword == Keyword::kDescribe ? kDescribed : kSummarized;
    Replace(word.begin, word.end, is_query ? "SELECT * FROM (" : "SELECT * FROM (TABLE ");
  }

  Status ReadToken() {
    const Lexeme& t = tokens_[i_];
    if (t.symbol == '(') {
      levels_.push_back({});
      levels_.back().open = i_;
      ReadDescribed();
      return {};
    }
    if (t.symbol == ';') {
      EndQuery();
      levels_.back() = {};
      return {};
    }
    if (t.symbol == ')') {
      if (At(-1).symbol == '(' && At(-2).keyword == Keyword::kIn) {
        AddMark(Dialect::Mark::Kind::kEmptyList, t.begin);
        Replace(t.begin, t.begin, "NULL");
      }
      EndQuery();
      if (!levels_.back().described.empty())
        Replace(t.begin, t.begin, ") AS \"" + std::string(levels_.back().described) + "\"");
      closed_ = levels_.back().open;
      levels_.back() = {};
      if (levels_.size() > 1) levels_.pop_back();
      return {};
    }
    if (t.kind == Token::Kind::kSymbol) return ReadSymbol();
    if (t.keyword == Keyword::kNone) return {};
    if (t.keyword == Keyword::kFrom && At(-1).keyword == Keyword::kDistinct) return {};  // IS DISTINCT FROM
    Level& level = levels_.back();
    // Each of these words is reserved: behind a comma they are errors in the grammar.
    if (BeginsClause(t.keyword) && At(-1).symbol == ',' && level.begun) Replace(At(-1).begin, At(-1).end, "");
    if (BeginsClause(t.keyword) && level.select != kNothing) level.select_end = std::min(level.select_end, i_);
    if (BeginsClause(t.keyword)) EndQualify();
    if (BeginsClause(t.keyword) && level.from != kNothing) level.from_end = std::min(level.from_end, i_);
    switch (t.keyword) {
      case Keyword::kWith:
        level.with = level.with || (!level.begun && At(1).symbol != '(');  // those are options
        break;
      case Keyword::kSelect:
        if (level.from_first != kNothing && level.select == kNothing) level.select = i_;
        if (level.from != kNothing) level.from_end = std::min(level.from_end, i_);
        level.begun = true;
        break;
      case Keyword::kFrom:
        if (!level.begun && BeginsQuery()) level.from_first = i_;
        if ((level.begun || level.from_first == i_) && At(1).kind == Token::Kind::kQuoted && sql_[At(1).begin] != '"') {
          return Unsupported("a file in FROM is not supported", static_cast<int>(At(1).begin),
                             "Load it: CREATE TABLE t (...), then COPY t FROM 'file' (FORMAT csv, HEADER true).");
        }
        level.begun = true;
        level.from = i_;
        level.from_end = kNothing;
        break;
      case Keyword::kUnion:
      case Keyword::kIntersect:
      case Keyword::kExcept:
        EndQuery();
        level = {};
        if (At(At(1).keyword == Keyword::kAll ? 2 : 1).keyword == Keyword::kBy) {
          return Unsupported("UNION BY NAME is not supported", static_cast<int>(t.begin),
                             "Name the columns of all arms in the same order.");
        }
        break;
      case Keyword::kForeign: {
        if (At(1).keyword == Keyword::kNulls && EndsOperand(At(-1)) && ReadNulls()) break;
        if (NameOf(t) == "using" && NameOf(At(1)) == "sample" && EndsOperand(At(-1))) return ReadUsingSample();
        if (NameOf(t) == "tablesample") return ReadTableSample();
        std::optional<Status> refused =
            ForeignForm(NameOf(t), Following(), EndsOperand(At(-1)), static_cast<int>(t.begin));
        if (refused) return *std::move(refused);
        break;
      }
      case Keyword::kInterval:
        ReadInterval();
        break;
      case Keyword::kWindow:
        level.window = true;
        break;
      case Keyword::kLimit:
        if (IsPercent(i_ + 1)) {
          AddMark(Dialect::Mark::Kind::kPercent, At(1).begin);
          Replace(At(2).begin, At(2).end, "");
        }
        [[fallthrough]];
      case Keyword::kOrder:
      case Keyword::kOffset:
      case Keyword::kFetch:
        level.ordered = true;
        break;
      case Keyword::kQualify:
        return ReadQualify();
      case Keyword::kAll:
        ReadAll();
        break;
      case Keyword::kTryCast:
        if (At(1).symbol != '(') break;
        AddMark(Dialect::Mark::Kind::kTryCast, t.begin);
        Replace(t.begin, t.end, "CAST");
        break;
      case Keyword::kExclude:
      case Keyword::kRename:
      case Keyword::kReplace:
        if (At(-1).symbol == '*') return ReadStar();
        break;
      default:
        break;
    }
    return {};
  }

  /// Whether a query may begin at the token being read, the first word of a query at its level.
  bool BeginsQuery() const {
    if (levels_.size() > kDeepest) return false;
    const Lexeme& before = At(-1);
    switch (before.keyword) {
      case Keyword::kExplain:
      case Keyword::kAnalyze:
      case Keyword::kDescribe:
      case Keyword::kDesc:
      case Keyword::kSummarize:
      case Keyword::kUnion:
      case Keyword::kIntersect:
      case Keyword::kExcept:
      case Keyword::kAs:  // CREATE TABLE t AS
        return true;
      case Keyword::kAll:
      case Keyword::kDistinct:
        return IsSetOperation(At(-2).keyword);
      default:
        break;
    }
    if (before.symbol == ';') return true;
    if (before.symbol == '(') return At(-2).keyword != Keyword::kTrim;
    if (before.symbol == ')' && levels_.back().with) return true;
    if (levels_.size() > 1) return false;
    // INSERT INTO t (a) FROM s; EXPLAIN (ANALYZE) FROM t
    return i_ == 0 || tokens_[0].keyword == Keyword::kInsert ||
           (tokens_[0].keyword == Keyword::kExplain && before.symbol == ')');
  }

  /// At the end of a query: no comma is left there, and one that begins with FROM gets its SELECT in front.
  void EndQuery() {
    EndQualify();
    const Level& level = levels_.back();
    if (level.begun && At(-1).symbol == ',') Replace(At(-1).begin, At(-1).end, "");
    if (level.from_first == kNothing) return;
    const size_t at = tokens_[level.from_first].begin;
    if (level.select == kNothing) {
      Replace(at, at, "SELECT * ");
      return;
    }
    const size_t begin = tokens_[level.select].begin;
    // What ends the list is the token being read or one before it.
    const size_t end = tokens_[std::min(level.select_end, i_) - 1].end;
    out_.edits_.push_back({at, at, "", begin, end});
    Replace(begin, end, " ");
  }

  /// QUALIFY condition, which stands behind WINDOW, becomes a window with an empty name.
  Status ReadQualify() {
    Level& level = levels_.back();
    if (!level.begun) return {};
    if (level.ordered) return SqlError("QUALIFY stands before ORDER BY and LIMIT", static_cast<int>(At(0).begin));
    AddMark(Dialect::Mark::Kind::kQualify, At(0).begin);
    Replace(At(0).begin, At(0).end,
            (level.window ? ", \"" : "WINDOW \"") + std::string(kNoAlias) + "\" AS (PARTITION BY");
    level.window = level.qualify = true;
    return {};
  }
  void EndQualify() {
    if (levels_.back().qualify) Replace(At(-1).end, At(-1).end, ")");
    levels_.back().qualify = false;
  }

  /// x == y; lists and structs.
  Status ReadSymbol() {
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
    if (t.symbol == '[' && !EndsOperand(At(-1)))
      return Unsupported("a list is not supported: there are no arrays", position, "Write x IN (1, 2, 3) to compare.");
    if (t.symbol == '{') return Unsupported("a struct is not supported", position, "Write its fields as columns.");
    return {};
  }

  /// INTERVAL 7 DAY: the grammar takes a text only.
  void ReadInterval() {
    if (At(1).kind != Token::Kind::kNumber || At(2).kind != Token::Kind::kWord) return;
    const std::string_view number = sql_.substr(At(1).begin, At(1).end - At(1).begin);
    Replace(At(1).begin, At(2).end, "'" + std::string(number) + " " + NameOf(At(2)) + "'");
  }

  // ---- IGNORE NULLS, samples

  /// IGNORE NULLS or RESPECT NULLS at the end of a call's arguments, or behind the call.
  bool ReadNulls() {
    const bool outside = At(-1).symbol == ')' && NameOf(At(2)) == "over", inside = At(2).symbol == ')';
    const size_t open = outside ? closed_ : levels_.back().open;
    if (!(inside || outside) || open == kNothing || open == 0 || !IsName(tokens_[open - 1], sql_)) return false;
    if (NameOf(At(0)) == "ignore") AddMark(Dialect::Mark::Kind::kIgnoreNulls, tokens_[open - 1].begin);
    Replace(At(0).begin, At(1).end, "");
    return true;
  }

  /// A number, and % or PERCENT.
  bool IsPercent(size_t at) const {
    if (at + 1 >= tokens_.size() || tokens_[at].kind != Token::Kind::kNumber) return false;
    const Lexeme& sign = tokens_[at + 1];
    if (NameOf(sign) == "percent") return true;
    return sign.symbol == '%' && (at + 2 >= tokens_.size() || !BeginsCondition(tokens_[at + 2]));
  }
  /// A number with a point. (The binder reads a 0 from the user's text, where an edit has no place of its own.)
  std::string TextOf(const Lexeme& l) const {
    std::string text(sql_.substr(l.begin, l.end - l.begin));
    return text.find_first_not_of("0123456789") == std::string::npos ? text + ".0" : text;
  }

  /// A method and what it counts: the grammar knows percentages, the binder also rows.
  Status CheckSample(const std::string& method, bool percent, size_t at) const {
    const auto position = static_cast<int>(tokens_[std::min(at, tokens_.size() - 1)].begin);
    if (method == "reservoir" && percent) {
      return Unsupported("a RESERVOIR sample of a percentage is not supported", position,
                         "BERNOULLI and SYSTEM take a percentage, RESERVOIR a number of rows.");
    }
    if (method != "reservoir" && !percent)
      return SqlError("a sample by " + method + " takes a percentage", position, "RESERVOIR takes a number of rows.");
    return {};
  }
  bool IsRows(size_t at) const { return at < tokens_.size() && NameOf(tokens_[at]) == "rows"; }

  /// TABLESAMPLE 10%, 10 ROWS, BERNOULLI (10%), RESERVOIR (10 ROWS), which become SYSTEM (10) and so on.
  Status ReadTableSample() {
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

  /// USING SAMPLE, which stands behind the other clauses, moves behind the only table of FROM as TABLESAMPLE.
  Status ReadUsingSample() {
    const size_t begin = i_;
    const auto position = [&](size_t at) { return static_cast<int>(tokens_[std::min(at, tokens_.size() - 1)].begin); };
    const auto wrong = [&](size_t at) {
      return SqlError("USING SAMPLE takes a percentage or a number of rows", position(at),
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

  /// The next token for ForeignForm.
  std::string Following() const {
    if (At(1).kind == Token::Kind::kNumber) return "1";
    if (At(1).kind == Token::Kind::kQuoted) return "'";
    return At(1).symbol != 0 ? std::string(1, At(1).symbol) : NameOf(At(1));
  }

  /// GROUP BY ALL and ORDER BY ALL. GROUP BY ALL a, b is the grammar's own.
  void ReadAll() {
    if (At(-1).keyword != Keyword::kBy) return;
    const bool order = At(-2).keyword == Keyword::kOrder;
    if (!order && At(-2).keyword != Keyword::kGroup) return;
    const Lexeme& next = At(1);
    const bool ends = next.kind == Token::Kind::kEnd || next.symbol == ')' || next.symbol == ';' ||
                      (BeginsClause(next.keyword) && next.keyword != Keyword::kFrom);
    const bool directed =
        order && (next.keyword == Keyword::kAsc || next.keyword == Keyword::kDesc || next.keyword == Keyword::kNulls);
    if (!ends && !directed) return;
    AddMark(Dialect::Mark::Kind::kAll, At(0).begin);
    Replace(At(0).begin, At(0).end, "\"all\"");
  }

  /// RENAME (a AS b, ...), or RENAME a AS b.
  Status ReadRename(Dialect::Mark* mark) {
    const size_t begin = At(0).begin;
    const bool list = At(1).symbol == '(';
    if (list) ++i_;
    const auto expect = [&](bool is) {
      return is ? Status::Ok()
                : SqlError("RENAME takes names of columns and new names", static_cast<int>(At(0).begin),
                           "Write * RENAME (a AS b).");
    };
    while (true) {
      ++i_;
      TESSERA_TRY(expect(IsName(At(0), sql_)));
      const Dialect::Name from = {NameOf(At(0)), static_cast<int>(At(0).begin)};
      ++i_;
      TESSERA_TRY(expect(At(0).keyword == Keyword::kAs));
      ++i_;
      TESSERA_TRY(expect(IsName(At(0), sql_)));
      mark->renamed.emplace_back(from, NameOf(At(0)));
      if (!list) break;
      ++i_;
      if (At(0).symbol == ')') break;
      TESSERA_TRY(expect(At(0).symbol == ','));
    }
    Replace(begin, At(0).end, "");
    if (At(1).keyword == Keyword::kReplace) {
      ++i_;
      return SqlError("RENAME before REPLACE is not supported", static_cast<int>(At(0).begin),
                      "Write the renamed columns as outputs of their own: * EXCLUDE (a), a AS b.");
    }
    return {};
  }

  /// EXCLUDE, RENAME or REPLACE behind a star. (a * exclude (b) is a product with a function.)
  Status ReadStar() {
    size_t star = i_ - 1;
    const Lexeme& before = star > 0 ? tokens_[star - 1] : tokens_.back();
    if (before.symbol == '.') {
      while (star >= 2 && tokens_[star - 1].symbol == '.' && IsName(tokens_[star - 2], sql_)) star -= 2;
    } else if (before.symbol != ',' && before.keyword != Keyword::kSelect && before.keyword != Keyword::kDistinct &&
               before.keyword != Keyword::kAll) {
      return {};
    }
    Dialect::Mark& mark = *AddMark(Dialect::Mark::Kind::kStar, tokens_[star].begin);
    if (At(0).keyword == Keyword::kExclude) {
      const size_t begin = At(0).begin;
      const bool list = At(1).symbol == '(';
      if (list) ++i_;
      const auto expect = [&](bool is) {
        return is ? Status::Ok()
                  : SqlError("EXCLUDE takes names of columns", static_cast<int>(At(0).begin),
                             "Write * EXCLUDE (a, b).");
      };
      while (true) {
        ++i_;
        TESSERA_TRY(expect(IsName(At(0), sql_)));
        mark.excluded.push_back({NameOf(At(0)), static_cast<int>(At(0).begin)});
        if (!list) break;
        ++i_;
        if (At(0).symbol == ')') break;
        TESSERA_TRY(expect(At(0).symbol == ','));
      }
      Replace(begin, At(0).end, "");
      if (At(1).keyword != Keyword::kReplace && At(1).keyword != Keyword::kRename) return {};
      ++i_;
    }
    if (At(0).keyword == Keyword::kRename) return ReadRename(&mark);
    // REPLACE (x AS a, ...): what is in the parentheses becomes outputs behind the star.
    if (At(1).symbol != '(' || At(2).symbol == ')') {
      return SqlError("REPLACE takes expressions and names of columns", static_cast<int>(At(1).begin),
                      "Write * REPLACE (a + 1 AS a).");
    }
    size_t close = i_ + 1;
    for (int depth = 0; tokens_[close].kind != Token::Kind::kEnd; ++close) {
      if (tokens_[close].symbol == '(') ++depth;
      if (tokens_[close].symbol == ')' && --depth == 0) break;
    }
    if (tokens_[close].kind == Token::Kind::kEnd) return {};  // the grammar's error
    mark.replaced_begin = static_cast<int>(At(1).end);
    mark.replaced_end = static_cast<int>(tokens_[close].begin);
    Replace(At(0).begin, At(1).end, ",");
    Replace(tokens_[close].begin, tokens_[close].end, "");
    // The list is read on as a part of this level; its end, left out, closes a level that is opened for it.
    ++i_;
    levels_.push_back({});
    levels_.back().begun = true;
    return {};
  }

  const std::string_view sql_;
  DialectText& out_;
  std::vector<Lexeme> tokens_;  ///< the last is an end
  std::vector<Level> levels_;
  size_t i_ = 0;              ///< of the token being read
  size_t closed_ = kNothing;  ///< where the parentheses that were closed last begin
};

Result<DialectText> DialectText::Read(std::string_view sql) {
  DialectText out;
  out.sql_ = sql;
  DialectReader reader(sql, &out);
  TESSERA_TRY(reader.Read());
  const auto before = [](const Dialect::Mark& a, const Dialect::Mark& b) { return a.position < b.position; };
  if (!std::is_sorted(out.dialect.marks.begin(), out.dialect.marks.end(), before))
    std::stable_sort(out.dialect.marks.begin(), out.dialect.marks.end(), before);
  out.Apply();
  return out;
}

void DialectText::Append(std::string_view text, size_t original, bool copied) {
  if (text.empty()) return;
  pieces_.push_back({text_.size(), original, copied});
  text_.append(text);
}

void DialectText::Apply() {
  text_.clear();
  pieces_.clear();
  if (edits_.empty()) {
    text_ = sql_;
    return;
  }
  std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  Emit(0, sql_.size(), nullptr);
}

/// `cut`: the edit of this part that does not apply here, because the part is put where it moves.
void DialectText::Emit(size_t begin, size_t end, const Edit* cut) {
  auto e = std::lower_bound(edits_.begin(), edits_.end(), begin, [](const Edit& a, size_t at) { return a.begin < at; });
  for (; e != edits_.end() && e->begin < end + (end == sql_.size()); ++e) {
    const bool moved = cut != nullptr && e->begin == cut->from && e->end == cut->to;
    if (e->begin < begin || moved) continue;  // inside what moved
    Append(sql_.substr(begin, e->begin - begin), begin, true);
    Append(e->text, e->begin, false);
    if (e->to > e->from) {
      Emit(e->from, e->to, &*e);
      Append(" ", e->begin, false);
    }
    begin = e->end;
  }
  Append(sql_.substr(begin, end - begin), begin, true);
}

int DialectText::ToOriginal(int offset) const {
  if (offset < 0 || pieces_.empty()) return offset;
  const auto at = static_cast<size_t>(offset);
  auto p = std::upper_bound(pieces_.begin(), pieces_.end(), at, [](size_t x, const Piece& q) { return x < q.begin; });
  if (p == pieces_.begin()) return 0;
  --p;
  return static_cast<int>(p->original + (p->copied ? at - p->begin : 0));
}

bool DialectText::NameDerivedTable(int position) {
  if (position < 0) return false;
  int depth = 0;
  for (Token t = NextToken(sql_, static_cast<size_t>(position)); t.kind != Token::Kind::kEnd;
       t = NextToken(sql_, t.end)) {
    if (t.kind != Token::Kind::kSymbol) continue;
    if (sql_[t.begin] == '(') ++depth;
    if (sql_[t.begin] != ')' || --depth > 0) continue;
    if (depth < 0) return false;
    edits_.push_back({t.end, t.end, " AS \"" + std::string(kNoAlias) + "\"", 0, 0});
    Apply();
    return true;
  }
  return false;
}

}  // namespace tessera
