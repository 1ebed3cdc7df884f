// Sections that only copy rows: a derived table that selects columns of its groups, for instance. Their readers can read
// what they read. Any thread.
//
// Start at: RemoveCopies.
#pragma once

#include <vector>

#include "compiler/plan/plan_sections.h"
#include "vm/program/program.h"

namespace tessera {

/// Removes the sections whose rows are columns of an earlier section's rows, all of them and in their order, if only other
/// sections read them. `estimates`: one for each section, kept in step, as `of_plan` is: what a copy did its source does.
void RemoveCopies(vm::Program* program, std::vector<double>* estimates, PlanSections* of_plan);

}  // namespace tessera
