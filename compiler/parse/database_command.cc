#include "compiler/parse/database_command.h"

#include <algorithm>
#include <charconv>

#include "base/lower_case.h"
#include "compiler/parse/sql_scanner.h"

namespace tessera {
namespace {

using Kind = DatabaseCommand::Kind;

/// The tokens of a statement without blanks.
class Tokens {
 public:
  explicit Tokens(std::string_view sql) : sql_(sql) { Next(); }

  const Token& token() const { return token_; }
  std::string_view text() const { return sql_.substr(token_.begin, token_.end - token_.begin); }
  bool AtEnd() const { return token_.kind == Token::Kind::kEnd; }
  void Next() {
    do {
      token_ = NextToken(sql_, token_.end);
    } while ((token_.kind == Token::Kind::kSpace && token_.closed) ||
             (token_.kind == Token::Kind::kSymbol && text() == ";"));
  }
  bool Is(std::string_view word) const {
    const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
    return (token_.kind == Token::Kind::kWord || token_.kind == Token::Kind::kSymbol) &&
           std::ranges::equal(text(), word, same);
  }
  bool Take(std::string_view word) {
    const bool found = Is(word);
    if (found) Next();
    return found;
  }
  bool IsText() const { return token_.kind == Token::Kind::kQuoted && token_.closed && text().front() == '\''; }
  /// The text of a literal, or the name in double quotes.
  std::string Unquoted() const {
    std::string out;
    for (size_t i = 1; i + 1 < text().size(); ++i) {
      out += text()[i];
      if (text()[i] == text().front()) ++i;
    }
    return out;
  }
  Status Unexpected(const char* hint) const {
    if (AtEnd()) return SqlError("syntax error at end of input", static_cast<int>(sql_.size()), hint);
    return SqlError("syntax error at or near \"" + std::string(text()) + "\"", static_cast<int>(token_.begin), hint);
  }

 private:
  const std::string_view sql_;
  Token token_;
};

/// What stands between parentheses, which are balanced.
Result<std::string> TakeOptions(std::string_view sql, Tokens* tokens, const char* hint) {
  const size_t begin = tokens->token().end;
  for (int depth = 0; !tokens->AtEnd(); tokens->Next()) {
    depth += tokens->Is("(") ? 1 : tokens->Is(")") ? -1 : 0;
    if (depth > 0) continue;
    const size_t end = tokens->token().begin;
    tokens->Next();
    return std::string(sql.substr(begin, end - begin));
  }
  return tokens->Unexpected(hint);
}

constexpr char kAttachHint[] =
    "Write ATTACH 'directory' AS name (READ_ONLY), of an SQLite file (TYPE sqlite), of a DuckLake catalog "
    "'ducklake:sqlite:FILE'.";

/// What is called so, if there is a name.
Result<std::string> TakeName(Tokens* tokens, const char* hint) {
  std::string name;
  if (tokens->token().kind == Token::Kind::kWord) {
    name = LowerCase(tokens->text());
  } else if (tokens->token().kind == Token::Kind::kQuoted && tokens->token().closed && tokens->text().front() == '"') {
    name = tokens->Unquoted();
  }
  if (name.empty()) return tokens->Unexpected(hint);
  tokens->Next();
  return name;
}

/// The last part of a path as far as it is a name that needs no quotes: my.db is my.
std::string NameOfDirectory(std::string_view directory) {
  while (directory.ends_with('/')) directory.remove_suffix(1);
  directory.remove_prefix(std::min(directory.size(), directory.rfind('/') + 1));
  std::string name = LowerCase(directory.substr(0, directory.find('.')));
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  const bool good = !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::ranges::all_of(name, plain);
  return good ? name : std::string();
}

constexpr char kLakePrefix[] = "ducklake:", kSqlitePrefix[] = "sqlite:";

/// DATA_PATH 'folder' and the like, of a DuckLake catalog. False: it is no such option.
Result<bool> TakeLakeOption(Tokens* tokens, DatabaseCommand* command) {
  constexpr char kHint[] = "Write DATA_PATH 'folder', SNAPSHOT_VERSION 3 or SNAPSHOT_TIME '2026-01-31 12:00:00'.";
  // (What a writer would do is nothing to a reader.)
  constexpr std::string_view kOfWriters[] = {"create_if_not_exists", "data_inlining_row_limit", "override_data_path"};
  const bool is_path = tokens->Take("data_path"), is_time = !is_path && tokens->Take("snapshot_time");
  if (is_path || is_time) {
    if (!tokens->IsText()) return tokens->Unexpected(kHint);
    (is_path ? command->data_path : command->snapshot_time) = tokens->Unquoted();
    tokens->Next();
    return true;
  }
  if (tokens->Take("snapshot_version")) {
    const std::string_view text = tokens->text();
    int64_t version = 0;
    if (tokens->token().kind != Token::Kind::kNumber ||
        std::from_chars(text.data(), text.data() + text.size(), version).ptr != text.data() + text.size())
      return tokens->Unexpected(kHint);
    command->snapshot_version = version;
    tokens->Next();
    return true;
  }
  const bool of_writers = std::ranges::any_of(kOfWriters, [&](std::string_view word) { return tokens->Take(word); });
  const bool has_value = tokens->Is("true") || tokens->Is("false") || tokens->token().kind == Token::Kind::kNumber;
  if (of_writers && has_value) tokens->Next();
  return of_writers;
}

/// TYPE says of whom it is.
Status TakeAttachType(Tokens* tokens, int position, DatabaseCommand* command) {
  command->is_sqlite = tokens->Is("sqlite");
  command->is_lake = command->is_lake || tokens->Is("ducklake");
  if (!command->is_sqlite && !tokens->Is("ducklake") && !tokens->Is("tessera")) {
    return Unsupported(
        "ATTACH of another kind of database is not supported", position,
        "Types are tessera, sqlite and ducklake; SELECT * FROM 'file' reads CSV, Parquet, Arrow and JSON files.");
  }
  tokens->Next();
  return {};
}

/// (READ_ONLY): what an attached database always is.
Status TakeAttachOptions(Tokens* tokens, DatabaseCommand* command) {
  if (!tokens->Take("(")) return {};
  int lake_at = -1;  // where the first option of a lake is
  do {
    const auto position = static_cast<int>(tokens->token().begin);
    if (tokens->Take("type")) {
      TESSERA_TRY(TakeAttachType(tokens, position, command));
      continue;
    }
    TESSERA_ASSIGN(const bool of_lake, TakeLakeOption(tokens, command));
    if (of_lake) {
      lake_at = lake_at < 0 ? position : lake_at;
      continue;
    }
    const bool reads = tokens->Take("read_only"), writes = !reads && tokens->Take("read_write");
    if (!reads && !writes) return tokens->Unexpected(kAttachHint);
    const bool is_true = !tokens->Is("false") && !tokens->Is("off");
    if (reads != is_true) {
      return Unsupported("ATTACH for writing is not supported", position,
                         "Leave out the option: the database can be read.");
    }
    if (tokens->Is("true") || tokens->Is("on") || !is_true) tokens->Next();
  } while (tokens->Take(","));
  if (lake_at >= 0 && !command->is_lake) {
    return SqlError("this is an option of a DuckLake catalog", lake_at,
                    "Write ATTACH 'ducklake:sqlite:FILE' AS name (DATA_PATH 'folder').");
  }
  return tokens->Take(")") ? Status::Ok() : tokens->Unexpected(kAttachHint);
}

/// Takes what stands before the name of a file off it: ducklake:sqlite:file, as in DuckDB.
void TakePrefixes(DatabaseCommand* command) {
  std::string& name = command->directory;
  if (!name.starts_with(kLakePrefix)) {
    command->is_lake = name.ends_with(".ducklake");
    return;
  }
  command->is_lake = true;
  name.erase(0, sizeof kLakePrefix - 1);
  if (name.starts_with(kSqlitePrefix)) name.erase(0, sizeof kSqlitePrefix - 1);
}

/// What follows ATTACH.
Result<DatabaseCommand> ReadAttach(Tokens* tokens) {
  DatabaseCommand command;
  command.kind = Kind::kAttach;
  (void)tokens->Take("database");
  if (tokens->Take("if")) {
    if (!tokens->Take("not") || !tokens->Take("exists")) return tokens->Unexpected(kAttachHint);
    command.if_exists = true;
  }
  if (!tokens->IsText()) return tokens->Unexpected(kAttachHint);
  command.directory = tokens->Unquoted();
  TakePrefixes(&command);
  if (command.directory.empty()) return SqlError("the name of a directory is empty", -1, kAttachHint);
  tokens->Next();
  if (tokens->Take("as")) {
    TESSERA_ASSIGN(command.name, TakeName(tokens, kAttachHint));
  } else {
    command.name = NameOfDirectory(command.directory);
    if (command.name.empty()) return SqlError("the directory's name is no name of a database", -1, kAttachHint);
  }
  TESSERA_TRY(TakeAttachOptions(tokens, &command));
  if (!tokens->AtEnd()) return tokens->Unexpected(kAttachHint);
  return command;
}

/// What follows DETACH.
Result<DatabaseCommand> ReadDetach(Tokens* tokens) {
  constexpr char kHint[] = "Write DETACH name.";
  DatabaseCommand command;
  command.kind = Kind::kDetach;
  (void)tokens->Take("database");
  if (tokens->Take("if")) {
    if (!tokens->Take("exists")) return tokens->Unexpected(kHint);
    command.if_exists = true;
  }
  TESSERA_ASSIGN(command.name, TakeName(tokens, kHint));
  if (!tokens->AtEnd()) return tokens->Unexpected(kHint);
  return command;
}

/// PRAGMA integrity_check, also with a number of rows or a table; another PRAGMA is none of these statements.
Result<DatabaseCommand> ReadCheck(Tokens* tokens) {
  constexpr char kHint[] = "Write PRAGMA integrity_check, integrity_check(10) or integrity_check('table').";
  DatabaseCommand command;
  command.quick = tokens->Is("quick_check");
  if (!tokens->Take("integrity_check") && !tokens->Take("quick_check")) return DatabaseCommand();
  command.kind = Kind::kCheck;
  const bool in_parentheses = tokens->Take("(");
  if (in_parentheses || tokens->Take("=")) {
    const std::string_view text = tokens->text();
    if (tokens->token().kind == Token::Kind::kNumber) {
      if (std::from_chars(text.data(), text.data() + text.size(), command.limit).ptr != text.data() + text.size() ||
          command.limit < 1)
        return tokens->Unexpected(kHint);
      tokens->Next();
    } else if (tokens->IsText()) {
      command.table = tokens->Unquoted();
      tokens->Next();
    } else {
      TESSERA_ASSIGN(command.table, TakeName(tokens, kHint));
    }
    if (in_parentheses && !tokens->Take(")")) return tokens->Unexpected(kHint);
  }
  if (!tokens->AtEnd()) return tokens->Unexpected(kHint);
  return command;
}

/// ALTER SCHEMA ... RENAME TO; another ALTER is none of these statements.
Result<DatabaseCommand> ReadRenameSchema(Tokens* tokens) {
  constexpr char kHint[] = "Write ALTER SCHEMA name RENAME TO other_name.";
  DatabaseCommand command;
  if (!tokens->Take("schema")) return command;
  TESSERA_ASSIGN(command.name, TakeName(tokens, kHint));
  if (!tokens->Take("rename")) return DatabaseCommand();
  command.kind = Kind::kRenameSchema;
  if (!tokens->Take("to")) return tokens->Unexpected(kHint);
  TESSERA_ASSIGN(command.new_name, TakeName(tokens, kHint));
  if (!tokens->AtEnd()) return tokens->Unexpected(kHint);
  return command;
}

}  // namespace

Result<DatabaseCommand> ReadDatabaseCommand(std::string_view sql) {
  DatabaseCommand command;
  Tokens tokens(sql);
  const char* hint = "";
  if (tokens.Take("alter")) return ReadRenameSchema(&tokens);
  if (tokens.Take("pragma")) return ReadCheck(&tokens);
  if (tokens.Take("attach")) return ReadAttach(&tokens);
  if (tokens.Take("detach")) return ReadDetach(&tokens);
  if (tokens.Take("vacuum")) {
    // (SQLite takes the name of a database.)
    if (!tokens.Is("into")) (void)tokens.Take("main");
    if (!tokens.Take("into")) return command;
    command.kind = Kind::kVacuumInto;
    hint = "Write VACUUM INTO 'directory'.";
  } else if (tokens.Take("export")) {
    command.kind = Kind::kExport;
    hint = "Write EXPORT DATABASE 'directory', or EXPORT DATABASE 'directory' (DELIMITER '|').";
    if (!tokens.Take("database")) return tokens.Unexpected(hint);
  } else if (tokens.Take("import")) {
    if (!tokens.Take("database")) return command;  // IMPORT FOREIGN SCHEMA
    command.kind = Kind::kImport;
    hint = "Write IMPORT DATABASE 'directory'.";
  } else {
    return command;
  }
  if (!tokens.IsText()) return tokens.Unexpected(hint);
  command.directory = tokens.Unquoted();
  if (command.directory.empty()) return SqlError("the name of a directory is empty", -1, hint);
  tokens.Next();
  if (command.kind == Kind::kExport && tokens.Is("(")) {
    TESSERA_ASSIGN(command.options, TakeOptions(sql, &tokens, hint));
  }
  if (!tokens.AtEnd()) return tokens.Unexpected(hint);
  return command;
}

Result<std::string> CopyFromOther(std::string_view sql, const std::string& directory) {
  const char* const hint = "Such a file has statements of the form COPY t FROM 'file' (...), ALTER and REFRESH.";
  Tokens tokens(sql);
  if (!tokens.Take("copy")) return tokens.Unexpected(hint);
  for (int depth = 0; depth > 0 || !tokens.Is("from"); tokens.Next()) {
    // (A query stands in parentheses, a list of columns after the table.)
    if (tokens.AtEnd() || (depth == 0 && tokens.Is("to"))) return tokens.Unexpected(hint);
    depth += tokens.Is("(") ? 1 : tokens.Is(")") ? -1 : 0;
  }
  tokens.Next();
  if (!tokens.IsText()) return tokens.Unexpected(hint);
  std::string file = tokens.Unquoted();
  if (const size_t slash = file.find_last_of("/\\"); slash != std::string::npos) file.erase(0, slash + 1);
  std::string out(sql.substr(0, tokens.token().begin));
  out += '\'';
  for (const char c : directory + "/" + file) {
    if (c == '\'') out += '\'';
    out += c;
  }
  out += '\'';
  return out.append(sql.substr(tokens.token().end));
}

std::string FirstWordOf(std::string_view sql) {
  const Tokens tokens(sql);
  if (tokens.token().kind != Token::Kind::kWord) return "";
  std::string word(tokens.text());
  std::ranges::transform(word, word.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return word;
}

}  // namespace tessera
