// EXCLUDE, RENAME and REPLACE of a star; GROUP BY ALL and ORDER BY ALL.
#include "compiler/parse/dialect_reader.h"

namespace tessera {

void DialectReader::ReadAll() {
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

Status DialectReader::ReadRename(Dialect::Mark* mark) {
  const size_t begin = At(0).begin;
  const bool list = At(1).symbol == '(';
  if (list) ++i_;
  const auto expect = [&](bool is) {
    return is ? Status::Ok()
              : SqlError(ErrorKind::kSyntax, "RENAME takes names of columns and new names",
                         static_cast<int>(At(0).begin), "Write * RENAME (a AS b).");
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

Status DialectReader::ReadStar() {
  size_t star = i_ - 1;
  bool columns = false;  // in COLUMNS(...)
  const Lexeme& before = star > 0 ? tokens_[star - 1] : tokens_.back();
  if (before.symbol == '.') {
    while (star >= 2 && tokens_[star - 1].symbol == '.' && IsName(tokens_[star - 2], sql_)) star -= 2;
    columns = star > 1 && tokens_[star - 1].symbol == '(' && NameOf(tokens_[star - 2]) == "columns";
    if (columns) star -= 2;
  } else if (before.symbol == '(' && star > 1 && NameOf(tokens_[star - 2]) == "columns") {
    star -= 2;  // the mark is that of the call
    columns = true;
  } else if (before.symbol != ',' && before.keyword != Keyword::kSelect && before.keyword != Keyword::kDistinct &&
             before.keyword != Keyword::kAll && before.keyword != Keyword::kReturning) {
    return {};
  }
  if (columns && At(0).keyword != Keyword::kExclude) {
    return Unsupported("RENAME and REPLACE in COLUMNS are not supported", static_cast<int>(At(0).begin),
                       "COLUMNS(* EXCLUDE (a, b)) is.");
  }
  Dialect::Mark& mark = *AddMark(Dialect::Mark::Kind::kStar, tokens_[star].begin);
  if (At(0).keyword == Keyword::kExclude) {
    const size_t begin = At(0).begin;
    const bool list = At(1).symbol == '(';
    if (list) ++i_;
    const auto expect = [&](bool is) {
      return is ? Status::Ok()
                : SqlError(ErrorKind::kSyntax, "EXCLUDE takes names of columns", static_cast<int>(At(0).begin),
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
  // REPLACE (x AS a, ...): what is in the parentheses becomes outputs after the star.
  if (At(1).symbol != '(' || At(2).symbol == ')') {
    return SqlError(ErrorKind::kSyntax, "REPLACE takes expressions and names of columns", static_cast<int>(At(1).begin),
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
}  // namespace tessera
