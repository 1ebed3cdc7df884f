#include "shell/completion.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/lower_case.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/schema_text.h"
#include "compiler/query/type_rules.h"
#include "session/settings.h"
#include "shell/other_shells.h"
#include "shell/result_text.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// Those that people type; not all that the grammar knows.
constexpr std::string_view kKeywords[] = {
    "ADD",          "ALL",
    "ALTER",        "ANALYZE",
    "AND",          "AS",
    "ASC",          "BEGIN",
    "BETWEEN",      "BIGINT",
    "BOOLEAN",      "BY",
    "CASE",         "CAST",
    "CHECK",        "COLUMN",
    "COMMENT",      "COMMIT",
    "CONFLICT",     "CONSTRAINT",
    "COPY",         "CREATE",
    "CROSS",        "CUBE",
    "CURRENT_DATE", "CURRENT_TIMESTAMP",
    "DATABASE",     "DATE",
    "DECIMAL",      "DEFAULT",
    "DELETE",       "DESC",
    "DESCRIBE",     "DISTINCT",
    "DO",           "DOUBLE",
    "DROP",         "ELSE",
    "END",          "EXCEPT",
    "EXECUTE",      "EXISTS",
    "EXPLAIN",      "EXPORT",
    "EXTRACT",      "FALSE",
    "FETCH",        "FILTER",
    "FIRST",        "FOREIGN",
    "FROM",         "FULL",
    "FUNCTION",     "GENERATED",
    "GROUP",        "GROUPING",
    "HAVING",       "IF",
    "ILIKE",        "IMPORT",
    "IN",           "INDEX",
    "INNER",        "INSERT",
    "INTEGER",      "INTERSECT",
    "INTERVAL",     "INTO",
    "IS",           "JOIN",
    "KEY",          "LAST",
    "LATERAL",      "LEFT",
    "LIKE",         "LIMIT",
    "MACRO",        "MATCHED",
    "MATERIALIZED", "MERGE",
    "NATURAL",      "NOT",
    "NOTHING",      "NULL",
    "NULLS",        "OFFSET",
    "ON",           "OR",
    "ORDER",        "OUTER",
    "OVER",         "PARTITION",
    "PIVOT",        "PRAGMA",
    "PREPARE",      "PRIMARY",
    "QUALIFY",      "RECURSIVE",
    "REFERENCES",   "REFRESH",
    "RELEASE",      "RENAME",
    "REPLACE",      "RESET",
    "RETURNING",    "RIGHT",
    "ROLLBACK",     "ROLLUP",
    "ROW",          "ROWS",
    "SAVEPOINT",    "SCHEMA",
    "SELECT",       "SEQUENCE",
    "SET",          "SETS",
    "SHOW",         "SUMMARIZE",
    "TABLE",        "TABLES",
    "TEMP",         "TEXT",
    "THEN",         "TIMESTAMP",
    "TO",           "TRANSACTION",
    "TRUE",         "TRUNCATE",
    "UNION",        "UNIQUE",
    "UNNEST",       "UPDATE",
    "USING",        "VACUUM",
    "VALUES",       "VARCHAR",
    "VIEW",         "WHEN",
    "WHERE",        "WINDOW",
    "WITH",
};
/// Words that tables follow.
constexpr std::string_view kBeforeTables[] = {"copy",  "describe", "from",   "into",   "join", "refresh",
                                              "table", "truncate", "update", "vacuum", "view"};
/// Dot commands and psql's commands that take files, and those that take tables.
constexpr std::string_view kOfFiles[] = {".backup", ".cd", ".import", ".once", ".open", ".output",   ".read",
                                         ".save",   "\\c", "\\cd",    "\\i",   "\\ir",  "\\include", "\\o"};
constexpr std::string_view kOfTables[] = {".describe", ".dump", ".import", ".indexes", ".schema", ".tables",
                                          "\\d",       "\\d+",  "\\di",    "\\dt",     "\\dv"};

bool Contains(const auto& words, std::string_view word) { return std::ranges::find(words, word) != std::end(words); }

bool IsOfWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0; }

/// Collects the candidates that begin with what is typed, in any case.
class Offer {
 public:
  explicit Offer(std::string_view typed) : typed_(LowerCase(typed)) {}

  void Add(std::string_view candidate) {
    if (LowerCase(candidate).starts_with(typed_)) found_.candidates.emplace_back(candidate);
  }
  /// A name of SQL, in quotes if it needs them.
  void AddName(std::string_view name) {
    const std::string quoted = QuotedName(name);
    if (LowerCase(name).starts_with(typed_) || LowerCase(quoted).starts_with(typed_))
      found_.candidates.push_back(quoted);
  }
  /// `after`: what follows, if it is the only one.
  Completion Take(size_t begin, std::string_view after = " ") {
    std::ranges::sort(found_.candidates);
    const auto repeated = std::ranges::unique(found_.candidates);
    found_.candidates.erase(repeated.begin(), repeated.end());
    found_.begin = begin;
    if (found_.candidates.size() == 1 && !found_.candidates[0].ends_with('(') && !found_.candidates[0].ends_with('.'))
      found_.candidates[0] += after;
    return std::move(found_);
  }

 private:
  const std::string typed_;
  Completion found_;
};

Completion CompleteFile(std::string_view typed, size_t begin, std::string_view after) {
  namespace fs = std::filesystem;
  const size_t slash = typed.rfind('/');
  const std::string folder(slash == std::string_view::npos ? std::string_view() : typed.substr(0, slash + 1));
  const std::string_view name = typed.substr(folder.size());
  Completion found{begin, {}};
  std::error_code error;
  bool is_folder = false;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end; !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().string();
    if (!file.starts_with(name) || (file.starts_with('.') && name.empty())) continue;
    std::error_code unknown;
    is_folder = at->is_directory(unknown);
    found.candidates.push_back(folder + file + (is_folder ? "/" : ""));
  }
  std::ranges::sort(found.candidates);
  if (found.candidates.size() == 1 && !is_folder) found.candidates[0] += after;
  return found;
}

void OfferTables(const Snapshot* snapshot, Offer* offer) {
  if (snapshot == nullptr) return;
  const auto add = [&](const std::string& name) {
    const std::string_view schema = SchemaOfName(name);
    if (schema.empty() || schema == kTemporarySchema) {
      offer->AddName(BaseName(name));
    } else {
      offer->Add(QuotedName(name));
    }
  };
  for (const auto& table : snapshot->tables) add(table->schema.name);
  for (const auto& view : snapshot->views) add(view->name);
}

/// The columns of tables and views by the names of these.
std::multimap<std::string, std::string> ColumnsByTable(const Snapshot* snapshot) {
  std::multimap<std::string, std::string> columns;
  if (snapshot == nullptr) return columns;
  for (const auto& table : snapshot->tables) {
    for (const ColumnSchema& column : table->schema.columns)
      columns.emplace(LowerCase(BaseName(table->schema.name)), column.name);
  }
  for (const auto& view : snapshot->views) {
    for (const ViewColumn& column : view->columns) columns.emplace(LowerCase(BaseName(view->name)), column.name);
  }
  return columns;
}

/// What is known of a statement before the word that is completed.
struct Context {
  std::string first, last;      ///< words in lower case; last: also a symbol
  std::string qualifier;        ///< x of "x.", in lower case
  const char* quote = nullptr;  ///< the text ends within this one
  size_t quoted = 0;            ///< where that begins
  std::vector<std::string> tables;
  std::map<std::string, std::string> table_of;  ///< by the names that the statement gives them
};

Context Look(std::string_view text, const std::multimap<std::string, std::string>& columns) {
  Context context;
  std::string table, before_last;  // `table`: the last token, if it is one, or AS after it
  for (Token t = NextToken(text, 0); t.kind != Token::Kind::kEnd; t = NextToken(text, t.end)) {
    if (!t.closed) {
      context.quote = text[t.begin] == '\'' ? "'" : text[t.begin] == '"' ? "\"" : "";
      context.quoted = t.begin + 1;
      return context;
    }
    if (t.kind == Token::Kind::kSpace) continue;
    const std::string word = LowerCase(text.substr(t.begin, t.end - t.begin));
    if (word == ";") {
      context = {};
      continue;
    }
    if (context.first.empty()) context.first = word;
    const bool is_name = t.kind == Token::Kind::kWord || (t.kind == Token::Kind::kQuoted && word[0] == '"');
    const std::string name = is_name && word[0] == '"' ? word.substr(1, word.size() - 2) : word;
    if (is_name && !table.empty() && word != "as") context.table_of[name] = table;
    if (!(word == "as" && !table.empty())) table.clear();
    if (is_name && columns.contains(name)) {
      context.tables.push_back(name);
      context.table_of[name] = table = name;
    }
    before_last = std::exchange(context.last, word);
  }
  if (context.last == "." && IsOfWord(before_last.empty() ? '.' : before_last.back())) context.qualifier = before_last;
  return context;
}

Completion CompleteCommand(const CompletionNames& names, std::string_view line) {
  const size_t blank = line.find_last_of(" \t");
  if (blank == std::string_view::npos) {
    Offer offer(line);
    for (const std::string& command : names.dot_commands) offer.Add("." + command);
    for (const BackslashCommand& command : BackslashCommands()) {
      if (command.kind != Habit::Kind::kNone && line[0] == '\\' && (line.size() < 2 || command.name[0] == line[1]))
        offer.Add("\\" + std::string(command.name));
    }
    return offer.Take(0);
  }
  const std::string_view command = line.substr(0, line.find_first_of(" \t"));
  const size_t begin = blank + 1;
  const std::string_view typed = line.substr(begin);
  Offer offer(typed);
  const bool is_second = line.find_first_not_of(" \t", command.size()) < begin;
  if (Contains(kOfFiles, command) && !(command == ".import" && is_second)) return CompleteFile(typed, begin, " ");
  if (Contains(kOfTables, command)) OfferTables(names.snapshot.get(), &offer);
  if (command == ".mode") {
    for (const std::string& format : ResultFormatWords()) offer.Add(format);
  }
  if (command == ".help") {
    for (const std::string& other : names.dot_commands) offer.Add(other);
  }
  return offer.Take(begin);
}

void OfferKeywords(std::string_view typed, Offer* offer) {
  const bool lower = !typed.empty() && std::islower(static_cast<unsigned char>(typed[0])) != 0;
  for (const std::string_view keyword : kKeywords) offer->Add(lower ? LowerCase(keyword) : std::string(keyword));
}

}  // namespace

Completion Complete(const CompletionNames& names, std::string_view before, std::string_view line) {
  if (before.empty() && !line.empty() && (line[0] == '.' || line[0] == '\\')) return CompleteCommand(names, line);
  size_t begin = line.size();
  while (begin > 0 && IsOfWord(line[begin - 1])) --begin;
  const std::string_view typed = line.substr(begin);
  const std::string text = std::string(before) + std::string(line.substr(0, begin));
  const auto columns = ColumnsByTable(names.snapshot.get());
  Context context = Look(text, columns);
  if (context.quote != nullptr) {
    if (*context.quote != '\'' || context.quoted < before.size()) return {};
    const size_t quoted = context.quoted - before.size();
    return CompleteFile(line.substr(quoted), quoted, "'");
  }
  Offer offer(typed);
  if (!context.qualifier.empty()) {
    const auto at = context.table_of.find(context.qualifier);
    const std::string& table = at == context.table_of.end() ? context.qualifier : at->second;
    for (auto [column, end] = columns.equal_range(table); column != end; ++column) offer.AddName(column->second);
    if (names.snapshot != nullptr) {
      for (const auto& of_schema : names.snapshot->tables) {
        if (LowerCase(SchemaOfName(of_schema->schema.name)) == context.qualifier)
          offer.AddName(BaseName(of_schema->schema.name));
      }
    }
    return offer.Take(begin);
  }
  if ((context.first == "set" || context.first == "reset" || context.first == "show") &&
      (context.last == context.first || context.last == "session" || context.last == "local")) {
    for (const Setting& setting : AllSettings()) offer.Add(setting.name);
    return offer.Take(begin);
  }
  OfferKeywords(typed, &offer);
  if (context.last.empty()) return offer.Take(begin);
  OfferTables(names.snapshot.get(), &offer);
  if (Contains(kBeforeTables, context.last)) return offer.Take(begin);
  for (const auto& [table, column] : columns) {
    if (context.tables.empty() || Contains(context.tables, table)) offer.AddName(column);
  }
  if (!typed.empty()) {
    for (const std::string_view name : FunctionNames()) offer.Add(std::string(name) + "(");
  }
  return offer.Take(begin);
}

}  // namespace tessera
