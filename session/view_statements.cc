// CREATE VIEW and DROP VIEW: of the database, or of the session. REFRESH MATERIALIZED VIEW.

#include <algorithm>

#include "session/program_run.h"
#include "session/statements.h"

namespace tessera {

namespace {

/// ALTER VIEW ... SET SCHEMA: the view and its comments get the new name. It is a transaction.
Status MoveView(SessionState* state, const std::string& old, const ViewSchema& view) {
  TESSERA_TRY(state->database->CreateView(view, false, false));
  TESSERA_TRY(state->database->ChangeNames([&](CatalogNames* names) {
    for (Comment& comment : names->comments) {
      if (comment.kind == "view" && comment.name == old) comment.name = view.name;
    }
    return Status::Ok();
  }));
  return state->database->DropViews({old}, false);
}

}  // namespace

Status CreateView(SessionState* state, const Statement& statement) {
  const ViewSchema& view = *statement.definition.view;
  if (!statement.tables.empty()) return MoveView(state, statement.tables[0], view);
  if (!view.temporary)
    return state->database->CreateView(view, statement.definition.or_replace, statement.definition.if_exists);
  Views& views = state->temporaries.views;
  const auto at = std::ranges::find_if(views, [&](const auto& v) { return v->name == view.name; });
  if (at == views.end()) {
    views.push_back(statement.definition.view);
  } else if (statement.definition.or_replace) {
    *at = statement.definition.view;
  }
  return Status::Ok();
}

Status DropViews(SessionState* state, const Statement& statement) {
  std::vector<std::string> names = statement.tables;
  Views left = state->temporaries.views;
  std::erase_if(names, [&](const std::string& name) {
    return std::erase_if(left, [&](const auto& view) { return view->name == name; }) > 0;
  });
  if (!names.empty()) TESSERA_TRY(state->database->DropViews(names, statement.definition.if_exists));
  state->temporaries.views.swap(left);
  return Status::Ok();
}

namespace {

/// Errors: the columns are not those that the view was made with.
Status CheckColumns(const TableSchema& view, const std::vector<vm::ResultColumn>& columns) {
  const auto same = [](const ColumnSchema& a, const vm::ResultColumn& b) { return a.type == b.type; };
  if (std::ranges::equal(view.columns, columns, same)) return {};
  return SqlError(ErrorKind::kTableDefinition,
                  "the query of materialized view \"" + view.name + "\" gives columns of other types now", -1,
                  "DROP MATERIALIZED VIEW " + view.name + ", and make it anew.");
}

}  // namespace

Status RefreshView(SessionState* state, const Statement& statement) {
  const TableSchema& schema = statement.definition.schema;
  // The lock is held from here on: the rows are those of the tables at the commit.
  TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, state->database->WriteNew(schema, true));
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, state->database->Read());
  const std::shared_ptr<const TableInfo> there = now->Find(schema.name);
  if (there == nullptr || !there->schema.materialized || there->schema.materialized->text != schema.materialized->text)
    return {ErrorKind::kSerializationFailure,
            "materialized view \"" + schema.name + "\" was changed by another process", "Run the statement again."};
  if (schema.materialized->populated) {
    std::shared_ptr<const Snapshot> seen = now;  // with the files that the query reads
    TESSERA_ASSIGN(const Compiled rows,
                   CompileStatement(state, schema.materialized->text, PlanOptionsOf(*state), &seen));
    TESSERA_TRY(CheckColumns(schema, rows.program->columns));
    uint64_t written = 0;
    const auto append = [&](RowBatch&& batch) -> Status {
      TESSERA_TRY(writer->Append(batch, written + 1));
      written += batch.rows;
      return Status::Ok();
    };
    TESSERA_TRY(RunProgram(state, *rows.program, *seen, append));
    state->running.timing.rows = written;
  }
  if (state->cancel) return Cancelled();
  return writer->Commit();
}

}  // namespace tessera
