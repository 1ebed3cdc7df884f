// Statements of each kind, compiled: what they do. Internal to session/.
//
// Each leaves the rows that it returned or inserted in the state's timing. Errors leave the database as it was.
//
// Start at: RunStatement. The thread of the session.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "compiler/parse/database_command.h"
#include "session/result_writer.h"
#include "session/session_state.h"
#include "tablet/catalog/table_info.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"

namespace tessera {

/// The room of a command tag with a number, which is reserved before the commit: after it memory that is lacking must
/// not make an error of the statement.
inline constexpr size_t kTagBytes = 64;

/// Runs a compiled statement of any kind.
Status RunStatement(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out);

// describe_statement.cc
/// See Session::Describe.
Result<StatementDescription> DescribeStatement(SessionState* state, std::string_view sql,
                                               std::vector<SqlType> declared);

// register_rows.cc
/// See Session::Register.
Result<uint64_t> RegisterRows(SessionState* state, const std::string& name, FileReader* rows);
/// See Session::RegisterFrame.
Status RegisterFrame(SessionState* state, const std::string& name, std::shared_ptr<TableInfo> frame);
/// false: there is none of that name.
bool ForgetFrame(SessionState* state, const std::string& name);

// setting_statements.cc
/// The columns of SHOW.
std::vector<vm::ResultColumn> ColumnsOfShow(const std::string& name);

// query_statements.cc
Status Select(SessionState* state, const vm::Program& program, const Snapshot& snapshot, ResultWriter* out);
/// The same of a statement, with what the host computes of its rows.
Status Select(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out);
/// INSERT without ON CONFLICT, which the statement `sql` was compiled to against `snapshot`: compiled anew, if it reads tables and
/// these have changed when the writer lock is held.
Status Insert(SessionState* state, std::string_view sql, Compiled* compiled,
              const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out);
Status CreateTable(SessionState* state, const Compiled& compiled, const Snapshot& snapshot);

/// The texts of the query's first column that are not NULL. It is a part of another statement, which is being compiled.
Result<std::vector<std::string>> FirstColumn(SessionState* state, const std::string& sql, const Snapshot& snapshot);
/// Errors: more than one row.
Status SetVariable(SessionState* state, const Compiled& compiled, const Snapshot& snapshot);

// explain_statement.cc
/// `sql` was compiled to `compiled`, which is compiled anew if a change finds other tables. Errors: those of the statement.
Status Explain(SessionState* state, std::string_view sql, Compiled* compiled,
               const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out);

/// "EXPLAIN (ANALYZE, VERBOSE) ": what to write before the text of a prepared statement; "" if it is not explained.
std::string ExplainWords(const ExplainRequest& explain);

// change_statements.cc
/// Compiles the statement anew if tables have changed since `*snapshot`, which becomes their state. REQUIRES: the writer lock is
/// held, so that the state stays. Errors: those of compiling; kSerializationFailure, where foreign keys are to be looked at now.
Status CompileForNow(SessionState* state, std::string_view sql, Compiled* compiled,
                     std::shared_ptr<const Snapshot>* snapshot);

/// DELETE, UPDATE, MERGE and INSERT ... ON CONFLICT, which the statement `sql` was compiled to against `snapshot`: compiled anew if the tables have changed
/// when the writer lock is held.
Status Change(SessionState* state, std::string_view sql, Compiled* compiled,
              const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out);

/// The same with a writer of the table: `snapshot` is the state that it changes.
Status ChangeRows(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, TableWriter* writer,
                  ResultWriter* out);

/// The same tables, with numbers of the rows of the target.
Snapshot WithNumbers(const Snapshot& snapshot, const std::shared_ptr<const TableInfo>& target);

// alter_statement.cc
/// A change of a table as a whole, likewise.
Status Alter(SessionState* state, std::string_view sql, const Compiled& compiled,
             const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out);

/// Tables get these schemas, under the names that they have.
Status ChangeSchemas(SessionState* state, const std::vector<TableSchema>& schemas);

// view_statements.cc
Status CreateView(SessionState* state, const Statement& statement);
Status DropViews(SessionState* state, const Statement& statement);
/// Computes the rows of a materialised view anew, in one commit. Errors: its query gives other columns now.
Status RefreshView(SessionState* state, const Statement& statement);

// schema_statements.cc
/// CREATE and DROP SCHEMA.
Status ChangeSchemaNames(SessionState* state, const Statement& statement, ResultWriter* out);
/// COMMENT ON what is no table.
Status SetComment(SessionState* state, const Comment& comment, ResultWriter* out);

// role_statements.cc
/// CREATE, ALTER and DROP ROLE.
Status ChangeRole(SessionState* state, const RoleChange& change, ResultWriter* out);
/// GRANT and REVOKE.
Status ChangeGrants(SessionState* state, const RoleChange& change, ResultWriter* out);
/// Errors: kInsufficientPrivilege, the session lacks a right that the statement needs.
Status CheckStatementRights(SessionState* state, const Snapshot& snapshot, const Compiled& compiled);
/// The same for what needs all rights on everything.
Status CheckMayEverything(SessionState* state);

// sequence_statements.cc
/// CREATE, ALTER and DROP SEQUENCE.
Status ChangeSequence(SessionState* state, const Statement& statement, ResultWriter* out);
/// Those of a table that has been made, or got columns that need them.
Status AddSequences(SessionState* state, const Statement& statement);
/// Those of TRUNCATE ... RESTART IDENTITY and of ALTER TABLE, before it changes the table.
Status ChangeSequencesOf(SessionState* state, const Statement& statement);
/// Whether it takes values of sequences for rows that it stores, makes sequences, or is another of several changes: then it is a
/// transaction of its own.
bool NeedsSequences(const Statement& statement);

// vacuum_statement.cc
/// Writes the tables anew, each in one commit: in the order of cluster_by, packed for `compression` ("": for what the
/// session's setting says). Errors: no such table; `compression` is none of the setting's values.
Status Vacuum(SessionState* state, const std::vector<std::string>& tables, const std::string& compression);

// database_statements.cc
/// Runs one statement of the session that is none of these.
using StatementRunner = std::function<Status(std::string_view sql, ResultWriter* out)>;
/// VACUUM INTO, EXPORT DATABASE and IMPORT DATABASE: a database as a whole, copied, written as SQL and CSV, and read from that.
/// Errors leave nothing on the disk and the database as it was.
Status RunDatabaseCommand(SessionState* state, const DatabaseCommand& command, const StatementRunner& run,
                          ResultWriter* out);

// file_statements.cc
/// Compile(), and if the statement reads files, reads of them the columns that it needs and compiles it again with what they
/// hold. Then *snapshot becomes one that has them, too. Errors: also those of the files.
Result<Compiled> CompileStatement(SessionState* state, std::string_view sql, const PlanOptions& options,
                                  std::shared_ptr<const Snapshot>* snapshot);

/// If the statement stores the rows of one file as they are (CREATE TABLE t AS SELECT * FROM 'a.csv', INSERT INTO t SELECT *
/// FROM 'a.csv'): the reader of these, which saves storing them twice; else nullptr. Sets the threads and the like.
std::unique_ptr<FileReader> WholeFile(SessionState* state, const Statement& statement, CopyFromOptions* options);
/// Lets statements of the session read standard input and pipes: each is read once, into a temporary file that stays to the
/// end of the session.
void SetSpoolOfFiles(SessionState* state);
/// What is said of records that were left out.
void WarnOfIgnored(SessionState* state, uint64_t ignored);

/// The error where SessionOptions::files is false.
Status FilesRefused();
/// The file or folder that a statement names, as it is to be opened. Errors: the session may touch no files, or not that one.
Result<std::string> AllowedFile(const SessionState& state, const std::string& name);

// copy_statements.cc
Status CopyFrom(SessionState* state, const Statement& statement, ResultWriter* out);
Status CopyTo(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out);

// setting_statements.cc
/// An empty `value`, or "default", is RESET.
Status Set(SessionState* state, const Statement& statement);
Status Set(SessionState* state, const std::string& name, const std::string& value);
/// `name`: a setting, or "all".
Status Show(SessionState* state, const std::string& name, ResultWriter* out);

}  // namespace tessera
