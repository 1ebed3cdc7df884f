// The dot commands that look into the database: .tables, .schema, .indexes, .list, .describe, .dump, .databases, .memory, .status.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "base/memory_budget.h"
#include "base/version.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/schema_text.h"
#include "compiler/query/type_rules.h"
#include "session/no_result.h"
#include "shell/dot_commands.h"
#include "shell/statistics_text.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// LIKE's % and _, or the shell's * and ?: whichever people are used to.
bool Matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '%' || pattern[0] == '*') {
    for (size_t i = 0; i <= name.size(); ++i) {
      if (Matches(pattern.substr(1), name.substr(i))) return true;
    }
    return false;
  }
  return !name.empty() && (pattern[0] == '_' || pattern[0] == '?' || pattern[0] == name[0]) &&
         Matches(pattern.substr(1), name.substr(1));
}

/// "VmRSS" or "VmHWM" of this process in bytes; 0 if the system does not tell.
uint64_t ProcessMemory(const std::string& what) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(what + ":", 0) == 0) return std::strtoull(line.c_str() + what.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

/// A pattern with * or ?, or LIKE's, as LIKE takes it.
std::string LikePattern(std::string pattern) {
  for (char& c : pattern) c = c == '*' ? '%' : c == '?' ? '_' : c;
  return QuotedText(pattern);
}

bool IsPattern(std::string_view text) { return text.find_first_of("*?%") != std::string_view::npos; }

struct ListKind {
  const char* name;
  const char* query;  ///< without its WHERE, if that is only about the name
  const char* column;
};
constexpr ListKind kLists[] = {
    {"relations",
     "SELECT table_schema AS schema, table_name AS name, lower(table_type) AS type FROM information_schema.tables "
     "WHERE true",
     "table_name"},
    {"tables",
     "SELECT table_schema AS schema, table_name AS name FROM information_schema.tables WHERE table_type <> 'VIEW'",
     "table_name"},
    {"views", "SELECT table_schema AS schema, table_name AS name FROM information_schema.views WHERE true",
     "table_name"},
    {"matviews", "SELECT schemaname AS schema, matviewname AS name FROM pg_matviews WHERE true", "matviewname"},
    {"schemas", "SELECT schema_name AS name FROM information_schema.schemata WHERE true", "schema_name"},
    {"sequences",
     "SELECT sequence_schema AS schema, sequence_name AS name FROM information_schema.sequences WHERE true",
     "sequence_name"},
    {"types", "SELECT t.typname AS name FROM pg_type t WHERE t.typtype = 'e'", "t.typname"},
    {"roles", "SELECT rolname AS name, rolsuper AS superuser, rolcanlogin AS login FROM pg_roles WHERE true",
     "rolname"},
    {"grants",
     "SELECT n.nspname AS schema, c.relname AS name, c.relacl AS grants FROM pg_class c, pg_namespace n WHERE n.oid = "
     "c.relnamespace AND c.relkind IN ('r', 'm')",
     "c.relname"},
};

/// The columns into which rows are put: not those that are computed.
std::string InsertedColumns(const TableSchema& schema) {
  std::string list;
  for (const ColumnSchema& column : schema.columns) {
    if (!column.generated_text) list += (list.empty() ? "" : ", ") + QuotedName(column.name);
  }
  return list;
}

bool AlwaysMakesItsOwn(const Sequences& sequences, const TableInfo& table) {
  for (const Sequence& sequence : sequences) {
    if (sequence.table_id == table.id && sequence.identity == Sequence::Identity::kAlways) return true;
  }
  return false;
}

/// Keeps the first column of a result.
class FirstColumn final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&& batch) override {
    for (size_t row = 0; row < batch.rows; ++row) AppendText(batch.columns[0], row, &texts.emplace_back());
    return Status::Ok();
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }

  std::vector<std::string> texts;
};

}  // namespace

Status DotCommands::Memory(const Arguments&) {
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, shell_.session->local()->Tables());
  std::string out = fmt::format("process: {} now, {} at most\n", BytesText(static_cast<double>(ProcessMemory("VmRSS"))),
                                BytesText(static_cast<double>(ProcessMemory("VmHWM"))));
  for (const std::shared_ptr<const TableInfo>& table : snapshot->tables) {
    uint64_t bytes = 0;
    for (const ColumnStatistics& column : table->statistics) bytes += column.encoded_bytes;
    out += fmt::format("table {}: {} rows, {} in {} tablets\n", ShownName(table->schema.name), table->rows,
                       BytesText(static_cast<double>(bytes)), table->tablets.size());
  }
  const std::string gpu = shell_.session->local()->GpuMemoryDescription();
  if (!gpu.empty()) out += "gpu: " + gpu + "\n";
  return Print(out);
}

Result<std::vector<std::string>> DotCommands::Texts(std::string_view query) {
  FirstColumn rows;
  TESSERA_TRY(shell_.session->Execute(query, &rows));
  return std::move(rows.texts);
}

Status DotCommands::ServerSchema(const Arguments& arguments) {
  std::string query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL";
  if (!arguments.empty()) query += " AND tbl_name LIKE " + LikePattern(arguments[0]);
  TESSERA_ASSIGN(const std::vector<std::string> statements, Texts(query));
  std::string out;
  for (const std::string& statement : statements) out += statement + ";\n";
  if (!out.empty() || arguments.empty()) return Print(out);
  return SqlError("table \"" + arguments[0] + "\" does not exist", -1, ".tables lists the tables.");
}

Status DotCommands::ServerTables(const Arguments& arguments) {
  TESSERA_ASSIGN(
      const std::vector<std::string> names,
      Texts("SELECT CASE WHEN table_schema IN ('public', 'main') THEN table_name ELSE table_schema || '.' || "
            "table_name END FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', "
            "'information_schema') ORDER BY 1"));
  std::string out;
  for (const std::string& name : names) {
    if (arguments.empty() || Matches(arguments[0], name)) out += name + "\n";
  }
  return Print(out);
}

Status DotCommands::Schema(const Arguments& arguments) {
  if (shell_.session->local() == nullptr) return ServerSchema(arguments);
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, shell_.session->local()->Tables());
  // A name with its schema or alone.
  const auto is_asked = [&](const std::string& name) {
    return arguments.empty() || Matches(arguments[0], BaseName(name)) || Matches(arguments[0], ShownName(name));
  };
  std::string out;
  std::vector<std::string_view> names;
  std::vector<const TableInfo*> tables, materialized;
  for (const std::shared_ptr<const TableInfo>& table : snapshot->tables) {
    const TableSchema& schema = table->schema;
    const size_t of_schema = SchemaOfName(schema.name).size();
    names.push_back(std::string_view(schema.name).substr(of_schema > 0 ? of_schema + 1 : 0));
    if (schema.materialized) {
      materialized.push_back(table.get());
    } else if (is_asked(schema.name)) {
      tables.push_back(table.get());
    }
  }
  for (const std::string& schema : snapshot->names.schemas) {
    if (arguments.empty()) out += "CREATE SCHEMA " + QuotedName(schema) + ";\n";
  }
  for (const Sequence& sequence : snapshot->names.sequences) {
    if (sequence.table_id == 0 && is_asked(sequence.name)) out += CreateSequenceText(sequence);
  }
  out += CreateTablesText(std::move(tables), snapshot->names);
  const std::vector<SchemaEntry> entries =
      InOrderOfUse(snapshot->views, materialized, snapshot->macros, snapshot->names);
  for (const SchemaEntry& entry : entries) {
    names.emplace_back(entry.name);
    if (is_asked(entry.name)) out += entry.text;
  }
  if (out.empty() && !arguments.empty()) {
    const std::string nearest = NearestName(arguments[0], names);
    return SqlError("table \"" + arguments[0] + "\" does not exist", -1,
                    nearest.empty() ? ".tables lists the tables." : "Perhaps you meant table \"" + nearest + "\".");
  }
  return Print(out);
}

Status DotCommands::Tables(const Arguments& arguments) {
  if (shell_.session->local() == nullptr) return ServerTables(arguments);
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, shell_.session->local()->Tables());
  std::set<std::string> names;
  for (const std::shared_ptr<const TableInfo>& table : snapshot->tables) names.insert(ShownName(table->schema.name));
  for (const std::shared_ptr<const ViewSchema>& view : snapshot->views) names.insert(ShownName(view->name));
  std::string out;
  for (const std::string& name : names) {
    if (arguments.empty() || Matches(arguments[0], name)) out += name + "\n";
  }
  return Print(out);
}

Status DotCommands::List(const Arguments& arguments) {
  if (arguments[0] == "functions") {
    std::string out;
    for (const std::string_view name : FunctionNames()) {
      if (arguments.size() == 1 || Matches(arguments[1], name)) out += std::string(name) + "\n";
    }
    return Print(out);
  }
  for (const ListKind& kind : kLists) {
    if (arguments[0] != kind.name) continue;
    std::string query = kind.query;
    if (arguments.size() > 1) query += fmt::format(" AND {} LIKE {}", kind.column, LikePattern(arguments[1]));
    return shell_.Execute(query + " ORDER BY ALL");
  }
  return SqlError("\"" + arguments[0] + "\" is no kind of thing that is listed");
}

Status DotCommands::Describe(const Arguments& arguments) {
  if (arguments.empty()) return List({"relations"});
  if (IsPattern(arguments[0])) return List({"relations", arguments[0]});
  TESSERA_TRY(shell_.Execute("DESCRIBE " + arguments[0]));
  const std::string name = arguments[0].substr(arguments[0].rfind('.') + 1);
  if (shell_.session->local() == nullptr) {
    TESSERA_ASSIGN(const std::vector<std::string> keys,
                   Texts("SELECT indexname FROM pg_indexes WHERE tablename = " + QuotedText(name)));
    return keys.empty() ? Status::Ok() : Indexes({name});
  }
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, shell_.session->local()->Tables());
  for (const std::shared_ptr<const TableInfo>& table : snapshot->tables) {
    const TableSchema& schema = table->schema;
    if (BaseName(schema.name) != name) continue;
    const bool has_keys = !schema.primary_key.empty() || !schema.unique_keys.empty();
    return has_keys ? Indexes({name}) : Status::Ok();
  }
  return Status::Ok();
}

Status DotCommands::Indexes(const Arguments& arguments) {
  std::string query =
      "SELECT schemaname AS schema, tablename AS table, indexname AS name, indexdef AS definition FROM pg_indexes";
  if (!arguments.empty()) query += " WHERE tablename LIKE " + LikePattern(arguments[0]);
  return shell_.Execute(query + " ORDER BY ALL");
}

Status DotCommands::Databases(const Arguments&) { return shell_.Execute("PRAGMA database_list"); }

Status DotCommands::ShowStatus(const Arguments&) {
  Session* const session = shell_.session->local();
  const std::string& directory = shell_.line.session.directory;
  const Session::TransactionState transaction = shell_.session->transaction();
  std::string out = fmt::format("version: {}\n", kVersion);
  if (session != nullptr) {
    out += fmt::format("database: {}{}\n", directory.empty() ? "in memory, until you leave" : directory,
                       shell_.line.session.mode == OpenMode::kReadOnly ? ", for reading only" : "");
  }
  out += fmt::format("queries run on: {}\n", shell_.session->Description());
  out +=
      fmt::format("transaction: {}\n", transaction == Session::TransactionState::kNone   ? "none"
                                       : transaction == Session::TransactionState::kOpen ? "open"
                                                                                         : "failed; ROLLBACK ends it");
  if (session != nullptr)
    out += fmt::format(
        "memory: {} now, {} at most, {} allowed\n", BytesText(static_cast<double>(ProcessMemory("VmRSS"))),
        BytesText(static_cast<double>(ProcessMemory("VmHWM"))), BytesText(static_cast<double>(MemoryLimit())));
  const std::string gpu = session != nullptr ? session->GpuMemoryDescription() : "";
  if (!gpu.empty()) out += "gpu: " + gpu + "\n";
  out += fmt::format("statements: {}\n", shell_.statements);
  return Print(out);
}

Status DotCommands::RunQuietly(std::string_view sql) {
  NoResult none;
  return shell_.session->Execute(sql, &none);
}

// All tables are those of one moment, if no transaction is open that says of which.
Status DotCommands::Dump(const Arguments& patterns) {
  const bool is_own = shell_.session->transaction() == Session::TransactionState::kNone;
  if (is_own) TESSERA_TRY(RunQuietly("BEGIN"));
  Session& session = *shell_.session->local();
  const DeviceChoice device = session.device();
  Status status = session.SetDevice(DeviceChoice::kHost);  // a GPU's rows come in any order
  if (status.ok()) status = DumpTables(patterns);
  const Status back = session.SetDevice(device);
  const Status ended = is_own ? RunQuietly("ROLLBACK") : Status::Ok();
  const Status written = shell_.output.StatementDone();
  TESSERA_TRY(status);
  TESSERA_TRY(back);
  TESSERA_TRY(written);
  return ended;
}

Status DotCommands::DumpTables(const Arguments& patterns) {
  constexpr size_t kRowsEach = 200;
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, shell_.session->local()->Tables());
  const auto is_asked = [&](const std::string& name) {
    return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
             return Matches(pattern, BaseName(name)) || Matches(pattern, ShownName(name));
           });
  };
  std::string after;  // what needs the rows of all tables
  bool found = false;
  TESSERA_TRY(Print("BEGIN;\n"));
  for (const SchemaEntry& entry : WholeSchema(*snapshot)) {
    if (!is_asked(entry.name)) continue;
    found = true;
    TESSERA_TRY(Print(entry.text));
    if (entry.table == nullptr) continue;
    const TableSchema& table = entry.table->schema;
    const std::string name = QuotedName(entry.name);
    if (table.materialized) {
      if (table.materialized->populated) after += "REFRESH MATERIALIZED VIEW " + name + ";\n";
      continue;
    }
    for (const ForeignKey& key : table.foreign_keys) after += AddForeignKeyText(table, key);
    const std::string columns = InsertedColumns(table);
    ResultTextOptions options;
    options.format = ResultFormat::kInsert;
    options.table =
        fmt::format("{} ({}){}", name, columns,
                    AlwaysMakesItsOwn(snapshot->names.sequences, *entry.table) ? " OVERRIDING SYSTEM VALUE" : "");
    options.rows_of_insert = kRowsEach;
    const std::unique_ptr<ResultWriter> writer =
        MakeResultText(options, [this](std::string_view text) { return shell_.output.Write(text); }, {});
    TESSERA_TRY(shell_.session->Execute(fmt::format("SELECT {} FROM {}", columns, name), writer.get()));
  }
  if (!found && !patterns.empty())
    return SqlError("table \"" + patterns[0] + "\" does not exist", -1, ".tables lists the tables.");
  for (const Sequence& sequence : snapshot->names.sequences) {
    if (is_asked(sequence.name)) after += SetSequenceText(sequence);
  }
  return Print(after + "COMMIT;\n");
}

}  // namespace tessera
