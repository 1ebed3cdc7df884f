// Loop-invariant code motion: what of a product's conditions and of what follows them depends on one side only is
// computed once for each row of that side, not once for each pair. Private to compiler/.
//
// Start at: HoistFromProduct.
#pragma once

#include "compiler/planner.h"

namespace tessera {

/// As many expressions are moved on each side. A computed column is one more of a join table, and a GPU keeps the
/// ranges of its first 32 columns (kernels/launch/unit_search.h).
inline constexpr size_t kMaxComputed = 16;

/// Fills plan->computed for the product of the plan's driver and its first step: the greatest expressions over one of
/// the two. An expression that can fail stays where it is: an error must only come of pairs that get to it. So do
/// values of 128 bits, which GPUs do not scan in join tables, and whatever has to do with text.
void HoistFromProduct(const Query& q, const PlanOptions& options, Plan* plan);

}  // namespace tessera
