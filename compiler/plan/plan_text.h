// A plan as EXPLAIN prints it. Private to compiler/.
//
// Start at: PlanText. Pure functions; any thread.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace tessera {

/// One line for each operator, with its estimated rows; its inputs are indented below it.
std::string PlanText(const Plan& plan);

}  // namespace tessera
