// From a plan to a program. Private to compiler/.
//
// Start at: Generate. Pure functions; any thread.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/plan_options.h"
#include "compiler/plan/plan_sections.h"
#include "vm/program/program.h"

namespace tessera {

struct Code {
  std::unique_ptr<vm::Program> program;
  std::vector<double> estimates;  ///< per section: rows that the planner expects from it; -1: no estimate
  PlanSections sections;          ///< which of them do what
  std::map<int, int> held;        ///< constants of parameters, by their numbers in Parameters::held
};

/// The program that answers the query of `plan`. Errors: kUnsupported, the query needs more than the machine has.
Result<Code> Generate(const Plan& plan, const PlanOptions& options);

}  // namespace tessera
