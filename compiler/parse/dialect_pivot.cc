// PIVOT and UNPIVOT become queries. The columns that PIVOT makes of values that are not listed are those of the rows, so a
// query asks for them before the statement is compiled; so do a star and COLUMNS of UNPIVOT.
//
//   PIVOT t ON x USING sum(y)       SELECT * EXCLUDE (x, y), sum(y) FILTER (WHERE x = 'a') AS "a", ... FROM t GROUP BY ALL
//   UNPIVOT t ON a, b               SELECT * EXCLUDE (a, b), CASE n WHEN 1 THEN 'a' ... END AS name, v AS value
//                                   FROM t, unnest(ARRAY[a, b]) WITH ORDINALITY AS u (v, n) WHERE v IS NOT NULL
#include <algorithm>
#include <string>
#include <utility>

#include "compiler/parse/dialect_reader.h"

namespace tessera {
namespace {

/// Columns that one PIVOT may make.
constexpr size_t kMostColumns = 4096;

constexpr const char *kUnpivoted = "\x06", *kUnpivotedValue = "\x06v", *kUnpivotedNumber = "\x06n";

std::string Quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    out += c;
    if (c == quote) out += c;
  }
  return out + quote;
}
std::string Name(std::string_view text) { return Quoted(text, '"'); }

/// Words after a table of FROM that are no alias.
constexpr std::string_view kBehindTables[] = {"join",    "left", "right",      "inner",       "full",  "cross",
                                              "natural", "on",   "using",      "asof",        "pivot", "unpivot",
                                              "semi",    "anti", "positional", "tablesample", "then"};

}  // namespace

size_t DialectReader::EndOf(size_t at, std::initializer_list<std::string_view> words) const {
  int depth = 0;
  for (; tokens_[at].kind != Token::Kind::kEnd; ++at) {
    const Lexeme& l = tokens_[at];
    if (l.symbol == '(' || l.symbol == '[') ++depth;
    if ((l.symbol == ')' || l.symbol == ']') && --depth < 0) return at;
    if (depth > 0) continue;
    if (l.symbol == ';' || IsSetOperation(l.keyword)) return at;
    const bool ends = l.keyword == Keyword::kOrder || l.keyword == Keyword::kLimit || l.keyword == Keyword::kOffset ||
                      l.keyword == Keyword::kFetch || l.keyword == Keyword::kWhere || l.keyword == Keyword::kQualify;
    if (ends) return at;
    if (l.kind == Token::Kind::kWord && std::find(words.begin(), words.end(), NameOf(l)) != words.end()) return at;
  }
  return at;
}

std::vector<DialectReader::Span> DialectReader::Split(Span list) const {
  std::vector<Span> parts;
  int depth = 0;
  size_t begin = list.begin;
  for (size_t at = list.begin; at < list.end; ++at) {
    const char c = tokens_[at].symbol;
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c != ',' || depth > 0) continue;
    parts.push_back({begin, at});
    begin = at + 1;
  }
  if (begin < list.end) parts.push_back({begin, list.end});
  return parts;
}

std::string DialectReader::TextOf(Span span) const {
  if (span.empty()) return {};
  const size_t begin = tokens_[span.begin].begin;
  return std::string(sql_.substr(begin, tokens_[span.end - 1].end - begin));
}

/// A name of its own for a derived table without one.
std::string DialectReader::SourceText(Span source) const {
  const bool unnamed = tokens_[source.end - 1].symbol == ')' && tokens_[source.begin].symbol == '(';
  return TextOf(source) + (unnamed ? " AS " + Name(kNoAlias) : "");
}

std::string DialectReader::TakeAlias(Span* span) const {
  if (span->end - span->begin < 2) return {};
  const Lexeme &last = tokens_[span->end - 1], &before = tokens_[span->end - 2];
  const bool quoted = last.kind == Token::Kind::kQuoted && sql_[last.begin] == '\'';
  if (!IsName(last, sql_) && !quoted) return {};
  const bool as = before.keyword == Keyword::kAs;
  if (!as && (before.symbol != ')' || quoted)) return {};
  span->end -= as ? 2 : 1;
  return quoted ? std::string(sql_.substr(last.begin + 1, last.end - last.begin - 2)) : NameOf(last);
}

std::string DialectReader::VisibleWith() const {
  std::string text;
  for (const Level& level : levels_) {
    if (!level.with) continue;
    const size_t end = level.begun ? level.body : &level == &levels_.back() ? i_ : level.with_comma;
    if (end == kNothing || end <= level.with_at) continue;
    const Span span = {level.with_at + (text.empty() ? 0 : 1), end};
    text += (text.empty() ? "" : ", ") + TextOf(span);
  }
  return text.empty() ? text : text + " ";
}

// ---- PIVOT

Status DialectReader::ReadPivot(bool* read) {
  const bool unpivot = NameOf(At(0)) == "unpivot";
  const Level& level = levels_.back();
  const bool nulls =
      unpivot && (NameOf(At(1)) == "include" || NameOf(At(1)) == "exclude") && At(2).keyword == Keyword::kNulls;
  const char next = At(nulls ? 3 : 1).symbol;
  *read = true;
  if (At(-1).symbol == ')' && closed_ != kNothing && closed_ > 0 && level.from != kNothing) {
    const size_t before = closed_ - 1 - (tokens_[closed_ - 1].keyword == Keyword::kNulls ? 2 : 0);
    const std::string word = NameOf(tokens_[before]);
    if (word == "pivot" || word == "unpivot") {
      return Unsupported("PIVOT and UNPIVOT after each other are not supported", PositionOf(i_),
                         "Put the first one into parentheses: FROM (FROM t PIVOT (...)) UNPIVOT (...).");
    }
  }
  if (level.from != kNothing && level.from_end == kNothing && EndsOperand(At(-1)) && next == '(')
    return unpivot ? ReadUnpivotOfTable() : ReadPivotOfTable();
  const bool source = next == '(' || IsName(At(1), sql_);
  if (!level.begun && source && BeginsQuery()) return unpivot ? ReadUnpivotStatement() : ReadPivotStatement();
  *read = false;
  return {};
}

Status DialectReader::ReadPivotStatement() {
  const size_t begin = i_;
  PivotParts parts;
  size_t at = EndOf(begin + 1, {"on", "using", "group", "join"});
  parts.source = {begin + 1, at};
  if (NameOf(tokens_[at]) == "join") {
    return Unsupported("PIVOT of a join is not supported", PositionOf(at),
                       "Write PIVOT (SELECT ... FROM a JOIN b ...) ON x.");
  }
  if (NameOf(tokens_[at]) == "on") {
    const size_t end = EndOf(at + 1, {"using", "group"});
    for (Span item : Split({at + 1, end})) {
      Pivoted on;
      const size_t in = EndOf(item.begin, {"in"});
      on.expr = {item.begin, std::min(in, item.end)};
      if (on.expr.empty())
        return SqlError(ErrorKind::kSyntax, "PIVOT takes an expression after ON", PositionOf(item.begin));
      if (in < item.end) {
        if (tokens_[in + 1].symbol != '(')
          return Unsupported("PIVOT ... IN of anything but a list is not supported", PositionOf(in + 1));
        on.listed = true;
        TESSERA_TRY(ReadValues({in + 2, item.end - 1}, &on));
      }
      parts.on.push_back(std::move(on));
    }
    at = end;
  }
  if (NameOf(tokens_[at]) == "using") {
    const size_t end = EndOf(at + 1, {"group"});
    for (Span item : Split({at + 1, end})) {
      std::string alias = TakeAlias(&item);
      parts.aggregates.emplace_back(item, std::move(alias));
    }
    at = end;
  }
  if (NameOf(tokens_[at]) == "group" && tokens_[at + 1].keyword == Keyword::kBy) {
    const size_t end = EndOf(at + 2, {});
    parts.group = {at + 2, end};
    at = end;
  }
  if (parts.source.empty() || (parts.on.empty() && parts.aggregates.empty()) || at == begin) {
    return SqlError(ErrorKind::kSyntax, "PIVOT takes a table, ON and USING", PositionOf(begin),
                    "Write PIVOT t ON x USING sum(y) GROUP BY z, or PIVOT t ON x IN ('a', 'b') USING sum(y).");
  }
  TESSERA_TRY(FindValues(SourceText(parts.source), &parts.on));
  const size_t place = tokens_[begin].begin;
  TESSERA_TRY(AddPivot(parts, place));
  Insert(place, " FROM ");
  Copy(place, parts.source);
  if (SourceText(parts.source) != TextOf(parts.source)) Insert(place, "AS " + Name(kNoAlias));
  AddMark(Dialect::Mark::Kind::kAll, place);
  Replace(place, tokens_[at - 1].end, " GROUP BY \"all\" ");
  Level& level = levels_.back();
  if (!level.begun) level.body = begin;
  level.begun = true;
  return {};
}

/// The select list.
Status DialectReader::AddPivot(const PivotParts& parts, size_t at) {
  Insert(at, "SELECT ");
  if (!parts.group.empty()) {
    Copy(at, parts.group);
  } else {
    Dialect::Mark& star = *AddMark(Dialect::Mark::Kind::kStar, at);
    star.lenient = true;
    std::vector<Span> used;
    for (const Pivoted& on : parts.on) used.push_back(on.expr);
    for (const auto& [span, name] : parts.aggregates) used.push_back(span);
    for (const Span& span : used) {
      for (size_t t = span.begin; t < span.end; ++t) {
        const char next = t + 1 < tokens_.size() ? tokens_[t + 1].symbol : 0;
        if (IsName(tokens_[t], sql_) && next != '(' && next != '.')
          star.excluded.push_back({NameOf(tokens_[t]), PositionOf(t)});
      }
    }
    Insert(at, "*");
  }
  size_t columns = std::max<size_t>(1, parts.aggregates.size());
  for (const Pivoted& on : parts.on) columns *= on.count();
  if (columns > kMostColumns)
    return Unsupported("PIVOT to more than " + std::to_string(kMostColumns) + " columns is not supported",
                       static_cast<int>(at));
  std::vector<size_t> choice(parts.on.size());
  const bool none = std::any_of(parts.on.begin(), parts.on.end(), [](const Pivoted& on) { return on.count() == 0; });
  while (!none) {
    for (size_t a = 0; a < std::max<size_t>(1, parts.aggregates.size()); ++a) {
      std::string name;
      Insert(at, ", ");
      if (parts.aggregates.empty()) {
        Insert(at, "count(*)");
      } else {
        Copy(at, parts.aggregates[a].first);
      }
      for (size_t i = 0; i < parts.on.size(); ++i) {
        const Pivoted& on = parts.on[i];
        Insert(at, i == 0 ? "FILTER (WHERE (" : " AND (");
        Copy(at, on.expr);
        if (on.listed) {
          Insert(at, ") = (");
          Copy(at, on.values[choice[i]].first);
          Insert(at, ")");
        } else {
          Insert(at, ") = " + Quoted(on.found[choice[i]], '\''));
        }
        name += (i == 0 ? "" : "_") + (on.listed ? on.values[choice[i]].second : on.found[choice[i]]);
      }
      if (!parts.on.empty()) Insert(at, ")");
      const std::string alias = parts.aggregates.empty() ? "" : parts.aggregates[a].second;
      if (parts.aggregates.size() > 1 || !alias.empty() || name.empty()) {
        const std::string shown =
            alias.empty() && !parts.aggregates.empty() ? TextOf(parts.aggregates[a].first) : alias;
        name += (parts.on.empty() ? "" : "_") + shown;
      }
      Insert(at, " AS " + Name(name));
    }
    size_t i = parts.on.size();
    while (i > 0 && ++choice[i - 1] == parts.on[i - 1].count()) choice[--i] = 0;
    if (i == 0) break;
  }
  return {};
}

Status DialectReader::FindValues(const std::string& source, std::vector<Pivoted>* on) const {
  for (Pivoted& p : *on) {
    if (p.listed) continue;
    if (!run_) {
      return Unsupported("PIVOT without a list of values is not supported here", PositionOf(p.expr.begin),
                         "Write ON x IN ('a', 'b').");
    }
    Result<std::vector<std::string>> values =
        run_(VisibleWith() + "SELECT CAST(\"\x06v\" AS VARCHAR) FROM (SELECT DISTINCT (" + TextOf(p.expr) +
             ") AS \"\x06v\" FROM " + source + ") AS \"\x06\" WHERE \"\x06v\" IS NOT NULL ORDER BY \"\x06v\"");
    if (!values.ok()) {
      return Status(values.status().kind(), values.status().message() + " (in the query for the values of PIVOT)",
                    values.status().hint())
          .At(PositionOf(p.expr.begin));
    }
    p.found = std::move(values).value();
  }
  return {};
}

Status DialectReader::ReadValues(Span list, Pivoted* on) const {
  for (Span item : Split(list)) {
    std::string name = TakeAlias(&item);
    const Lexeme& first = tokens_[item.begin];
    const bool text = item.end - item.begin == 1 && first.kind == Token::Kind::kQuoted && sql_[first.begin] == '\'';
    if (name.empty() && text) {
      for (size_t i = first.begin + 1; i + 1 < first.end; ++i) {
        name += sql_[i];
        if (sql_[i] == '\'') ++i;  // doubled
      }
    }
    if (name.empty()) name = TextOf(item);
    if (item.empty()) return SqlError(ErrorKind::kSyntax, "PIVOT takes a list of values", PositionOf(list.begin));
    on->values.emplace_back(item, std::move(name));
  }
  if (on->values.empty()) return SqlError(ErrorKind::kSyntax, "PIVOT takes a list of values", PositionOf(list.begin));
  return {};
}

/// The table of FROM that ends before the token.
DialectReader::Span DialectReader::ItemBefore(size_t at) const {
  int depth = 0;
  size_t begin = at;
  for (; begin > 0; --begin) {
    const Lexeme& l = tokens_[begin - 1];
    if (l.symbol == ')') ++depth;
    if (l.symbol == '(' && --depth < 0) break;
    if (depth > 0) continue;
    if (l.keyword == Keyword::kFrom || l.symbol == ',' || NameOf(l) == "join") break;
  }
  return {begin, at};
}

/// FROM t PIVOT (sum(y) FOR x IN ('a', 'b') GROUP BY z)
Status DialectReader::ReadPivotOfTable() {
  PivotParts parts;
  const size_t begin = i_;
  const size_t close = EndOf(begin + 2, {});
  parts.source = ItemBefore(begin);
  size_t at = EndOf(begin + 2, {"for"});
  for (Span item : Split({begin + 2, at})) {
    std::string alias = TakeAlias(&item);
    parts.aggregates.emplace_back(item, std::move(alias));
  }
  const auto wrong = [&](size_t where) {
    return SqlError(ErrorKind::kSyntax, "PIVOT takes aggregates, FOR and lists of values", PositionOf(where),
                    "Write FROM t PIVOT (sum(y) FOR x IN ('a', 'b')).");
  };
  if (tokens_[close].symbol != ')' || NameOf(tokens_[at]) != "for" || parts.aggregates.empty()) return wrong(at);
  ++at;
  while (at < close && NameOf(tokens_[at]) != "group") {
    Pivoted on;
    const size_t in = EndOf(at, {"in"});
    if (in == at || NameOf(tokens_[in]) != "in" || tokens_[in + 1].symbol != '(') return wrong(in);
    on.expr = {at, in};
    on.listed = true;
    const size_t end = EndOf(in + 2, {});
    TESSERA_TRY(ReadValues({in + 2, end}, &on));
    parts.on.push_back(std::move(on));
    at = end + 1;
  }
  if (at < close && tokens_[at + 1].keyword == Keyword::kBy) parts.group = {at + 2, close};
  const size_t place = tokens_[parts.source.begin].begin;
  Insert(place, "(");
  TESSERA_TRY(AddPivot(parts, place));
  Insert(place, " FROM ");
  const Lexeme& next = tokens_[close + 1];
  const bool named = next.keyword == Keyword::kAs || (IsName(next, sql_) && tessera::IsName(next.keyword) &&
                                                      std::find(std::begin(kBehindTables), std::end(kBehindTables),
                                                                NameOf(next)) == std::end(kBehindTables));
  AddMark(Dialect::Mark::Kind::kAll, tokens_[begin].begin);
  Replace(tokens_[begin].begin, tokens_[close].end, " GROUP BY \"all\")" + (named ? "" : " AS " + Name(kNoAlias)));
  i_ = close;
  closed_ = begin + 1;
  return {};
}

// ---- UNPIVOT

Status DialectReader::ReadUnpivoted(Span list, const std::string& source, UnpivotParts* parts) const {
  for (Span item : Split(list)) {
    std::string alias = TakeAlias(&item);
    const Lexeme& first = tokens_[item.begin];
    const bool columns = NameOf(first) == "columns" && item.end - item.begin > 1;
    if (first.symbol == '*' || columns) {
      if (!run_)
        return Unsupported("UNPIVOT of a star is not supported here", PositionOf(item.begin), "Name the columns.");
      Result<std::vector<std::string>> names =
          run_("DESCRIBE " + VisibleWith() + "SELECT " + TextOf(item) + " FROM " + source);
      if (!names.ok()) return names.status().At(PositionOf(item.begin));
      for (std::string& name : *names) {
        parts->columns.push_back({name, PositionOf(item.begin)});
        parts->shown.push_back(std::move(name));
      }
      continue;
    }
    if (item.end - item.begin != 1 || !IsName(first, sql_)) {
      return Unsupported("UNPIVOT of anything but names of columns is not supported", PositionOf(item.begin),
                         "Write UNPIVOT t ON a, b, or UNPIVOT t ON COLUMNS(* EXCLUDE c).");
    }
    parts->columns.push_back({NameOf(first), PositionOf(item.begin)});
    parts->shown.push_back(alias.empty() ? NameOf(first) : alias);
  }
  if (parts->columns.empty()) return SqlError(ErrorKind::kSyntax, "UNPIVOT takes columns", PositionOf(list.begin));
  return {};
}

/// SELECT * EXCLUDE (...), name, value FROM
Status DialectReader::AddUnpivot(const UnpivotParts& parts, size_t at) {
  Dialect::Mark& star = *AddMark(Dialect::Mark::Kind::kStar, at);
  star.excluded = parts.columns;
  for (const char* hidden : {kUnpivotedValue, kUnpivotedNumber})
    star.excluded.push_back({hidden, static_cast<int>(at)});
  std::string text = "SELECT *, CASE " + Name(kUnpivotedNumber);
  for (size_t i = 0; i < parts.shown.size(); ++i)
    text += " WHEN " + std::to_string(i + 1) + " THEN " + Quoted(parts.shown[i], '\'');
  Insert(at,
         text + " END AS " + Name(parts.name) + ", " + Name(kUnpivotedValue) + " AS " + Name(parts.value) + " FROM ");
  return {};
}

namespace {

/// What follows the table.
std::string UnpivotedRows(const std::vector<Dialect::Name>& columns, bool nulls) {
  std::string text = ", unnest(ARRAY[";
  for (size_t i = 0; i < columns.size(); ++i) text += (i == 0 ? "" : ", ") + Name(columns[i].text);
  text += std::string("]) WITH ORDINALITY AS ") + Name(kUnpivoted) + "(" + Name(kUnpivotedValue) + ", " +
          Name(kUnpivotedNumber) + ")";
  return nulls ? text : text + " WHERE " + Name(kUnpivotedValue) + " IS NOT NULL";
}

}  // namespace

Status DialectReader::ReadUnpivotStatement() {
  const size_t begin = i_;
  UnpivotParts parts;
  const bool said = At(2).keyword == Keyword::kNulls;
  parts.nulls = said && NameOf(At(1)) == "include";
  size_t at = EndOf(begin + (said ? 3 : 1), {"on", "join"});
  parts.source = {begin + (said ? 3 : 1), at};
  if (NameOf(tokens_[at]) != "on" || parts.source.empty()) {
    return SqlError(ErrorKind::kSyntax, "UNPIVOT takes a table and ON", PositionOf(at),
                    "Write UNPIVOT t ON a, b INTO NAME n VALUE v.");
  }
  const size_t end = EndOf(at + 1, {"into"});
  TESSERA_TRY(ReadUnpivoted({at + 1, end}, SourceText(parts.source), &parts));
  at = end;
  if (NameOf(tokens_[at]) == "into") {
    const auto is = [&](size_t k, std::string_view word) { return k < tokens_.size() && NameOf(tokens_[k]) == word; };
    if (!is(at + 1, "name") || !is(at + 3, "value") || !IsName(tokens_[at + 2], sql_) || !IsName(tokens_[at + 4], sql_))
      return SqlError(ErrorKind::kSyntax, "INTO of UNPIVOT takes two names", PositionOf(at),
                      "Write INTO NAME n VALUE v.");
    parts.name = NameOf(tokens_[at + 2]);
    parts.value = NameOf(tokens_[at + 4]);
    at += 5;
    if (tokens_[at].symbol == ',')
      return Unsupported("UNPIVOT into several columns of values is not supported", PositionOf(at));
  }
  const size_t place = tokens_[begin].begin;
  TESSERA_TRY(AddUnpivot(parts, place));
  Copy(place, parts.source);
  if (SourceText(parts.source) != TextOf(parts.source)) Insert(place, "AS " + Name(kNoAlias));
  Replace(place, tokens_[at - 1].end, UnpivotedRows(parts.columns, parts.nulls));
  Level& level = levels_.back();
  if (!level.begun) level.body = begin;
  level.begun = true;
  return {};
}

/// FROM t UNPIVOT [INCLUDE NULLS] (v FOR k IN (a, b))
Status DialectReader::ReadUnpivotOfTable() {
  const size_t begin = i_;
  UnpivotParts parts;
  const bool said = At(2).keyword == Keyword::kNulls;
  parts.nulls = said && NameOf(At(1)) == "include";
  const size_t open = begin + (said ? 3 : 1);
  const size_t close = EndOf(open + 1, {});
  parts.source = ItemBefore(begin);
  const auto token = [&](size_t k) -> const Lexeme& { return tokens_[std::min(k, tokens_.size() - 1)]; };
  if (tokens_[close].symbol != ')' || !IsName(token(open + 1), sql_) || NameOf(token(open + 2)) != "for" ||
      !IsName(token(open + 3), sql_) || NameOf(token(open + 4)) != "in" || token(open + 5).symbol != '(' ||
      EndOf(open + 6, {}) + 1 != close) {
    return SqlError(ErrorKind::kSyntax, "UNPIVOT takes the name of a column of values, of one of names, and columns",
                    PositionOf(open), "Write FROM t UNPIVOT (v FOR k IN (a, b)).");
  }
  parts.value = NameOf(tokens_[open + 1]);
  parts.name = NameOf(tokens_[open + 3]);
  TESSERA_TRY(ReadUnpivoted({open + 6, close - 1}, SourceText(parts.source), &parts));
  const size_t place = tokens_[parts.source.begin].begin;
  Insert(place, "(");
  TESSERA_TRY(AddUnpivot(parts, place));
  const Lexeme& next = tokens_[close + 1];
  const bool named = next.keyword == Keyword::kAs || (IsName(next, sql_) && tessera::IsName(next.keyword) &&
                                                      std::find(std::begin(kBehindTables), std::end(kBehindTables),
                                                                NameOf(next)) == std::end(kBehindTables));
  Replace(tokens_[begin].begin, tokens_[close].end,
          UnpivotedRows(parts.columns, parts.nulls) + ")" + (named ? "" : " AS " + Name(kNoAlias)));
  i_ = close;
  closed_ = open;
  return {};
}

}  // namespace tessera
