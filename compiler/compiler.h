// SQL text -> verified program. The public header of compiler/.
//
//   text
//    |  Parse      forms of other engines rewritten, then libpg_query's parser                dialect_text.h, parser.h
//   ParsedStatement
//    |  Bind       names, types, casts; constants folded                                      binder.h
//   Statement, with a Query: a tree of query blocks
//    |  Unnest     subqueries in expressions become relations                                 unnest.h
//    |  Simplify   outer joins become inner ones, derived tables part of the block around     simplify.h
//    |  ReadRuns   tables are read as runs of equal values, where that makes no difference    run_rows.h
//   Query, as it is run
//    |  MakePlan   what drives, order and strategies of joins, for each block                 planner.h
//   Plan: a tree like that of the blocks; EXPLAIN prints it                                   plan.h, plan_tree.h
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
#include "compiler/parse/error_format.h"
#include "compiler/parse/script.h"
#include "compiler/plan/plan_node.h"
#include "compiler/plan/plan_options.h"
#include "compiler/query/bound_query.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/held_parameter.h"
#include "compiler/query/random_calls.h"
#include "tablet/catalog/table_info.h"
#include "vm/program/program.h"

namespace tessera {

/// A statement and, where it has a query, the program that answers it.
struct Compiled {
  Statement statement;
  std::unique_ptr<vm::Program> program;  ///< nullptr if statement.query is nullptr
  std::vector<double> estimates;         ///< per section: rows that it is expected to make; -1: no estimate
  PlanNode plan;                         ///< what EXPLAIN shows, if the statement is one
  Dependencies dependencies;             ///< for how long the program answers the text
  /// If PlanOptions::hold_parameters: the parameters, where the program answers for other values of them; empty: it does not.
  std::vector<HeldParameter> held;
};

/// Compiles one statement against `snapshot`. Errors carry a position in `sql`; see FormatError. Throws Interruption
/// (base/interrupt.h) if the thread's statement is cancelled.
/// `random`: the session's sequence of random numbers, which goes on; nullptr: one that begins here.
Result<Compiled> Compile(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options = {},
                         RandomState* random = nullptr);

/// The statement bound and no more, without values for its parameters: what it returns is known. `types`: those that were
/// declared (kNull: not), then of all parameters (kNull: it cannot be told from where the parameter stands). A statement that
/// runs no query is only parsed, and comes back as kNotice. Errors: those of parsing and binding it.
Result<Statement> BindWithoutValues(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options,
                                    std::vector<SqlType>* types);
/// The types of the parameters $1, $2 and so on of a statement that is to be prepared; kNull in `declared`: it was not
/// declared, or that of the value. Errors: those of binding the statement; it is another than SELECT, INSERT, UPDATE and DELETE; a type cannot be
/// told from where the parameter stands.
Result<std::vector<SqlType>> ParameterTypes(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options,
                                            std::vector<SqlType> declared);
/// `given` as the value of parameter `number` of that type. Errors name the parameter: it cannot be cast by assignment.
Result<Value> ParameterValue(const Value& given, size_t number, const SqlType& type, const TimeZone* zone);
/// Gives a copy of a program that was compiled for other values the constants of `values`. False: these need a program of
/// their own, and the copy is good for nothing.
bool FillParameters(const std::vector<HeldParameter>& held, const std::vector<Value>& values, const TimeZone* zone,
                    vm::Program* program);
/// Another query of a statement that has been compiled, for this process alone: the tables of the statement's rows that it
/// reads (ChangedRows) have got them. `snapshot` has these tables, too.
Result<std::unique_ptr<vm::Program>> CompileQuery(Query* query, const Snapshot& snapshot, const PlanOptions& options,
                                                  RandomState* random);

}  // namespace tessera
