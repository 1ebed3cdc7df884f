// The stages in a row.

#include "compiler/compiler.h"

#include "compiler/binder.h"
#include "compiler/codegen.h"
#include "compiler/planner.h"

namespace tessera {

Result<Compiled> Compile(std::string_view sql, const Snapshot& snapshot) {
  Compiled c;
  TESSERA_ASSIGN(c.statement, Bind(sql, snapshot));
  if (c.statement.query == nullptr) return c;
  const Query& query = *c.statement.query;
  const Plan plan = MakePlan(query);
  TESSERA_ASSIGN(c.program, Generate(query, plan));
  TESSERA_TRY(vm::Verify(*c.program));
  if (c.statement.explain) c.plan = PlanText(query, plan);
  return c;
}

}  // namespace tessera
