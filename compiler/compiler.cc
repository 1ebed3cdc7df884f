// The stages in a row.

#include "compiler/compiler.h"

#include "compiler/binder.h"
#include "compiler/codegen.h"
#include "compiler/planner.h"

namespace tessera {

Result<Compiled> Compile(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options) {
  Compiled c;
  TESSERA_ASSIGN(c.statement, Bind(sql, snapshot));
  if (c.statement.query == nullptr) return c;
  const Query& query = *c.statement.query;
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
