// Files in FROM: FROM 'a.csv' becomes FROM "\x06"('a.csv'), a call, and 'a.db'.t the call with 'a.db' and 't'. In the
// arguments of read_csv and its kin the lists ['a', 'b'] and structs {'a': 'b'} become ARRAY['a', 'b'], which the binder reads
// as it is told by the argument's name. lake.t AT (VERSION => 3) becomes a call, too.
#include <string>

#include "compiler/parse/dialect_reader.h"

namespace tessera {

bool DialectReader::IsText(const Lexeme& l) const { return l.kind == Token::Kind::kQuoted && sql_[l.begin] != '"'; }

void DialectReader::CallFile(size_t at) {
  const Lexeme& file = tokens_[at];
  Insert(file.begin, "\"" + std::string(kFileCall) + "\"(");
  const bool has_table = tokens_[at + 1].symbol == '.' && IsName(tokens_[at + 2], sql_);
  if (!has_table) return Insert(file.end, ")");
  std::string argument = ", '";
  for (const char c : NameOf(tokens_[at + 2])) argument.append(c == '\'' ? 2 : 1, c);
  Replace(tokens_[at + 1].begin, tokens_[at + 2].end, argument + "')");
}

bool DialectReader::ReadMoment() {
  const std::string unit = At(1).symbol == '(' ? NameOf(At(2)) : std::string();
  const bool is_moment = (unit == "version" || unit == "timestamp") && At(3).symbol == '=' && At(4).symbol == '>';
  if (!is_moment || !IsName(At(-1), sql_)) return false;
  // An alias stands before AT, as in DuckDB, or after the moment.
  size_t last = i_ - 1, alias = kNothing;
  if (last >= 3 && tokens_[last - 1].symbol != '.') {
    const size_t name = last - (NameOf(tokens_[last - 1]) == "as" ? 2 : 1);
    if (tokens_[name - 1].symbol == '.' && IsName(tokens_[name], sql_)) {
      alias = last;
      last = name;
    }
  }
  size_t first = last;
  while (first >= 2 && tokens_[first - 1].symbol == '.' && IsName(tokens_[first - 2], sql_)) first -= 2;
  std::string call = "\"" + std::string(kMomentCall) + "\"(";
  for (size_t at = first; at <= last; at += 2) {
    call += "'";
    for (const char c : NameOf(tokens_[at])) call.append(c == '\'' ? 2 : 1, c);
    call += "', ";
  }
  Replace(tokens_[first].begin, At(2).end, call + "\"" + unit + "\"");
  size_t close = i_ + 2;
  for (int depth = 1; depth > 0 && tokens_[close].kind != Token::Kind::kEnd; ++close)
    depth += tokens_[close].symbol == '(' ? 1 : tokens_[close].symbol == ')' ? -1 : 0;
  if (alias != kNothing) {
    const Lexeme& a = tokens_[alias];
    Insert(tokens_[close - 1].end, " AS " + std::string(sql_.substr(a.begin, a.end - a.begin)));
  }
  return true;
}

bool DialectReader::BeginsTables() const {
  const Level& level = levels_.back();
  const std::string first = NameOf(tokens_[0]);
  return level.begun || level.from_first == i_ || (levels_.size() == 1 && first == "update");
}

void DialectReader::ReadFileName() {
  const Level& level = levels_.back();
  const Lexeme& before = At(-1);
  bool is_table = level.tables && level.from + 1 == i_;  // (IS DISTINCT FROM is another one)
  const bool in_tables = level.tables && level.from_end == kNothing;
  if (in_tables && (before.symbol == ',' || NameOf(before) == "join")) is_table = true;
  if (levels_.size() == 1 && NameOf(before) == "using") {
    const std::string first = NameOf(tokens_[0]);
    is_table = first == "merge" || first == "delete";
  }
  if (is_table) CallFile(i_);
}

bool DialectReader::ReadFileArgument() {
  if (i_ >= file_call_end_) {
    const std::string name = At(0).symbol == '(' ? NameOf(At(-1)) : std::string();
    if (!name.starts_with("read_") && name != "parquet_scan") return false;
    int depth = 1;
    size_t at = i_ + 1;
    for (; depth > 0 && tokens_[at].kind != Token::Kind::kEnd; ++at)
      depth += tokens_[at].symbol == '(' ? 1 : tokens_[at].symbol == ')' ? -1 : 0;
    file_call_end_ = at;
    return false;
  }
  const Lexeme& t = At(0);
  if (t.symbol == '[') Insert(t.begin, "ARRAY");
  if (t.symbol == '{') Replace(t.begin, t.end, "ARRAY[");
  if (t.symbol == '}') Replace(t.begin, t.end, "]");
  if (t.symbol == ':' && At(1).symbol != '=' && At(1).symbol != ':' && At(-1).symbol != ':')
    Replace(t.begin, t.end, ",");
  return t.symbol == '[' || t.symbol == '{' || t.symbol == '}';
}

}  // namespace tessera
