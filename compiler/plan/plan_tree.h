// A plan, and the sections that do it, as the tree that EXPLAIN shows. Private to compiler/, but for PlanText.
//
// Start at: PlanTree. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/plan/plan.h"
#include "compiler/plan/plan_node.h"
#include "compiler/plan/plan_sections.h"

namespace tessera {

PlanNode PlanTree(const Plan& plan, const PlanSections& sections);

/// Rows of VALUES, which need no program.
PlanNode ValuesNode(uint64_t rows);

/// The change that a statement makes of the rows of its query, as the step around these.
PlanNode ChangeNode(const Statement& statement, PlanNode rows);

/// One line for each step, whole, with its expected rows; its inputs are indented below it.
std::string PlanText(const PlanNode& node);

}  // namespace tessera
