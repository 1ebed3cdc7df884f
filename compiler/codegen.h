// From a plan to a program. Private to compiler/.
//
// Start at: Generate.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "compiler/bound_query.h"
#include "compiler/plan_options.h"
#include "compiler/planner.h"
#include "vm/program.h"

namespace tessera {

struct Generated {
  std::unique_ptr<vm::Program> program;
  std::vector<double> estimates;  ///< per section: rows that the optimiser expects it to make; -1: it does not say
};

/// The program that answers `query`. Errors: kUnsupported where the query needs more than the machine has.
/// `options`: for the plans of blocks inside.
Result<Generated> Generate(const Query& query, const Plan& plan, const PlanOptions& options);

}  // namespace tessera
