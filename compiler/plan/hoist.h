// Loop-invariant code motion: a part of a grid's conditions, or of what follows them, that depends on one side only is
// computed once for each row of that side, not once for each pair. Private to compiler/.
//
// Functions of texts of a side that is joined by keys, too, are computed where its rows are stored: there a dictionary's
// entries stand for the rows.
//
// Start at: HoistFromGrid, HoistTexts. Pure functions; any thread.
#pragma once

#include "compiler/plan/plan.h"
#include "compiler/plan/plan_options.h"

namespace tessera {

/// At most this many expressions are moved on each side. A computed column is one more column of a join table, and a
/// GPU keeps the ranges of the first 32 columns only (kernels/launch/unit_search.h).
inline constexpr size_t kMaxComputed = 16;

/// Fills plan->computed for the grid of the plan's driver and its first join: the largest expressions over one of the
/// two. An expression that can fail stays where it is, because only a pair that gets to it may raise its error. Values
/// of 128 bits stay too, because GPUs do not scan them in join tables, and so does everything that reads text.
void HoistFromGrid(const PlanOptions& options, Plan* plan);

/// Fills plan->computed for inner joins by keys of stored tables: the largest functions of one of their columns that read
/// its characters, where no fewer rows look into the side than it has. REQUIRES: each join has its strategy.
void HoistTexts(Plan* plan);

}  // namespace tessera
