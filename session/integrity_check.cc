#include "session/integrity_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/interrupt.h"
#include "compiler/parse/database_command.h"
#include "compiler/query/schema_text.h"
#include "session/program_run.h"
#include "session/session_state.h"
#include "session/settings_scope.h"
#include "session/statements.h"
#include "tablet/catalog/database_directory.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/values/row_batch.h"

namespace tessera {
namespace {

std::string Plural(int64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

/// The same rows as of a table that promises nothing of them: else the planner would take for granted what is to be checked.
std::shared_ptr<const TableInfo> WithoutPromises(const TableInfo& table) {
  auto plain = std::make_shared<TableInfo>(table);
  TableSchema& schema = plain->schema;
  for (ColumnSchema& column : schema.columns) column.not_null = false;
  schema.primary_key.clear();
  schema.unique_keys.clear();
  schema.checks.clear();
  schema.foreign_keys.clear();
  return plain;
}

class IntegrityCheck {
 public:
  IntegrityCheck(SessionState* state, const DatabaseCommand& command)
      : state_(*state), command_(command), scope_(state) {
    state_.settings.device = DeviceChoice::kHost;  // what it reads is not to be cached
  }

  Status Run() {
    Result<std::shared_ptr<const Snapshot>> read = Read();
    if (!read.ok()) return NoteDamage(read.status(), "");
    const Snapshot& snapshot = **read;
    Snapshot plain = snapshot;
    for (auto& table : plain.tables) table = WithoutPromises(*table);
    bool found = command_.table.empty();
    std::vector<std::string> damaged;
    for (const auto& table : snapshot.tables) {
      if (!IsAsked(table->schema.name)) continue;
      found = true;
      const size_t before = rows_.size();
      TESSERA_TRY(CheckFiles(*table));
      if (rows_.size() > before) damaged.push_back(table->schema.name);
    }
    if (!found)
      return SqlError(ErrorKind::kUndefinedTable, "table \"" + command_.table + "\" does not exist", -1,
                      "PRAGMA integrity_check alone checks all tables.");
    if (command_.quick) return {};
    for (const auto& table : snapshot.tables) {
      // (Its rows cannot be read.)
      if (!IsAsked(table->schema.name) || std::ranges::count(damaged, table->schema.name) > 0) continue;
      if (table->schema.materialized && !table->schema.materialized->populated) continue;
      TESSERA_TRY(CheckRows(table->schema, plain));
      TESSERA_TRY(CheckForeignKeys(table->schema, plain, damaged));
    }
    return {};
  }

  const std::vector<std::string>& rows() const { return rows_; }

 private:
  bool IsFull() const { return static_cast<int64_t>(rows_.size()) >= command_.limit; }
  bool IsAsked(std::string_view name) const {
    return !IsFull() && (command_.table.empty() || command_.table == ShownName(name));
  }
  void Note(const std::string& row) {
    if (!IsFull()) rows_.push_back(ShownName(row));
  }
  /// What is wrong with a file is a row, and all else an error.
  Status NoteDamage(const Status& status, const std::string& where) {
    if (status.code() != ErrorCode::kCorrupt && status.code() != ErrorCode::kIo) return status;
    Note(where + status.message());
    return {};
  }

  /// The committed state by an object of its own, which has not read anything yet.
  Result<std::shared_ptr<const Snapshot>> Read() {
    Database& database = *state_.database;
    // (A temporary one is in no other place than this process, and a new one nowhere.)
    if (state_.options.directory.empty() || !DatabaseDirectory::IsWritten(database.directory())) return database.Read();
    TESSERA_ASSIGN(fresh_, Database::Open(database.directory(), OpenMode::kReadOnly));
    return fresh_->Read();
  }

  Status CheckFiles(const TableInfo& table) {
    for (size_t t = 0; t < table.tablets.size(); ++t) {
      std::string last;
      for (size_t c = 0; c < table.schema.columns.size() && !IsFull(); ++c) {
        ThrowIfInterrupted();
        const Status status = table.tablets[t]->Chunk(static_cast<int>(c)).status();
        // (A file that is not there at all, or whose header is damaged, is one damage.)
        if (status.ok() || status.message() == last) continue;
        last = status.message();
        TESSERA_TRY(NoteDamage(status, fmt::format("table {}, tablet {}, column {}: ", QuotedName(table.schema.name),
                                                   t + 1, QuotedName(table.schema.columns[c].name))));
      }
      const Status intact = table.tablets[t]->Intact();
      if (!intact.ok() && last.empty())
        TESSERA_TRY(NoteDamage(intact, fmt::format("table {}, tablet {}: ", QuotedName(table.schema.name), t + 1)));
    }
    return {};
  }

  /// The number that a query gives.
  Result<int64_t> Count(const std::string& sql, const Snapshot& snapshot) {
    auto seen = std::make_shared<const Snapshot>(snapshot);
    PlanOptions options = PlanOptionsOf(state_);
    options.ranks = 1;
    TESSERA_ASSIGN(const Compiled compiled, CompileStatement(&state_, sql, options, &seen));
    int64_t count = 0;
    const auto add = [&](RowBatch&& batch) -> Status {
      for (size_t row = 0; row < batch.rows; ++row) count += batch.columns[0].fixed[row];
      return Status::Ok();
    };
    TESSERA_TRY(RunProgram(&state_, *compiled.program, *seen, add, false, true));
    return count;
  }

  /// Notes that there are rows for which `condition` holds; `what` says of them what is wrong.
  Status CountRows(const TableSchema& schema, const std::string& condition, const std::string& what,
                   const Snapshot& plain) {
    if (IsFull()) return {};
    const std::string name = QuotedName(schema.name);
    const Result<int64_t> count = Count("SELECT count(*) FROM " + name + " WHERE " + condition, plain);
    if (!count.ok()) {
      // A text of the catalog that cannot be computed any more, or a row for which it has no value.
      if (count.status().code() == ErrorCode::kCancelled) return count.status();
      Note("table " + name + ": " + what + " cannot be checked: " + count.status().message());
      return {};
    }
    if (*count > 0) Note("table " + name + ": " + Plural(*count, "row") + " " + what);
    return {};
  }

  Status CheckRows(const TableSchema& schema, const Snapshot& plain) {
    for (const ColumnSchema& column : schema.columns) {
      const std::string name = QuotedName(column.name);
      if (column.not_null)
        TESSERA_TRY(CountRows(schema, name + " IS NULL", "with NULL in column " + name + ", which is NOT NULL", plain));
      if (column.type.id == TypeId::kText && column.type.length > 0) {
        TESSERA_TRY(CountRows(schema, fmt::format("length({}) > {}", name, column.type.length),
                              "with a text in column " + name + " that is longer than " + column.type.ToString(),
                              plain));
      }
      if (column.generated_text) {
        TESSERA_TRY(CountRows(
            schema,
            fmt::format("{} IS DISTINCT FROM CAST(({}) AS {})", name, *column.generated_text, column.type.ToString()),
            "with another value in column " + name + " than it is GENERATED as", plain));
      }
    }
    for (const CheckConstraint& check : schema.checks) {
      TESSERA_TRY(
          CountRows(schema, "NOT (" + check.text + ")", "against CHECK constraint " + QuotedName(check.name), plain));
    }
    if (!schema.primary_key.empty()) TESSERA_TRY(CheckKey(schema, schema.primary_key, "PRIMARY KEY", plain));
    for (const UniqueKey& key : schema.unique_keys)
      TESSERA_TRY(CheckKey(schema, key.columns, "UNIQUE constraint " + QuotedName(key.name), plain));
    return {};
  }

  Status CheckKey(const TableSchema& schema, const std::vector<int>& columns, const std::string& what,
                  const Snapshot& plain) {
    if (IsFull()) return {};
    const std::string name = QuotedName(schema.name);
    std::string list, given;
    for (const int c : columns) {
      const std::string column = QuotedName(schema.columns[static_cast<size_t>(c)].name);
      list += (list.empty() ? "" : ", ") + column;
      given += (given.empty() ? "" : " AND ") + column + " IS NOT NULL";
    }
    TESSERA_ASSIGN(
        const int64_t count,
        Count(
            fmt::format("SELECT count(*) FROM (SELECT 1 AS one FROM {} WHERE {} GROUP BY {} HAVING count(*) > 1) AS k",
                        name, given, list),
            plain));
    if (count > 0)
      Note(fmt::format("table {}: {} of {} ({}) {} there more than once", name, Plural(count, "key"), what, list,
                       count == 1 ? "is" : "are"));
    return {};
  }

  Status CheckForeignKeys(const TableSchema& schema, const Snapshot& plain, const std::vector<std::string>& damaged) {
    for (const ForeignKey& key : schema.foreign_keys) {
      if (std::ranges::count(damaged, key.referenced) > 0) continue;
      const std::string name = QuotedName(schema.name);
      if (plain.Find(key.referenced) == nullptr) {
        Note("table " + name + ": the table of foreign key " + QuotedName(key.name) + " is not there");
        continue;
      }
      std::string given, equal;
      for (size_t i = 0; i < key.columns.size(); ++i) {
        const std::string column = "c." + QuotedName(schema.columns[static_cast<size_t>(key.columns[i])].name);
        given += column + " IS NOT NULL AND ";
        equal += (i == 0 ? "" : " AND ") + column + " = p." + QuotedName(key.to[i]);
      }
      TESSERA_ASSIGN(
          const int64_t count,
          Count(fmt::format("SELECT count(*) FROM {} AS c WHERE {}NOT EXISTS (SELECT 1 FROM {} AS p WHERE {})", name,
                            given, QuotedName(key.referenced), equal),
                plain));
      if (count > 0)
        Note(fmt::format("table {}: {} without the row of {} that foreign key {} asks for", name, Plural(count, "row"),
                         QuotedName(key.referenced), QuotedName(key.name)));
    }
    return {};
  }

  SessionState& state_;
  const DatabaseCommand& command_;
  const SettingsScope scope_;
  std::unique_ptr<Database> fresh_;  ///< outlives what is read of it
  std::vector<std::string> rows_;
};

}  // namespace

std::vector<vm::ResultColumn> ColumnsOfIntegrityCheck(const DatabaseCommand& command) {
  return {{command.quick ? "quick_check" : "integrity_check", SqlType::Text()}};
}

Status CheckIntegrity(SessionState* state, const DatabaseCommand& command, ResultWriter* out) {
  if (state->database->InTransaction()) {
    return SqlError(ErrorKind::kActiveTransaction,
                    "PRAGMA integrity_check cannot run in a transaction that has changed something", -1,
                    "Enter COMMIT or ROLLBACK first: what is checked is what is committed.");
  }
  IntegrityCheck check(state, command);
  TESSERA_TRY(check.Run());
  RowBatch batch;
  batch.columns.resize(1);
  batch.columns[0].type = SqlType::Text();
  for (const std::string& row : check.rows()) batch.columns[0].Append(Value::Text(row));
  if (check.rows().empty()) batch.columns[0].Append(Value::Text("ok"));
  batch.rows = std::max<size_t>(1, check.rows().size());
  state->running.timing.rows = batch.rows;
  TESSERA_TRY(out->Begin(ColumnsOfIntegrityCheck(command)));
  TESSERA_TRY(out->Rows(std::move(batch)));
  return out->End();
}

}  // namespace tessera
