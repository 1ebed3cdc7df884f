// Reads the tokens of a statement once and notes what is to be edited in it, see dialect_text.h. Private to the dialect files:
// dialect_reader.cc has the reading, dialect_star.cc the forms of a star and of ALL, dialect_forms.cc those of expressions and
// FROM, dialect_pivot.cc PIVOT and UNPIVOT.
//
// Start at: DialectReader::Read. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/parse/dialect_text.h"
#include "compiler/parse/sql_scanner.h"

namespace tessera {

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
  kCollate,
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
  kReturning,
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

/// Words that are names wherever the grammar takes one.
inline bool IsName(Keyword k) {
  return k == Keyword::kNone || k == Keyword::kForeign || k == Keyword::kInterval || k == Keyword::kRename;
}

inline bool IsSetOperation(Keyword k) {
  return k == Keyword::kUnion || k == Keyword::kIntersect || k == Keyword::kExcept;
}

/// Words that end a clause before them.
inline bool BeginsClause(Keyword k) {
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
    case Keyword::kReturning:
      return true;
    default:
      return IsSetOperation(k);
  }
}

/// Words that a query begins with.
inline bool IsQueryWord(Keyword k) {
  return k == Keyword::kSelect || k == Keyword::kWith || k == Keyword::kValues || k == Keyword::kTable ||
         k == Keyword::kFrom;
}

/// Looks at each token once, with the tokens around it, and notes what is to be edited.
class DialectReader {
 public:
  DialectReader(std::string_view sql, const QueryRunner& run, DialectText* out) : sql_(sql), run_(run), out_(*out) {}

  Status Read();

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
    size_t with_at = kNothing;     ///< the WITH
    size_t with_comma = kNothing;  ///< the last comma between its queries
    size_t body = kNothing;        ///< what was begun
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
    bool tables = false;           ///< that is followed by tables
    size_t from_end = kNothing;    ///< the end of that clause
  };

  void Scan();

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
  std::string NameOf(const Lexeme& l) const;
  /// x'00ff', SQLite's and DuckDB's way to write bytes. False: it is no such text.
  bool ReadBytes();
  /// char(10) of SQLite, where no type can stand. False: it is no such call.
  bool ReadCharacter();
  Dialect::Mark* AddMark(Dialect::Mark::Kind kind, size_t position) {
    out_.dialect.marks.push_back({kind, static_cast<int>(position), {}, 0, 0});
    return &out_.dialect.marks.back();
  }
  void Replace(size_t begin, size_t end, std::string text) {
    out_.edits_.push_back({begin, end, std::move(text), 0, 0});
  }

  Status ReadFirstWords();
  /// dialect_forms.cc: INSERT OR ... and REPLACE. False: the statement is neither, or an OR that is not supported.
  bool ReadInsertOr();

  /// FROM (DESCRIBE ...) becomes FROM (SELECT * FROM (...) AS kDescribed), and SUMMARIZE likewise.
  void ReadDescribed();

  Status ReadToken();

  /// Whether a query may begin at the token being read, the first word of a query at its level.
  bool BeginsQuery() const;

  /// At the end of a query: no comma is left there, and one that begins with FROM gets its SELECT in front.
  void EndQuery();

  /// QUALIFY condition, which stands after WINDOW, becomes a window with an empty name.
  Status ReadQualify();
  void EndQualify();

  /// x == y; lists and structs.
  Status ReadSymbol();
  /// The parameters ?, which get the numbers $1, $2 and so on, ?2, which is $2, and $2 itself.
  Status ReadParameter();

  /// INTERVAL 7 DAY: the grammar takes a text only.
  void ReadInterval();

  // ---- IGNORE NULLS, samples

  /// IGNORE NULLS or RESPECT NULLS at the end of a call's arguments, or after the call.
  bool ReadNulls();

  /// A number, and % or PERCENT.
  bool IsPercent(size_t at) const;
  /// A number with a point. (The binder reads a 0 from the user's text, where an edit has no place of its own.)
  std::string TextOf(const Lexeme& l) const;

  /// A method and what it counts: the grammar knows percentages, the binder also rows.
  Status CheckSample(const std::string& method, bool percent, size_t at) const;
  bool IsRows(size_t at) const { return at < tokens_.size() && NameOf(tokens_[at]) == "rows"; }

  /// TABLESAMPLE 10%, 10 ROWS, BERNOULLI (10%), RESERVOIR (10 ROWS), which become SYSTEM (10) and so on.
  Status ReadTableSample();

  /// USING SAMPLE, which stands after the other clauses, moves after the only table of FROM as TABLESAMPLE.
  Status ReadUsingSample();

  /// Words that begin forms of other engines, or are names.
  Status ReadForeign();
  /// 0x1F, 0b101, 0o17 and 1_000.
  Status ReadNumber();
  /// count(*) FILTER (condition)
  void ReadFilter();
  /// LIMIT offset, count
  void ReadLimit();
  /// x GLOB 'a*' becomes x LIKE 'a*'. False if the word is a name.
  bool ReadGlob();
  /// UNION BY NAME gets an arm that says so.
  Status ReadSetOperation();
  /// ASOF JOIN becomes JOIN, with a condition that says so.
  void ReadAsOf();
  /// f(x)[1] becomes (f(x))[1], unnest([1, 2]) becomes unnest(ARRAY[1, 2]).
  bool ReadSubscript();
  /// Texts are ordered by their bytes, so that COLLATE "C" and pg_catalog.default are nothing.
  void ReadCollate();
  /// SET VARIABLE and RESET VARIABLE.
  void ReadVariable();
  /// dialect_pragma.cc: the statement becomes another. Errors: an unknown one.
  Status ReadPragma();
  /// dialect_macro.cc: CREATE MACRO and DROP MACRO; FUNCTION is the same word. Goes on to the body.
  Status ReadMacro();

  // ---- dialect_file.cc

  bool IsText(const Lexeme& l) const;
  /// Makes the text, token `at`, the argument of a call, and the name after it, if there is one, the second.
  void CallFile(size_t at);
  /// lake.t AT (VERSION => 3) becomes "\x07"('lake', 't', "version" => 3). False: AT is something else.
  bool ReadMoment();
  /// Whether tables follow the FROM being read.
  bool BeginsTables() const;
  /// At a text: the name of a file, if it stands where a table does.
  void ReadFileName();
  /// Lists and structs among the arguments of a function that reads files. True: the symbol is of one.
  bool ReadFileArgument();

  // ---- dialect_pivot.cc

  /// Tokens from one to the one after the last.
  struct Span {
    size_t begin = 0, end = 0;
    bool empty() const { return begin >= end; }
  };
  /// What is turned into columns, or what columns are turned into.
  struct Pivoted {
    Span expr;
    bool listed = false;                               ///< it has IN (...)
    std::vector<std::pair<Span, std::string>> values;  ///< of IN, and their names
    std::vector<std::string> found;                    ///< without IN: the values that rows have
    size_t count() const { return listed ? values.size() : found.size(); }
  };
  struct PivotParts {
    Span source, group;
    std::vector<Pivoted> on;
    std::vector<std::pair<Span, std::string>> aggregates;  ///< and their names, or ""
  };
  struct UnpivotParts {
    Span source;
    std::vector<Dialect::Name> columns;
    std::vector<std::string> shown;  ///< what stands in the column of names for each
    std::string name = "name", value = "value";
    bool nulls = false;
  };
  /// PIVOT t ON x USING sum(y), and UNPIVOT: as a query. False: the word is a name.
  Status ReadPivot(bool* read);
  Status ReadPivotStatement();
  Status ReadUnpivotStatement();
  /// The same after a table of FROM, in the form of the standard.
  Status ReadPivotOfTable();
  Status ReadUnpivotOfTable();
  Status FindValues(const std::string& source, std::vector<Pivoted>* on) const;
  Status ReadValues(Span list, Pivoted* on) const;
  Status AddPivot(const PivotParts& parts, size_t at);
  Status AddUnpivot(const UnpivotParts& parts, size_t at);
  /// The columns of UNPIVOT: names, or a star or COLUMNS(...), of `source`.
  Status ReadUnpivoted(Span list, const std::string& source, UnpivotParts* parts) const;
  /// The end of what begins at `at`: the first token outside of parentheses that is one of the words, or ends the query.
  size_t EndOf(size_t at, std::initializer_list<std::string_view> words) const;
  /// The parts between commas.
  std::vector<Span> Split(Span list) const;
  /// Takes AS name, or a name after a parenthesis, off the end.
  std::string TakeAlias(Span* span) const;
  Span ItemBefore(size_t at) const;
  std::string TextOf(Span span) const;
  std::string SourceText(Span source) const;
  /// WITH and the queries of it that may be named here.
  std::string VisibleWith() const;
  int PositionOf(size_t at) const { return static_cast<int>(tokens_[std::min(at, tokens_.size() - 1)].begin); }
  void Insert(size_t at, std::string text) { Replace(at, at, std::move(text)); }
  /// Puts the tokens there, too.
  void Copy(size_t at, Span span) {
    out_.edits_.push_back({at, at, "", tokens_[span.begin].begin, tokens_[span.end - 1].end});
  }

  /// The next token for ForeignForm.
  std::string Following() const;

  /// GROUP BY ALL and ORDER BY ALL. GROUP BY ALL a, b is the grammar's own.
  void ReadAll();

  /// RENAME (a AS b, ...), or RENAME a AS b.
  Status ReadRename(Dialect::Mark* mark);

  /// EXCLUDE, RENAME or REPLACE after a star. (a * exclude (b) is a product with a function.)
  Status ReadStar();

  const std::string_view sql_;
  const QueryRunner& run_;
  DialectText& out_;
  std::vector<Lexeme> tokens_;  ///< the last is an end
  std::vector<Level> levels_;
  size_t i_ = 0;              ///< of the token being read
  size_t unnumbered_ = 0;     ///< parameters ? until here
  bool numbered_ = false;     ///< there was a parameter with a number
  size_t file_call_end_ = 0;  ///< the token after a call that reads files; what is before it are its arguments
  size_t closed_ = kNothing;  ///< where the parentheses that were closed last begin
};

}  // namespace tessera
