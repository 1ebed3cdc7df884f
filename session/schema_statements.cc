// CREATE and DROP SCHEMA, COMMENT ON.
#include <algorithm>
#include <string>
#include <vector>

#include "compiler/query/bound_query.h"
#include "session/session_state.h"
#include "session/statements.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// All that is in the schemas, and the schemas. It is a transaction.
Status DropAll(SessionState* state, const Definition& dropped) {
  Database& database = *state->database;
  const auto is_in = [&](std::string_view name) {
    return std::ranges::count(dropped.dropped_schemas, SchemaOfName(name)) > 0;
  };
  TESSERA_TRY(ChangeSchemas(state, dropped.dependents));
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, database.Read());
  std::vector<std::string> views;
  for (const auto& view : now->views) {
    if (is_in(view->name)) views.push_back(view->name);
  }
  if (!views.empty()) TESSERA_TRY(database.DropViews(views, false));
  for (const auto& table : now->tables) {
    if (is_in(table->schema.name)) TESSERA_TRY(database.DropTable(table->schema.name, false));
  }
  return database.ChangeNames([&](CatalogNames* names) {
    std::erase_if(names->sequences, [&](const Sequence& sequence) { return is_in(sequence.name); });
    std::erase_if(names->schemas,
                  [&](const std::string& name) { return std::ranges::count(dropped.dropped_schemas, name) > 0; });
    return Status::Ok();
  });
}

}  // namespace

Status ChangeSchemaNames(SessionState* state, const Statement& statement, ResultWriter* out) {
  if (statement.kind == Statement::Kind::kDropSchema) {
    TESSERA_TRY(DropAll(state, statement.definition));
    return out->Done("DROP SCHEMA");
  }
  TESSERA_TRY(state->database->ChangeNames([&](CatalogNames* names) -> Status {
    const bool is_there = std::ranges::count(names->schemas, statement.value) > 0;
    if (is_there && statement.definition.if_exists) return Status::Ok();
    if (is_there) return SqlError(ErrorKind::kDuplicateSchema, "schema \"" + statement.value + "\" already exists");
    names->schemas.push_back(statement.value);
    return Status::Ok();
  }));
  return out->Done("CREATE SCHEMA");
}

Status SetComment(SessionState* state, const Comment& comment, ResultWriter* out) {
  TESSERA_TRY(state->database->ChangeNames([&](CatalogNames* names) {
    std::erase_if(names->comments, [&](const Comment& c) {
      return c.kind == comment.kind && c.name == comment.name && c.column == comment.column;
    });
    if (!comment.text.empty()) names->comments.push_back(comment);
    return Status::Ok();
  }));
  return out->Done("COMMENT");
}

}  // namespace tessera
