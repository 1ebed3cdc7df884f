// The stages, each once, in their order; compiler.h draws them.

#include "compiler/compiler.h"

#include "compiler/bind/binder.h"
#include "compiler/generate/codegen.h"
#include "compiler/parse/parser.h"
#include "compiler/plan/plan_text.h"
#include "compiler/plan/planner.h"
#include "compiler/ranks/co_location.h"
#include "compiler/ranks/exchange_joins.h"
#include "compiler/ranks/key_spans.h"
#include "compiler/rewrite/fold_aggregates.h"
#include "compiler/rewrite/run_rows.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/rewrite/unnest.h"
#include "compiler/rewrite/unread_columns.h"

namespace tessera {

namespace {

/// The stages behind the binder.
Status Translate(Query* query, const Snapshot& snapshot, const PlanOptions& options, RandomState* random,
                 Compiled* out) {
  TESSERA_TRY(Unnest(query));
  DropUnread(query);
  RandomState unshared;
  SeedCalls(query, random != nullptr ? random : &unshared);
  FoldAggregates(query);
  Simplify(query);
  if (options.read_runs) ReadRuns(query, options.on_device);
  TESSERA_ASSIGN(const Plan plan, MakePlan(*query, options));
  TESSERA_ASSIGN(Code code, Generate(plan, options));
  TESSERA_TRY(vm::Verify(*code.program));
  if (options.ranks > 1) {
    CoLocate(snapshot, &code);
    if (options.key_spans) AssignSpans(snapshot, options, &code);
    ExchangeJoins(snapshot, options, &code);
  }
  out->program = std::move(code.program);
  out->estimates = std::move(code.estimates);
  if (out->statement.explain) out->plan = PlanText(plan);
  return {};
}

}  // namespace

Result<Compiled> Compile(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options,
                         RandomState* random) {
  Compiled c;
  TESSERA_ASSIGN(ParsedStatement parsed, Parse(sql, options.run_query));
  parsed.dialect.zone = options.zone;
  parsed.dialect.types = &snapshot.types;
  parsed.dialect.variables = options.variables;
  if (options.caches) parsed.dialect.caches = &options.caches;
  TESSERA_ASSIGN(c.statement, Bind(parsed, sql, snapshot));
  if (c.statement.query == nullptr) return c;
  // Rows that a statement changes are found by the process that changes them.
  PlanOptions alone = options;
  if (ChangesRows(c.statement)) {
    alone.ranks = 1;
    alone.read_runs = false;  // the target gets numbers of its rows, also where a subquery reads it
  }
  TESSERA_TRY(Translate(c.statement.query.get(), snapshot, alone, random, &c));
  return c;
}

Result<std::unique_ptr<vm::Program>> CompileQuery(Query* query, const Snapshot& snapshot, const PlanOptions& options,
                                                  RandomState* random) {
  PlanOptions alone = options;
  alone.ranks = 1;
  alone.read_runs = false;  // its tables may be rows of the statement, which are no runs
  Compiled c;
  TESSERA_TRY(Translate(query, snapshot, alone, random, &c));
  return std::move(c.program);
}

}  // namespace tessera
