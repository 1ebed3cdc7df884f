// The stages, each in turn; compiler.h draws them.

#include "compiler/compiler.h"

#include "compiler/binder.h"
#include "compiler/codegen.h"
#include "compiler/parser.h"
#include "compiler/planner.h"
#include "compiler/simplify.h"
#include "compiler/unnest.h"

namespace tessera {

Result<Compiled> Compile(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options) {
  Compiled c;
  TESSERA_ASSIGN(const ParsedStatement parsed, Parse(sql));
  TESSERA_ASSIGN(c.statement, Bind(parsed, sql, snapshot));
  if (c.statement.query == nullptr) return c;
  Query& query = *c.statement.query;
  TESSERA_TRY(Unnest(&query));
  Simplify(&query);
  TESSERA_ASSIGN(const Plan plan, MakePlan(query, options));
  TESSERA_ASSIGN(Generated generated, Generate(query, plan, options));
  c.program = std::move(generated.program);
  c.estimates = std::move(generated.estimates);
  TESSERA_TRY(vm::Verify(*c.program));
  if (c.statement.explain) {
    TESSERA_ASSIGN(c.plan, PlanText(query, plan, options));
  }
  return c;
}

}  // namespace tessera
