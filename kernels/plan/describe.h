// A launch plan in words. Private to kernels/; any thread.
#pragma once

#include <string>

#include "kernels/plan/launch_plan.h"

namespace tessera::kernels {

/// For EXPLAIN ANALYZE: the instantiation, the staged columns, how and in which order tables are probed, the groups.
std::string Describe(const LaunchPlan& plan);

}  // namespace tessera::kernels
