// What a change means for tables that foreign keys connect.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/exception_status.h"
#include "compiler/compiler.h"
#include "compiler/query/schema_text.h"
#include "session/foreign_keys.h"
#include "session/held_result.h"
#include "session/program_run.h"
#include "session/returned_rows.h"
#include "session/same_snapshot.h"
#include "session/settings_scope.h"
#include "session/statements.h"
#include "session/updated_keys.h"
#include "tablet/catalog/changed_rows.h"
#include "tablet/catalog/table_of_rows.h"

namespace tessera {
namespace {

/// Of queries that the user does not write, so that a join strategy that they ask for need not run them.
PlanOptions OptionsOf(const SessionState& state) {
  PlanOptions options = PlanOptionsOf(state);
  options.join = JoinChoice::kAuto;
  return options;
}

using Action = ForeignKey::Action;
using Table = std::shared_ptr<const TableInfo>;

/// Names of the tables that the queries here read.
constexpr char kRows[] = "rows", kOthers[] = "others";

/// A foreign key, and the two tables in one state of the database.
struct Reference {
  const ForeignKey* key;
  Table child, parent;

  std::vector<std::string> ChildNames() const {
    std::vector<std::string> names;
    for (const int c : key->columns) names.push_back(child->schema.columns[static_cast<size_t>(c)].name);
    return names;
  }
};

std::vector<Reference> ReferencesOf(const Snapshot& snapshot) {
  std::vector<Reference> references;
  for (const auto& child : snapshot.tables) {
    for (const ForeignKey& key : child->schema.foreign_keys) {
      if (const Table parent = snapshot.Find(key.referenced)) references.push_back({&key, child, parent});
    }
  }
  return references;
}

Table FindById(const Snapshot* snapshot, int64_t id) {
  if (snapshot == nullptr) return nullptr;
  const auto at = std::ranges::find(snapshot->tables, id, [](const Table& table) { return table->id; });
  return at != snapshot->tables.end() ? *at : nullptr;
}

std::vector<std::string> Numbered(const char* letter, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(letter + std::to_string(i));
  return names;
}

/// "a.x, a.y"
std::string List(const char* alias, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + (alias + ("." + QuotedName(name)));
  return text;
}

/// "a.x = b.u AND a.y = b.v"
std::string Equal(const char* a, const std::vector<std::string>& names, const char* b,
                  const std::vector<std::string>& others) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : " AND ") + (a + ("." + QuotedName(names[i]))) + " = " + b + "." + QuotedName(others[i]);
  }
  return text;
}

std::string NotNull(const char* alias, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : " AND ") + (alias + ("." + QuotedName(name))) + " IS NOT NULL";
  return text;
}

std::string OrderOf(size_t columns) {
  std::string text = " ORDER BY 1";
  for (size_t i = 2; i <= columns; ++i) text += ", " + std::to_string(i);
  return text;
}

/// The types of `now` with the two tables under their names for queries.
Snapshot Two(const Snapshot& now, const TableInfo& rows, const TableInfo& others) {
  Snapshot two;
  two.types = now.types;
  const auto add = [&](const TableInfo& table, const char* name) {
    auto named = std::make_shared<TableInfo>(table);
    named->schema.name = name;
    named->id = -1 - static_cast<int64_t>(two.tables.size());  // (both may be states of one table)
    two.tables.push_back(std::move(named));
  };
  add(others, kOthers);
  add(rows, kRows);
  return two;
}

/// "(a, b)=(1, 2)"
std::string KeyText(const std::vector<std::string>& names, const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "(" : ", ") + name;
  for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? ")=(" : ", ") + values[i];
  return text + ")";
}

class KeyKeeper {
 public:
  explicit KeyKeeper(SessionState* state) : state_(*state), scope_(state) {
    state_.settings.device = DeviceChoice::kHost;  // what is looked at is little, most often
  }

  /// Does what the keys say of rows that refer to keys which are gone, until nothing changes.
  Status Cascade(std::shared_ptr<const Snapshot> from) {
    for (;;) {
      TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, state_.database->Read());
      const UpdatedKeys updated = std::exchange(*state_.running.updated_keys, UpdatedKeys(*now));
      // What is restricted is an error before anything is changed.
      for (const bool restricts : {true, false}) {
        for (const Reference& reference : ReferencesOf(*now))
          TESSERA_TRY(Follow(reference, restricts, from.get(), updated, *now));
      }
      TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> after, state_.database->Read());
      if (IsSame(*after, *now)) return {};
      from = now;
    }
  }

  /// `deferred`: only the keys that are, or only the others. `removes`: rows may be gone.
  Status Check(const Snapshot* before, std::optional<bool> deferred, bool removes) {
    TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, state_.database->Read());
    for (const Reference& reference : ReferencesOf(*now)) {
      const ForeignKey& key = *reference.key;
      if (deferred && key.deferred != *deferred) continue;
      const Table child = FindById(before, reference.child->id), parent = FindById(before, reference.parent->id);
      // A table that is not there before has been made, or written anew as another one.
      const bool all =
          child == nullptr || parent == nullptr || std::ranges::count(child->schema.foreign_keys, key) == 0;
      TESSERA_TRY(CheckRows(reference, *RowsNotIn(*reference.child, all ? nullptr : child.get()), *now));
      if (all || !removes) continue;
      TESSERA_ASSIGN(const Table gone, GoneKeys(reference, *parent, *now));
      if (gone != nullptr) TESSERA_TRY(CheckGone(reference, *gone, *now));
    }
    return {};
  }

 private:
  Status Query(const std::string& sql, const Snapshot& snapshot, const vm::RowConsumer& consume) {
    TESSERA_ASSIGN(const Compiled compiled, Compile(sql, snapshot, OptionsOf(state_), &state_.random));
    return RunProgram(&state_, *compiled.program, snapshot, consume, false, true);
  }

  /// The rows of a query as a table with such columns; nullptr if there are none.
  Result<Table> TableOf(const std::string& sql, const Snapshot& snapshot, const TableSchema& schema) {
    std::vector<RowBatch> batches;
    TESSERA_TRY(Query(sql, snapshot, [&](RowBatch&& batch) {
      if (batch.rows > 0) batches.push_back(std::move(batch));
      return Status::Ok();
    }));
    if (batches.empty()) return Table();
    auto table = std::make_shared<TableInfo>();
    table->schema = schema;
    TESSERA_TRY(FillTable(batches, table.get()));
    return Table(std::move(table));
  }

  /// The values of the first row of a query; empty if it has none.
  Result<std::vector<std::string>> FirstRow(const std::string& sql, const Snapshot& snapshot) {
    std::vector<std::string> values;
    TESSERA_TRY(Query(sql, snapshot, [&](RowBatch&& batch) {
      for (const ColumnVector& column : batch.columns) {
        if (batch.rows > 0) AppendText(column, 0, &values.emplace_back());
      }
      return Status::Ok();
    }));
    return values;
  }

  /// The columns k0, k1 ... of the key in the table that is referred to and, if `moved`, n0, n1 ... of the same types.
  static TableSchema SchemaOfKeys(const Reference& reference, bool moved) {
    TableSchema schema;
    schema.name = kOthers;
    for (const char* letter : {"k", "n"}) {
      if (*letter == 'n' && !moved) break;
      for (size_t i = 0; i < reference.key->to.size(); ++i) {
        const auto column = static_cast<size_t>(reference.parent->schema.Find(reference.key->to[i]));
        schema.columns.push_back({letter + std::to_string(i), reference.parent->schema.columns[column].type});
      }
    }
    return schema;
  }

  /// Keys that the table had in the state `before` and does not have now, as k0, k1 ...; nullptr: there are none.
  Result<Table> GoneKeys(const Reference& reference, const TableInfo& before, const Snapshot& now) {
    const Table rows = RowsNotIn(before, reference.parent.get());
    if (rows->rows == 0) return Table();
    const std::vector<std::string>& names = reference.key->to;
    const std::string sql = "SELECT DISTINCT " + List("r", names) + " FROM rows r WHERE " + NotNull("r", names) +
                            " AND NOT EXISTS (SELECT 1 FROM others o WHERE " + Equal("o", names, "r", names) + ")";
    return TableOf(sql, Two(now, *rows, *reference.parent), SchemaOfKeys(reference, false));
  }

  /// Rows of the table with the foreign key: each has a row that it refers to.
  Status CheckRows(const Reference& reference, const TableInfo& rows, const Snapshot& now) {
    if (rows.rows == 0) return {};
    const std::vector<std::string> names = reference.ChildNames();
    const std::string sql = "SELECT " + List("r", names) + " FROM rows r WHERE " + NotNull("r", names) +
                            " AND NOT EXISTS (SELECT 1 FROM others o WHERE " +
                            Equal("o", reference.key->to, "r", names) + ")" + OrderOf(names.size()) + " LIMIT 1";
    TESSERA_ASSIGN(const std::vector<std::string> values, FirstRow(sql, Two(now, rows, *reference.parent)));
    if (values.empty()) return {};
    return {ErrorKind::kForeignKeyViolation,
            "insert or update on table \"" + reference.child->schema.name + "\" violates foreign key constraint \"" +
                reference.key->name + "\": key " + KeyText(names, values) + " is not present in table \"" +
                reference.key->referenced + "\"",
            "Insert that row into " + QuotedName(reference.key->referenced) + " first, or in the same statement."};
  }

  /// No row refers to a key that is gone.
  Status CheckGone(const Reference& reference, const TableInfo& gone, const Snapshot& now) {
    const std::vector<std::string> names = Numbered("k", reference.key->to.size());
    const std::string sql = "SELECT " + List("r", names) + " FROM rows r WHERE EXISTS (SELECT 1 FROM others o WHERE " +
                            Equal("o", reference.ChildNames(), "r", names) + ")" + OrderOf(names.size()) + " LIMIT 1";
    TESSERA_ASSIGN(const std::vector<std::string> values, FirstRow(sql, Two(now, gone, *reference.child)));
    if (values.empty()) return {};
    const std::string& child = reference.child->schema.name;
    return {ErrorKind::kForeignKeyViolation,
            "update or delete on table \"" + reference.key->referenced + "\" violates foreign key constraint \"" +
                reference.key->name + "\" on table \"" + child + "\": key " + KeyText(reference.key->to, values) +
                " is still referenced from table \"" + child + "\"",
            "Delete or change those rows of " + QuotedName(child) + " first."};
  }

  /// Between the state `from` and `now`: of the actions only RESTRICT, or only those that write.
  Status Follow(const Reference& reference, bool restricts, const Snapshot* from, const UpdatedKeys& updated,
                const Snapshot& now) {
    const auto is_wanted = [&](Action a) { return restricts ? a == Action::kRestrict : a > Action::kRestrict; };
    const Action on_delete = is_wanted(reference.key->on_delete) ? reference.key->on_delete : Action::kNoAction;
    const Action on_update = is_wanted(reference.key->on_update) ? reference.key->on_update : Action::kNoAction;
    const Table before = FindById(from, reference.parent->id);
    if ((on_delete == Action::kNoAction && on_update == Action::kNoAction) || before == nullptr) return {};
    if (state_.cancel) return Cancelled();
    TESSERA_ASSIGN(const Table gone, GoneKeys(reference, *before, now));
    return Act(reference, on_delete, on_update, gone, updated, now);
  }

  /// Does this to the rows that refer to keys which are gone (nullptr: none is), or are those of an updated row.
  Status Act(const Reference& reference, Action on_delete, Action on_update, const Table& gone,
             const UpdatedKeys& updated, const Snapshot& now) {
    const ForeignKey& key = *reference.key;
    std::vector<int> columns;
    for (const std::string& name : key.to) columns.push_back(reference.parent->schema.Find(name));
    const RowBatch all = updated.Of(reference.parent->schema.name, columns);
    if (all.rows == 0) return gone != nullptr ? Apply(reference, on_delete, gone) : Status::Ok();
    const std::vector<std::string> k = Numbered("k", columns.size()), n = Numbered("n", columns.size());
    auto moves = std::make_shared<TableInfo>();
    moves->schema = SchemaOfKeys(reference, true);
    TESSERA_TRY(FillTable({&all, 1}, moves.get()));
    if (gone != nullptr) {
      const std::string sql = "SELECT " + List("r", k) +
                              " FROM rows r WHERE NOT EXISTS (SELECT 1 FROM others o WHERE " + Equal("o", k, "r", k) +
                              ")";
      TESSERA_ASSIGN(const Table deleted, TableOf(sql, Two(now, *gone, *moves), gone->schema));
      if (deleted != nullptr) TESSERA_TRY(Apply(reference, on_delete, deleted));
    }
    std::string differs;
    for (size_t i = 0; i < k.size(); ++i)
      differs += (i == 0 ? "" : " OR ") + ("r." + k[i]) + " IS DISTINCT FROM r." + n[i];
    TESSERA_ASSIGN(const Table moved, TableOf("SELECT " + List("r", k) + ", " + List("r", n) + " FROM rows r WHERE " +
                                                  NotNull("r", k) + " AND (" + differs + ")",
                                              Two(now, *moves, *moves), moves->schema));
    return moved != nullptr ? Apply(reference, on_update, moved) : Status::Ok();
  }

  /// `keys`: with the new ones if they were changed.
  Status Apply(const Reference& reference, Action action, const Table& keys) {
    if (action == Action::kNoAction) return {};  // Check finds the rows
    const std::vector<std::string> names = reference.ChildNames(), k = Numbered("k", names.size());
    TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, state_.database->Read());
    if (action == Action::kRestrict) return CheckGone(reference, *keys, *now);
    auto named = std::make_shared<TableInfo>(*keys);
    named->schema.name = "keys";
    while (now->Find(named->schema.name) != nullptr) named->schema.name += "_";
    const std::string& child = QuotedName(reference.child->schema.name);
    const std::string of = QuotedName(named->schema.name) + " k";
    const bool moves = keys->schema.columns.size() > names.size();
    std::string sql;
    if (action == Action::kCascade && !moves) {
      sql =
          "DELETE FROM " + child + " c WHERE EXISTS (SELECT 1 FROM " + of + " WHERE " + Equal("k", k, "c", names) + ")";
    } else {
      for (size_t i = 0; i < names.size(); ++i) {
        const std::string value = action == Action::kCascade   ? "k.n" + std::to_string(i)
                                  : action == Action::kSetNull ? "NULL"
                                                               : "DEFAULT";
        sql += (i == 0 ? "UPDATE " + child + " c SET " : ", ") + QuotedName(names[i]) + " = " + value;
      }
      sql += " FROM " + of + " WHERE " + Equal("k", k, "c", names);
    }
    const Snapshot with = WithTable(*now, named);
    TESSERA_ASSIGN(const Compiled compiled, Compile(sql, with, OptionsOf(state_), &state_.random));
    TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, state_.database->Write(compiled.statement.table));
    HeldResult unseen;
    return ChangeRows(&state_, compiled, with, writer.get(), &unseen);
  }

  SessionState& state_;
  const SettingsScope scope_;
};

}  // namespace

bool TouchesForeignKeys(const Statement& s, const Snapshot& snapshot) {
  const auto refers = [&](const Table& table) {
    return std::ranges::any_of(table->schema.foreign_keys,
                               [&](const ForeignKey& key) { return key.referenced == s.table; });
  };
  using Kind = Statement::Kind;
  if (s.explain.wanted && !s.explain.analyze) return false;
  if (s.kind == Kind::kDropTable) return !s.definition.dependents.empty();
  const bool alters = s.kind == Kind::kAlterTable;
  if (alters && (!s.definition.schema.foreign_keys.empty() || !s.definition.dependents.empty())) return true;
  if (!alters && !ChangesRows(s) && s.kind != Kind::kInsert && s.kind != Kind::kCopyFrom) return false;
  if (s.target != nullptr && !s.target->schema.foreign_keys.empty()) return true;
  return std::ranges::any_of(snapshot.tables, refers);
}

Status ChangeWithForeignKeys(SessionState* state, const Statement& s, const std::shared_ptr<const Snapshot>& before,
                             bool alone, ResultWriter* out, const std::function<Status(ResultWriter*)>& change) {
  UpdatedKeys updated(*before);
  state->running.updated_keys = &updated;
  HeldResult held;
  const auto run = [&]() -> Status {
    TESSERA_TRY(change(s.explain.wanted ? out : &held));
    const uint64_t rows = state->running.timing.rows;
    KeyKeeper keeper(state);
    const bool adds =
        s.kind == Statement::Kind::kCopyFrom || (s.kind == Statement::Kind::kInsert && !s.change.on_conflict);
    if (!adds && ChangesRows(s)) TESSERA_TRY(keeper.Cascade(before));
    // (Outside of a transaction the end of the statement is that of the transaction.)
    const auto which = state->transaction.is_open ? std::optional<bool>(false) : std::nullopt;
    TESSERA_TRY(keeper.Check(before.get(), which, !adds));
    state->running.timing.rows = rows;
    return Status::Ok();
  };
  Status status = Caught(run);
  state->running.updated_keys = nullptr;
  if (status.ok() && alone) status = state->database->CommitTransaction();
  return status.ok() ? held.Show(out) : status;
}

Status CheckDeferredKeys(SessionState* state, const Snapshot* before) {
  return KeyKeeper(state).Check(before, true, true);
}

bool HasDeferredKeys(const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.tables, [](const Table& table) {
    return std::ranges::any_of(table->schema.foreign_keys, &ForeignKey::deferred);
  });
}

}  // namespace tessera
