// From a plan to a program. Private to compiler/.
//
// Start at: Generate.
#pragma once

#include <memory>

#include "base/status.h"
#include "compiler/plan.h"
#include "compiler/planner.h"
#include "vm/program.h"

namespace tessera {

/// The program that answers `query`. Errors: kUnsupported where the query needs more than the machine has.
/// `options`: for the plans of blocks inside.
Result<std::unique_ptr<vm::Program>> Generate(const Query& query, const Plan& plan, const PlanOptions& options);

}  // namespace tessera
