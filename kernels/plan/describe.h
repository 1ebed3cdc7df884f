// A launch plan in words. Private to kernels/; any thread.
#pragma once

#include <string>

#include "kernels/plan/launch_plan.h"

namespace tessera::kernels {

/// For EXPLAIN ANALYZE: the instantiation, the staged columns, how each table is looked up and in which order, the
/// groups.
std::string Describe(const LaunchPlan& plan);

}  // namespace tessera::kernels
