// A plan as EXPLAIN prints it. Private to compiler/.
//
// Start at: PlanText. Pure functions; any thread.
#pragma once

#include <string>

#include "compiler/plan.h"

namespace tessera {

/// One operator a line, its inputs indented below it, each with its estimated rows.
std::string PlanText(const Plan& plan);

}  // namespace tessera
