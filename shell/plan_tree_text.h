// EXPLAIN's tree: the plan, and beside each step what a run measured of it.
//
// Start at: ExplanationText. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "session/session.h"

namespace tessera {

/// A line for each step, its inputs indented below it, and a line of totals if it has run. Conditions and keys are cut to
/// what `width` columns have room for, but for VERBOSE; 0: the columns of a terminal that is not known.
std::string PlanTreeText(const Explanation& explanation, size_t width);

/// The same in the form of PostgreSQL's EXPLAIN (FORMAT JSON): an array of one object, whose "Plan" is the tree.
std::string PlanTreeJson(const Explanation& explanation);

/// The same as a page of HTML that needs nothing else.
std::string PlanTreeHtml(const Explanation& explanation);

/// The one of them that EXPLAIN asks for.
std::string ExplanationText(const Explanation& explanation, size_t width);

}  // namespace tessera
