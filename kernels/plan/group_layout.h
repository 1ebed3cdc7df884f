// Groups that blocks keep in shared memory (private groups), and groups whose number is computed from their keys
// (direct groups). Private to kernels/plan/; any thread.
//
// Start at: PlanDirect, LayOutPrivate.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/launch/launch.h"
#include "kernels/plan/join_shape.h"
#include "kernels/plan/lower.h"
#include "vm/encode/section_encoder.h"

namespace tessera::kernels {

inline uint32_t RoundUp(uint32_t n, uint32_t to) { return (n + to - 1) / to * to; }

/// Bytes of the private table for n groups. Fills in the offsets if `layout` is not nullptr. REQUIRES: `at` is a
/// multiple of 16.
uint32_t LayOutPrivate(const LoweredProgram& lowered, bool direct, uint32_t n, uint32_t at, Layout* layout,
                       std::vector<DeviceInstruction>* folds);

/// Plans direct groups: possible if the keys are copies of columns whose values in these tablets form a domain of at
/// most `most` groups. Returns the size of the domain, or 0.
uint32_t PlanDirect(const LoweredProgram& lowered, const std::vector<const vm::TabletEncoding*>& tablets,
                    const std::vector<const JoinShape*>& joins, uint32_t most, DirectKey* keys);

}  // namespace tessera::kernels
