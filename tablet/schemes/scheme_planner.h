// Chooses the schemes of a stream. What a stream is like (its range, runs, order, how many different values, a common
// divisor) admits schemes; each makes streams of its own, for which the same is asked, as deep as the goal allows. The
// candidates are estimated on a sample of adjacent values and ranked by the bytes they take and the time that unpacking
// them takes, which the goal weighs.
//
// Start at: PlanIntegers, PackByPlan. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tablet/schemes/compression_goal.h"
#include "tablet/schemes/packed_stream.h"
#include "tablet/schemes/scheme.h"

namespace tessera {

struct SchemePlan {
  SchemeTree tree;
  double bytes = 0;        ///< expected for the whole stream
  double nanoseconds = 0;  ///< expected to unpack a value, on the machine of unpack_cost.h
};

/// Trees for a stream of integers, the best one first; the first is what the goal wants, the others are what was
/// considered at the root. `distinct`: how many different values there are, about. `scaled`: the stream has codes of
/// floating-point numbers. Empty for kNone.
std::vector<SchemePlan> PlanIntegers(std::span<const uint64_t> values, uint64_t distinct, const ScaledCodes* scaled,
                                     CompressionGoal goal);

struct PackedPlan {
  std::vector<uint8_t> bytes;
  size_t plan = 0;  ///< which one it was
};

/// Packs `values` by the first of `plans`, or by another one of the first that takes less; for kRatio those that are close
/// to the first are tried, otherwise one if the first is not as expected. nullopt if none of them can be had.
std::optional<PackedPlan> PackByPlan(std::span<const uint64_t> values, const std::vector<SchemePlan>& plans,
                                     const ScaledCodes* scaled, CompressionGoal goal);

/// The part of its bytes that a stream has to save to be packed at all.
double LeastSaving(CompressionGoal goal);
/// zstd's level for texts; 0: texts stay as they are.
int TextLevel(CompressionGoal goal);

}  // namespace tessera
