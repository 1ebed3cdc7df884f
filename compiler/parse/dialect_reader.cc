#include "compiler/parse/dialect_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "compiler/parse/sql_scanner.h"
#include "compiler/parse/unsupported_statement.h"

namespace tessera {
namespace {

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
    {"at", Keyword::kForeign},
    {"by", Keyword::kBy},
    {"collate", Keyword::kCollate},
    {"create", Keyword::kCreate},
    {"desc", Keyword::kDesc},
    {"describe", Keyword::kDescribe},
    {"distinct", Keyword::kDistinct},
    {"except", Keyword::kExcept},
    {"exclude", Keyword::kExclude},
    {"explain", Keyword::kExplain},
    {"fetch", Keyword::kFetch},
    {"filter", Keyword::kForeign},
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
    {"matched", Keyword::kForeign},
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
    {"returning", Keyword::kReturning},
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

/// Levels of parentheses at which a query may begin with FROM.
constexpr size_t kDeepest = 1000;

}  // namespace

Status DialectReader::Read() {
  Scan();
  if (tokens_.size() == 1) return {};
  TESSERA_TRY(ReadFirstWords());
  levels_.push_back({});
  for (; tokens_[i_].kind != Token::Kind::kEnd; ++i_) {
    if (tokens_[i_].keyword == Keyword::kCollate) ReadCollate();
    TESSERA_TRY(ReadToken());
  }
  while (!levels_.empty()) {
    EndQuery();
    levels_.pop_back();
  }
  return {};
}

void DialectReader::Scan() {
  tokens_.reserve(sql_.size() / 4 + 8);
  size_t statement = 0;    // its first token
  size_t body = kNothing;  // the AS after which the query of a CREATE begins
  int depth = 0;
  bool creates = false;
  for (Token t = NextToken(sql_, 0);; t = NextToken(sql_, t.end)) {
    if (t.kind == Token::Kind::kSpace) continue;
    Lexeme l{static_cast<uint32_t>(t.begin), static_cast<uint32_t>(t.end), t.kind, Keyword::kNone, 0};
    if (t.kind == Token::Kind::kSymbol) l.symbol = sql_[t.begin];
    // After a point or AS any word is a name.
    if (t.kind == Token::Kind::kWord && (tokens_.empty() || tokens_.size() - 1 == body ||
                                         (tokens_.back().symbol != '.' && tokens_.back().keyword != Keyword::kAs))) {
      l.keyword = FindWord(sql_.substr(t.begin, t.end - t.begin));
    }
    // EXPLAIN ANALYZE CREATE TABLE t AS
    if (l.keyword == Keyword::kCreate && statement < tokens_.size())
      creates = creates || tokens_[statement].keyword == Keyword::kExplain;
    depth += l.symbol == '(' ? 1 : l.symbol == ')' ? -1 : 0;
    if (l.symbol == ';') {
      statement = tokens_.size() + 1;
      body = kNothing;
      creates = false;
      depth = 0;
    } else if (l.keyword == Keyword::kAs && depth == 0 && body == kNothing && statement < tokens_.size() &&
               (tokens_[statement].keyword == Keyword::kCreate || creates)) {
      body = tokens_.size();
    }
    if (!tokens_.empty() && tokens_.back().keyword == Keyword::kQualify && !BeginsCondition(l))
      tokens_.back().keyword = Keyword::kNone;
    if (l.keyword == Keyword::kQualify && (tokens_.empty() || !EndsOperand(tokens_.back()))) l.keyword = Keyword::kNone;
    tokens_.push_back(l);
    if (t.kind == Token::Kind::kEnd) return;
  }
}

std::string DialectReader::NameOf(const Lexeme& l) const {
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

Status DialectReader::ReadFirstWords() {
  const auto word = [&](size_t n) { return n < tokens_.size() ? tokens_[n].keyword : Keyword::kNone; };
  const auto text = [&](size_t n) { return n < tokens_.size() ? NameOf(tokens_[n]) : std::string(); };
  if (word(0) == Keyword::kCreate && word(1) == Keyword::kOr && word(2) == Keyword::kReplace) {
    const bool temporary = text(3) == "temp" || text(3) == "temporary";
    if (word(temporary ? 4 : 3) == Keyword::kTable) {
      out_.dialect.or_replace = true;
      Replace(tokens_[1].begin, tokens_[2].end, "");
    }
  }
  // (SQLite)
  for (size_t n = 1; word(0) == Keyword::kCreate && n < tokens_.size(); ++n) {
    if (tokens_[n].kind != Token::Kind::kWord) continue;
    const std::string name = NameOf(tokens_[n]);
    if (name == "autoincrement" && NameOf(tokens_[n - 1]) == "key")
      Replace(tokens_[n].begin, tokens_[n].end, "GENERATED BY DEFAULT AS IDENTITY");
  }
  if (word(0) == Keyword::kCreate) {
    size_t view = 1;  // OR REPLACE and TEMP stand before it
    while (view < 4 && text(view) != "view") ++view;
    if (text(view) == "view" && text(view + 1) == "if" && text(view + 2) == "not" && text(view + 3) == "exists") {
      out_.dialect.if_not_exists = true;
      Replace(tokens_[view + 1].begin, tokens_[view + 3].end, "");
    }
  }
  if (text(0) == "pragma") return ReadPragma();
  if (text(0) == "show" && text(1) == "databases")
    Replace(tokens_[0].begin, tokens_[1].end, "SELECT name AS database_name FROM pragma_database_list() ORDER BY name");
  if (!ReadInsertOr() && tokens_[0].kind == Token::Kind::kWord) {
    std::optional<Status> refused = ForeignStatement(text(0), text(1), static_cast<int>(tokens_[0].begin));
    if (refused) return *std::move(refused);
  }
  for (size_t n = 1; text(0) == "merge" && n < tokens_.size(); ++n) {
    if (word(n) == Keyword::kReturning)
      return UnsupportedStatement("MergeReturning", static_cast<int>(tokens_[n].begin));
  }
  if (text(1) == "variable") ReadVariable();
  const bool drops = tokens_[0].end - tokens_[0].begin == 4 && text(0) == "drop";
  if (word(0) == Keyword::kCreate || drops) TESSERA_TRY(ReadMacro());
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
    const bool is_file = IsText(tokens_[1]);
    if (is_file) CallFile(1);
    if (is_file) words += summarize ? " SELECT * FROM" : "SELECT * FROM";
    if (!is_query && !is_file) words += summarize ? " TABLE" : "TABLE";
    Replace(tokens_[0].begin, tokens_[0].end, std::move(words));
  }
  return {};
}

void DialectReader::ReadDescribed() {
  const Lexeme &before = At(-1), &word = At(1), &next = At(2);
  if (before.keyword != Keyword::kFrom && before.symbol != ',' && NameOf(before) != "join") return;
  if (word.keyword != Keyword::kDescribe && word.keyword != Keyword::kSummarize) return;
  const bool is_query = IsQueryWord(next.keyword) || next.symbol == '(';
  if (!is_query && !IsName(next, sql_)) return;
  levels_.back().described = word.keyword == Keyword::kDescribe ? kDescribed : kSummarized;
  Replace(word.begin, word.end, is_query ? "SELECT * FROM (" : "SELECT * FROM (TABLE ");
}

Status DialectReader::ReadToken() {
  const Lexeme& t = tokens_[i_];
  if (t.symbol == '(') {
    (void)ReadFileArgument();
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
  if (t.symbol == ',' && !levels_.back().begun) levels_.back().with_comma = i_;
  if (t.kind == Token::Kind::kSymbol) return ReadFileArgument() ? Status() : ReadSymbol();
  if (IsText(t)) ReadFileName();
  if (t.kind == Token::Kind::kNumber) return ReadNumber();
  if (t.kind == Token::Kind::kWord && (t.end - t.begin == 1 ? ReadBytes() : ReadCharacter())) return {};
  if (t.keyword == Keyword::kNone) return {};
  if (t.keyword == Keyword::kFrom && At(-1).keyword == Keyword::kDistinct) return {};  // IS DISTINCT FROM
  Level& level = levels_.back();
  // Each of these words is reserved: after a comma they are errors in the grammar.
  if (BeginsClause(t.keyword) && At(-1).symbol == ',' && level.begun) Replace(At(-1).begin, At(-1).end, "");
  if (BeginsClause(t.keyword) && level.select != kNothing) level.select_end = std::min(level.select_end, i_);
  if (BeginsClause(t.keyword)) EndQualify();
  if (BeginsClause(t.keyword) && level.from != kNothing) level.from_end = std::min(level.from_end, i_);
  switch (t.keyword) {
    case Keyword::kWith:
      if (level.begun || level.with || At(1).symbol == '(') break;  // those are options
      level.with = true;
      level.with_at = i_;
      break;
    case Keyword::kSelect:
      if (level.from_first != kNothing && level.select == kNothing) level.select = i_;
      if (level.from != kNothing) level.from_end = std::min(level.from_end, i_);
      if (!level.begun) level.body = i_;
      level.begun = true;
      break;
    case Keyword::kFrom:
      if (!level.begun && BeginsQuery()) level.from_first = i_;
      level.tables = BeginsTables();
      if (!level.begun) level.body = i_;
      level.begun = true;
      level.from = i_;
      level.from_end = kNothing;
      break;
    case Keyword::kUnion:
    case Keyword::kIntersect:
    case Keyword::kExcept:
      EndQuery();
      level = {};
      return ReadSetOperation();
    case Keyword::kForeign:
      return ReadForeign();
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
      ReadLimit();
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

bool DialectReader::BeginsQuery() const {
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
    case Keyword::kAs:     // CREATE TABLE t AS
    case Keyword::kTable:  // CREATE MACRO f() AS TABLE
      return true;
    case Keyword::kAll:
    case Keyword::kDistinct:
      return IsSetOperation(At(-2).keyword);
    default:
      break;
  }
  const auto is_union = [&](int by) { return At(by).keyword == Keyword::kUnion; };
  const bool after_union = is_union(-3) || (is_union(-4) && At(-3).keyword == Keyword::kAll);
  if (At(-2).keyword == Keyword::kBy && after_union) return true;  // UNION BY NAME
  if (before.symbol == ';') return true;
  if (before.symbol == '(') return At(-2).keyword != Keyword::kTrim;
  if (before.symbol == ')' && levels_.back().with) return true;
  if (levels_.size() > 1) return false;
  // INSERT INTO t (a) FROM s; EXPLAIN (ANALYZE) FROM t
  return i_ == 0 || tokens_[0].keyword == Keyword::kInsert ||
         (tokens_[0].keyword == Keyword::kExplain && before.symbol == ')');
}

void DialectReader::EndQuery() {
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

Status DialectReader::ReadQualify() {
  Level& level = levels_.back();
  if (!level.begun) return {};
  if (level.ordered)
    return SqlError(ErrorKind::kSyntax, "QUALIFY stands before ORDER BY and LIMIT", static_cast<int>(At(0).begin));
  AddMark(Dialect::Mark::Kind::kQualify, At(0).begin);
  Replace(At(0).begin, At(0).end,
          (level.window ? ", \"" : "WINDOW \"") + std::string(kNoAlias) + "\" AS (PARTITION BY");
  level.window = level.qualify = true;
  return {};
}

void DialectReader::EndQualify() {
  if (levels_.back().qualify) Replace(At(-1).end, At(-1).end, ")");
  levels_.back().qualify = false;
}

std::string DialectReader::Following() const {
  if (At(1).kind == Token::Kind::kNumber) return "1";
  if (At(1).kind == Token::Kind::kQuoted) return "'";
  return At(1).symbol != 0 ? std::string(1, At(1).symbol) : NameOf(At(1));
}

Result<DialectText> DialectText::Read(std::string_view sql, const QueryRunner& run) {
  DialectText out;
  out.sql_ = sql;
  DialectReader reader(sql, run, &out);
  TESSERA_TRY(reader.Read());
  const auto before = [](const Dialect::Mark& a, const Dialect::Mark& b) { return a.position < b.position; };
  if (!std::is_sorted(out.dialect.marks.begin(), out.dialect.marks.end(), before))
    std::stable_sort(out.dialect.marks.begin(), out.dialect.marks.end(), before);
  out.Apply();
  return out;
}

}  // namespace tessera
