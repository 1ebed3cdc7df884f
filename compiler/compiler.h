// SQL text -> verified program. The public header of compiler/.
//
//   text
//    |  Parse      forms of other engines rewritten, then libpg_query's parser                dialect.h, parser.h
//   ParsedStatement
//    |  Bind       names, types, casts; constants folded                                      binder.h
//   Statement, with a Query: a tree of query blocks
//    |  Unnest     subqueries in expressions become relations                                 unnest.h
//    |  Simplify   outer joins become inner ones, derived tables part of the block around     simplify.h
//    |  ReadRuns   tables are read as runs of equal values, where that makes no difference    run_rows.h
//   Query, as it is run
//    |  MakePlan   what drives, order and strategies of joins, for each block                 planner.h
//   Plan: a tree like that of the blocks; EXPLAIN prints it                                   plan.h, plan_text.h
//    |  Generate   one section a pipeline                                                     codegen.h
//    |  Verify     no program runs that was not looked through                                vm/program/program.h
//   vm::Program
//
// Compile calls each stage once. A stage reads what the stage before it made, and calls no other stage.
//
// Start at: Compile. Functions are thread-safe: they share nothing but the parser's thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/query/bound_query.h"
#include "compiler/plan/plan_options.h"
#include "compiler/query/random_calls.h"
#include "compiler/parse/sql_scanner.h"
#include "tablet/tablet.h"
#include "vm/vm.h"

namespace tessera {

/// A statement and, where it has a query, the program that answers it.
struct Compiled {
  Statement statement;
  std::unique_ptr<vm::Program> program;  ///< nullptr if statement.query is nullptr
  std::vector<double> estimates;         ///< per section: rows that it is expected to make; -1: no estimate
  std::string plan;  ///< the plan as EXPLAIN prints it, one line per operator; empty without a query
};

/// Compiles one statement against `snapshot`. Errors carry a position in `sql`; see FormatError. Throws Interruption
/// (base/interrupt.h) if the thread's statement is cancelled.
/// `random`: the session's sequence of random numbers, which goes on; nullptr: one that begins here.
Result<Compiled> Compile(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options = {},
                         RandomState* random = nullptr);

/// A piece of a script.
struct StatementText {
  std::string_view sql;  ///< without the semicolon
  size_t offset = 0;     ///< where it starts in the script
  int line = 1;          ///< the line of the script on which it starts, from 1
};

/// Cuts a script at its semicolons, knowing quotes, dollar quotes and comments. Text after the last semicolon is a
/// statement of its own unless it is blank or comment. A comment that does not end is part of a statement, whose error it
/// is.
std::vector<StatementText> SplitStatements(std::string_view script);

/// Tells of a script that comes line by line when it ends between statements, i.e. whether an interactive shell should
/// run it or ask for more. Looks at each byte once.
class ScriptEnd {
 public:
  /// `script`: what the last call was given, and whole lines behind it.
  bool IsBetweenStatements(std::string_view script);
  /// What the script of the last call ended in: "'", "\"", "$" or "/*"; "": none of these.
  std::string_view Open(std::string_view script) const;

 private:
  Token open_;            ///< the last token, if the script ended inside it
  size_t scanned_ = 0;    ///< up to the token that is open
  bool started_ = false;  ///< a statement has begun
};

/// The error as psql prints it:
///   ERROR:  column "lo_revenu" does not exist
///   LINE 1: SELECT lo_revenu FROM lineorder
///                  ^
///   HINT:  Perhaps you meant column "lo_revenue".
/// `first_line` is the line of the script on which `sql` starts. Long lines are cut around the caret; the caret counts
/// columns of a terminal, not bytes. No newline at the end.
std::string FormatError(const Status& error, std::string_view sql, int first_line = 1);

}  // namespace tessera
