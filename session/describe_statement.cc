// What a statement takes and returns, before it runs: for interfaces that are asked for it.

#include <utility>

#include "compiler/compiler.h"
#include "compiler/parse/prepared_text.h"
#include "compiler/parse/transaction_command.h"
#include "session/integrity_check.h"
#include "session/program_run.h"
#include "session/statements.h"
#include "session/transaction.h"

namespace tessera {
namespace {

std::vector<vm::ResultColumn> ColumnsOf(const Query& query, int carried = 0) {
  std::vector<vm::ResultColumn> columns;
  for (int i = 0; i < query.visible - carried; ++i) {
    const Output& output = query.outputs[static_cast<size_t>(i)];
    columns.push_back({output.name, output.expr->type});
  }
  return columns;
}

/// Of a statement that is no EXECUTE.
std::vector<vm::ResultColumn> ColumnsOf(const Statement& s) {
  if (s.explain.wanted) return {{"QUERY PLAN", SqlType::Text()}};
  if (s.change.returning != nullptr) return ColumnsOf(*s.change.returning);
  if (s.kind == Statement::Kind::kShow) return ColumnsOfShow(s.setting);
  return s.kind == Statement::Kind::kSelect ? ColumnsOf(*s.query, s.carried) : std::vector<vm::ResultColumn>();
}

/// Whether it is none that is compiled; then `*columns` are those that it returns. Errors: a transaction that has failed, and
/// this does not end it.
Result<bool> IsCommand(SessionState* state, std::string_view sql, std::vector<vm::ResultColumn>* columns) {
  TESSERA_ASSIGN(const TransactionCommand transaction, ReadTransactionCommand(sql));
  TESSERA_TRY(CheckTransaction(state, transaction));
  TESSERA_ASSIGN(const DatabaseCommand database, ReadDatabaseCommand(sql));
  if (database.kind == DatabaseCommand::Kind::kCheck) *columns = ColumnsOfIntegrityCheck(database);
  return transaction.kind != TransactionCommand::Kind::kNone || database.kind != DatabaseCommand::Kind::kNone ||
         PreparedTextAt(sql) > 0;
}

}  // namespace

Result<StatementDescription> DescribeStatement(SessionState* state, std::string_view sql,
                                               std::vector<SqlType> declared) {
  StatementDescription description;
  TESSERA_ASSIGN(const bool is_command, IsCommand(state, sql, &description.columns));
  if (is_command) return description;
  // The compiler may ask for rows, as for the columns of a PIVOT.
  if (!MayAddToWaiting(sql)) TESSERA_TRY(StoreWaiting(state));
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, SnapshotOf(state));
  PlanOptions options = PlanOptionsOf(*state);
  options.run_query = [&](const std::string& text) { return FirstColumn(state, text, *snapshot); };
  description.parameters = std::move(declared);
  TESSERA_ASSIGN(Statement statement, BindWithoutValues(sql, *snapshot, options, &description.parameters));
  if (statement.kind == Statement::Kind::kExecute && !statement.explain.wanted) {
    TESSERA_ASSIGN(const PreparedStatement* const prepared, state->prepared.Find(statement.prepared.name));
    std::vector<SqlType> types = prepared->types;
    TESSERA_ASSIGN(statement, BindWithoutValues(prepared->text, *snapshot, options, &types));
  }
  description.columns = ColumnsOf(statement);
  return description;
}

}  // namespace tessera
