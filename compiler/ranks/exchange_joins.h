// Joins whose two sides go to the rank of their key, where the build side is too large to be on every rank. A program
// knows no such join: the section that probes is cut in two at the probe. The first part emits what the second needs,
// and its rows, as those of the build side, are exchanged by key; the second probes what has come. Private to compiler/.
//
// Start at: ExchangeJoins. Pure functions; any thread.
#pragma once

#include "compiler/generate/codegen.h"
#include "compiler/plan/plan_options.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// Changes the program so that those of its joins are exchanged for which `options` say so. Joins without keys, those that
/// several sections use, and those within a recursion stay as they are.
void ExchangeJoins(const Snapshot& snapshot, const PlanOptions& options, Code* code);

}  // namespace tessera
