// VACUUM INTO, EXPORT DATABASE, IMPORT DATABASE, ATTACH, DETACH, ALTER SCHEMA ... RENAME.

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>

#include "base/interruptible_io.h"
#include "base/lower_case.h"
#include "compiler/parse/script.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/schema_text.h"
#include "session/integrity_check.h"
#include "session/no_result.h"
#include "session/settings_scope.h"
#include "session/statements.h"
#include "session/transaction.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/files/file_descriptor.h"
#include "tablet/files/io_error.h"
#include "tablet/files/new_directory.h"
#include "tablet/values/row_batch.h"

namespace tessera {
namespace {

constexpr char kSchemaFile[] = "schema.sql", kLoadFile[] = "load.sql";

/// A transaction of several statements, if none is open: it is rolled back unless Commit() is called.
class WholeTransaction {
 public:
  explicit WholeTransaction(SessionState* state) : state_(state), is_own_(!state->transaction.is_open) {}
  ~WholeTransaction() {
    if (is_own_) RollBack(state_);
  }
  WholeTransaction(const WholeTransaction&) = delete;
  WholeTransaction& operator=(const WholeTransaction&) = delete;
  /// `begin`: which one.
  Status Begin(const char* begin) { return is_own_ ? Run(begin) : Status::Ok(); }
  Status Commit() {
    if (!is_own_) return Status::Ok();
    is_own_ = false;
    return Run("COMMIT");
  }

 private:
  Status Run(const char* command) {
    NoResult none;
    return RunTransactionCommand(state_, command, &none).status();
  }

  SessionState* const state_;
  bool is_own_;
};

Status VacuumInto(SessionState* state, const std::string& directory, ResultWriter* out) {
  if (state->transaction.is_open)
    return SqlError(ErrorKind::kActiveTransaction, "VACUUM cannot run inside a transaction block", -1,
                    "Enter COMMIT or ROLLBACK first.");
  TESSERA_TRY(state->database->CopyTo(directory));
  return out->Done("VACUUM");
}

/// Names of what is always there.
constexpr std::string_view kTaken[] = {"main",    "public",     "temp",   kTemporarySchema,
                                       "tessera", "pg_catalog", "system", "information_schema"};

Result<AttachedDatabases::Options> AttachOptions(const SessionState& state, const DatabaseCommand& command) {
  AttachedDatabases::Options options;
  options.is_sqlite = command.is_sqlite;
  options.is_lake = command.is_lake;
  options.data_path = command.data_path;
  options.moment.version = command.snapshot_version;
  if (!command.snapshot_time.empty()) {
    TESSERA_ASSIGN(const Value time,
                   ParseValue(command.snapshot_time, SqlType::Of(TypeId::kTimestampTz), state.settings.timezone));
    options.moment.time = time.i64;
  }
  if (options.moment.version && options.moment.time)
    return SqlError("ATTACH takes SNAPSHOT_VERSION or SNAPSHOT_TIME, not both");
  return options;
}

/// ATTACH and DETACH.
Status RunAttach(SessionState* state, const DatabaseCommand& command) {
  const bool attaches = command.kind == DatabaseCommand::Kind::kAttach;
  const std::string quoted = "\"" + command.name + "\"";
  if (state->transaction.is_open) {
    return SqlError(ErrorKind::kActiveTransaction,
                    std::string(attaches ? "ATTACH" : "DETACH") + " cannot run inside a transaction block", -1,
                    "Enter COMMIT or ROLLBACK first.");
  }
  const bool is_there = state->attached.Has(command.name);
  if (!attaches) {
    if (is_there) state->attached.Detach(command.name);
    return is_there || command.if_exists
               ? Status::Ok()
               : SqlError(ErrorKind::kUndefinedObject, "there is no attached database " + quoted, -1,
                          "SHOW DATABASES lists them.");
  }
  if (is_there && command.if_exists) return Status::Ok();
  if (is_there) {
    return SqlError(ErrorKind::kDuplicateObject, "a database is already attached as " + quoted, -1,
                    "Write ATTACH 'directory' AS another_name.");
  }
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, state->database->Read());
  if (std::ranges::count(kTaken, command.name) > 0 || std::ranges::count(snapshot->names.schemas, command.name) > 0) {
    return SqlError(ErrorKind::kDuplicateSchema,
                    "a database cannot be attached as " + quoted + ": a schema has that name", -1,
                    "Write ATTACH 'directory' AS another_name.");
  }
  TESSERA_ASSIGN(const AttachedDatabases::Options options, AttachOptions(*state, command));
  TESSERA_TRY(state->attached.Attach(command.directory, command.name, options, state->engine->files()));
  state->attached.SetLockTimeout(static_cast<int>(state->settings.lock_timeout));
  return Status::Ok();
}

/// How the files of rows end that COPY writes with these options.
std::string EndOfFiles(std::string_view options) {
  for (Token t = NextToken(options, 0); t.kind != Token::Kind::kEnd; t = NextToken(options, t.end)) {
    const std::string word = LowerCase(options.substr(t.begin, t.end - t.begin));
    if (word == "parquet" || word == "arrow") return "." + word;
  }
  return ".csv";
}

/// A file name for the rows of a table: its own as far as any file system has such names, and unlike the others.
std::string FileOf(const std::string& table, const std::string& end, std::set<std::string>* taken) {
  constexpr size_t kMostBytes = 100;
  std::string name;
  for (const char c : table.substr(0, kMostBytes)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    name += plain ? c : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : '_';
  }
  std::string file = name + end;
  for (int i = 2; !taken->insert(file).second; ++i) file = fmt::format("{}_{}{}", name, i, end);
  return file;
}

/// The columns that COPY FROM takes.
std::string ColumnsOf(const TableSchema& schema) {
  std::string list;
  for (const ColumnSchema& column : schema.columns) {
    if (!column.generated_text) list += (list.empty() ? "" : ", ") + QuotedName(column.name);
  }
  return list;
}

Status Export(SessionState* state, const DatabaseCommand& command, const StatementRunner& run, ResultWriter* out) {
  TESSERA_ASSIGN(NewDirectory directory, NewDirectory::Make(command.directory));
  const SettingsScope scope(state);
  state->settings.device = DeviceChoice::kHost;  // a GPU's rows come in any order
  state->settings.timezone = nullptr;            // UTC: the files do not depend on the session
  // All tables are those of one moment.
  WholeTransaction transaction(state);
  TESSERA_TRY(transaction.Begin("BEGIN"));
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, SnapshotOf(state));
  const std::string options = command.options.empty() ? "FORMAT csv, HEADER true" : command.options;
  std::string schema, load, after;  // `after`: what needs the rows of all tables
  std::set<std::string> files;
  uint64_t rows = 0;
  NoResult none;
  for (const Sequence& sequence : snapshot->names.sequences) {
    if (!IsTemporaryName(sequence.name)) after += SetSequenceText(sequence);
  }
  for (const SchemaEntry& entry : WholeSchema(*snapshot)) {
    schema += entry.text;
    if (entry.table == nullptr) continue;
    const TableSchema& table = entry.table->schema;
    if (table.materialized) {
      if (table.materialized->populated) after += "REFRESH MATERIALIZED VIEW " + QuotedName(entry.name) + ";\n";
      continue;
    }
    for (const ForeignKey& key : table.foreign_keys) after += AddForeignKeyText(table, key);
    const std::string file = FileOf(ShownName(entry.name), EndOfFiles(options), &files);
    const std::string copy = fmt::format("COPY {} ({})", QuotedName(entry.name), ColumnsOf(table));
    TESSERA_TRY(run(fmt::format("{} TO {} ({})", copy, QuotedText(directory.path() + "/" + file), options), &none));
    rows += state->running.timing.rows;
    load += fmt::format("{} FROM {} ({});\n", copy, QuotedText(command.directory + "/" + file), options);
  }
  TESSERA_TRY(directory.WriteFile(kSchemaFile, schema));
  TESSERA_TRY(directory.WriteFile(kLoadFile, load + after));
  TESSERA_TRY(transaction.Commit());
  TESSERA_TRY(directory.Commit());
  state->running.timing.rows = rows;
  return out->Done("EXPORT DATABASE");
}

Result<std::string> ReadScript(const std::string& path) {
  const FileDescriptor file(OpenInterruptible(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return IoError("cannot open", path, errno);
  std::string text, piece(size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t bytes = ReadInterruptible(file.get(), piece.data(), piece.size());
    if (bytes < 0) return IoError("cannot read", path, errno);
    if (bytes == 0) return text;
    text.append(piece, 0, static_cast<size_t>(bytes));
  }
}

/// Such a directory may be a stranger's: statements that write files, or end the transaction, are not run.
bool MakesSchema(std::string_view sql) {
  static const std::set<std::string, std::less<>> words = {"create", "alter", "comment", "insert", "set", "select"};
  return words.contains(FirstWordOf(sql));
}

Status RunScript(const std::string& directory, const char* name, bool loads, const StatementRunner& run) {
  const std::string path = directory + "/" + name;
  TESSERA_ASSIGN(const std::string script, ReadScript(path));
  NoResult none;
  for (const StatementText& statement : SplitStatements(script)) {
    const auto runs = [&]() -> Status {
      if (!loads && !MakesSchema(statement.sql)) {
        return SqlError("IMPORT DATABASE does not run this statement", -1,
                        "Such a file has CREATE, ALTER, COMMENT, INSERT, SET and SELECT.");
      }
      const std::string word = FirstWordOf(statement.sql);
      if (!loads || word == "alter" || word == "refresh" || word == "select") return run(statement.sql, &none);
      TESSERA_ASSIGN(const std::string copy, CopyFromOther(statement.sql, directory));
      return run(copy, &none);
    };
    const Status status = runs();
    if (status.ok() || status.code() == ErrorCode::kCancelled) {
      TESSERA_TRY(status);
      continue;
    }
    return {status.kind(), fmt::format("\"{}\", line {}: {}", path, statement.line, status.message()), status.hint()};
  }
  return Status::Ok();
}

Status Import(SessionState* state, const std::string& directory, const StatementRunner& run, ResultWriter* out) {
  WholeTransaction transaction(state);
  TESSERA_TRY(transaction.Begin("BEGIN IMMEDIATE"));
  uint64_t rows = 0;
  const auto count = [&](std::string_view sql, ResultWriter* none) {
    state->running.timing.rows = 0;
    const Status status = run(sql, none);
    rows += state->running.timing.rows;
    return status;
  };
  TESSERA_TRY(RunScript(directory, kSchemaFile, false, run));
  TESSERA_TRY(RunScript(directory, kLoadFile, true, count));
  TESSERA_TRY(transaction.Commit());
  state->running.timing.rows = rows;
  return out->Done("IMPORT DATABASE");
}

/// Whether the text names something of the schema: a name, a point, another name.
bool NamesSchema(std::string_view text, const std::string& schema) {
  for (Token t = NextToken(text, 0); t.kind != Token::Kind::kEnd; t = NextToken(text, t.end)) {
    const std::string_view word = text.substr(t.begin, t.end - t.begin);
    const bool is_name = (t.kind == Token::Kind::kWord && LowerCase(word) == schema) ||
                         (t.kind == Token::Kind::kQuoted && word == "\"" + schema + "\"");
    Token next = NextToken(text, t.end);
    if (next.kind == Token::Kind::kSpace) next = NextToken(text, next.end);
    if (is_name && text.substr(next.begin, next.end - next.begin) == ".") return true;
  }
  return false;
}

/// Errors: a text that is kept names the schema, so that it would mean nothing any more.
Status CheckTexts(const Snapshot& snapshot, const std::string& schema) {
  const auto refused = [&](const std::string& what) {
    return Unsupported("ALTER SCHEMA ... RENAME of a schema that " + what + " names is not supported", -1,
                       "Drop it, and make it anew with the other name.");
  };
  for (const auto& view : snapshot.views) {
    if (NamesSchema(view->query, schema)) return refused("view " + QuotedName(view->name));
  }
  for (const auto& table : snapshot.tables) {
    const TableSchema& s = table->schema;
    if (s.materialized && (NamesSchema(s.materialized->text, schema) || SchemaOfName(s.name) == schema))
      return refused("materialized view " + QuotedName(s.name));
  }
  for (const Macro& macro : snapshot.macros) {
    if (NamesSchema(macro.definition, schema)) return refused("macro " + QuotedName(macro.name));
  }
  return {};
}

/// A new schema to which all moves that the old one has, in one transaction.
Status RenameSchema(SessionState* state, const DatabaseCommand& command, const StatementRunner& run,
                    ResultWriter* out) {
  const std::string old = QuotedName(command.name), renamed = QuotedName(command.new_name);
  WholeTransaction transaction(state);
  TESSERA_TRY(transaction.Begin("BEGIN"));
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, SnapshotOf(state));
  const CatalogNames& names = snapshot->names;
  if (std::ranges::count(kTaken, command.name) > 0)
    return SqlError(ErrorKind::kDependentObjects, "cannot rename schema \"" + command.name + "\"", -1,
                    "It is always there.");
  if (std::ranges::count(names.schemas, command.name) == 0)
    return SqlError(ErrorKind::kUndefinedSchema, "schema \"" + command.name + "\" does not exist");
  TESSERA_TRY(CheckTexts(*snapshot, command.name));
  const auto is_in = [&](std::string_view name) { return SchemaOfName(name) == command.name; };
  std::vector<std::string> statements = {"CREATE SCHEMA " + renamed};
  const auto move = [&](const char* kind, const std::string& name) {
    statements.push_back(fmt::format("ALTER {} {} SET SCHEMA {}", kind, QuotedName(name), renamed));
  };
  for (const Sequence& sequence : names.sequences) {
    if (sequence.table_id == 0 && is_in(sequence.name)) move("SEQUENCE", sequence.name);
  }
  for (const auto& table : snapshot->tables) {
    if (is_in(table->schema.name)) move("TABLE", table->schema.name);
  }
  for (const auto& view : snapshot->views) {
    if (is_in(view->name)) move("VIEW", view->name);
  }
  for (const Comment& comment : names.comments) {
    if (comment.kind == "schema" && comment.name == command.name)
      statements.push_back("COMMENT ON SCHEMA " + renamed + " IS " + QuotedText(comment.text));
  }
  statements.push_back("DROP SCHEMA " + old);
  NoResult none;
  for (const std::string& statement : statements) {
    // (A position would be one of another text than the user's.)
    if (const Status status = run(statement, &none); !status.ok())
      return {status.kind(), status.message(), status.hint()};
  }
  TESSERA_TRY(transaction.Commit());
  return out->Done("ALTER SCHEMA");
}

}  // namespace

Status RunDatabaseCommand(SessionState* state, const DatabaseCommand& command, const StatementRunner& run,
                          ResultWriter* out) {
  TESSERA_TRY(StoreWaiting(state));
  switch (command.kind) {
    case DatabaseCommand::Kind::kVacuumInto:
      return VacuumInto(state, command.directory, out);
    case DatabaseCommand::Kind::kExport:
      return Export(state, command, run, out);
    case DatabaseCommand::Kind::kImport:
      return Import(state, command.directory, run, out);
    case DatabaseCommand::Kind::kAttach:
    case DatabaseCommand::Kind::kDetach:
      TESSERA_TRY(RunAttach(state, command));
      return out->Done(command.kind == DatabaseCommand::Kind::kAttach ? "ATTACH" : "DETACH");
    case DatabaseCommand::Kind::kCheck:
      return CheckIntegrity(state, command, out);
    case DatabaseCommand::Kind::kRenameSchema:
      return RenameSchema(state, command, run, out);
    case DatabaseCommand::Kind::kNone:
      break;
  }
  return {ErrorCode::kInternal, "no statement about the database"};
}

}  // namespace tessera
