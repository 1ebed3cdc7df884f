// The database of temporary tables, beside that of the session.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "compiler/query/bound_query.h"
#include "session/session_state.h"
#include "session/temporary_tables.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/values/enum_type.h"

namespace tessera {

Result<Database*> DatabaseOf(SessionState* state, std::string_view table) {
  if (!IsTemporaryName(table)) return state->database.get();
  if (state->temporaries.database == nullptr) {
    TESSERA_ASSIGN(state->temporaries.database, Database::OpenForSession());
    state->temporaries.database->SetCompression(state->settings.compression);
  }
  return state->temporaries.database.get();
}

Result<Database*> ChangedDatabase(SessionState* state, const Statement& statement) {
  if (statement.tables.empty()) return DatabaseOf(state, statement.table);
  const bool first = IsTemporaryName(statement.tables[0]);
  const auto differs = [&](const std::string& table) { return IsTemporaryName(table) != first; };
  if (std::ranges::any_of(statement.tables, differs)) {
    return Unsupported("one statement for temporary tables and others is not supported", -1,
                       "Write a statement for each.");
  }
  return DatabaseOf(state, statement.tables[0]);
}

Status CopyTypes(SessionState* state, const TableSchema& schema) {
  if (!IsTemporaryName(schema.name)) return {};
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, schema.name));
  for (const ColumnSchema& column : schema.columns) {
    if (column.type.id != TypeId::kEnum) continue;
    const EnumType& type = EnumOf(column.type);
    TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, database->Read());
    if (std::ranges::count(now->types, type) > 0) continue;
    TESSERA_TRY(database->DropType(type.name, true));
    TESSERA_TRY(database->CreateType(type));
  }
  return {};
}

Status NoteOnCommit(SessionState* state, const Statement& create) {
  if (create.value.empty()) return {};
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, state->temporaries.database->Read());
  const std::shared_ptr<const TableInfo> table = now->Find(create.definition.schema.name);
  if (table != nullptr) state->temporaries.on_commit.emplace(table->id, create.value == "drop");
  return {};
}

Status RunOnCommit(SessionState* state) {
  if (state->temporaries.on_commit.empty()) return {};
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, state->temporaries.database->Read());
  std::vector<std::string> emptied;
  for (const auto& table : now->tables) {
    const auto action = state->temporaries.on_commit.find(table->id);
    if (action == state->temporaries.on_commit.end()) continue;
    if (action->second) {
      TESSERA_TRY(state->temporaries.database->DropTable(table->schema.name, false));
    } else if (table->stored_rows > 0) {
      emptied.push_back(table->schema.name);
    }
  }
  return emptied.empty() ? Status::Ok() : state->temporaries.database->Truncate(emptied);
}

bool ReadsTemporary(const vm::Program& program) {
  return std::ranges::any_of(program.tables, [](const vm::TableRef& table) { return IsOfOneRank(table.name); });
}

}  // namespace tessera
