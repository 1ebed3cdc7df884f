// Kernels that bring groups to the ranks of their keys: how the host starts them. Private to kernels/.
//
// Start at: StartCountParts.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/launch/sinks.h"
#include "vm/program/opcode.h"

namespace tessera::kernels {

/// Ranks that can take part.
inline constexpr uint32_t kMaxParts = 1024;
/// Aggregates of groups that are exchanged.
inline constexpr uint32_t kMaxAddedStates = 64;

/// The aggregates whose states are added.
struct AddedStates {
  vm::Opcode op[kMaxAddedStates] = {};
  uint32_t word[kMaxAddedStates] = {};
  uint32_t count = 0;
};

/// Groups outside of a table: records and states, one after the other.
struct LooseGroups {
  uint64_t* records = nullptr;
  uint64_t* states = nullptr;
  uint64_t n = 0;
};

/// Adds to counts[p] how many of the first `groups` groups belong to part p. `counts` is cleared before.
cudaError_t StartCountParts(const DeviceGroups& table, uint32_t groups, uint32_t parts, uint32_t* counts,
                            cudaStream_t stream);
/// Copies the groups, those of one part together. `places`: where the next group of each part goes, changed on the way.
cudaError_t StartCutParts(const DeviceGroups& table, uint32_t groups, uint32_t parts, uint32_t* places,
                          const LooseGroups& to, cudaStream_t stream);
/// Enters groups, of which no two have the same key, into the table, which may have some of them already.
/// control->groups, the number of those that there are, is counted on. REQUIRES: there is room for all.
cudaError_t StartEnterGroups(const LooseGroups& from, const DeviceGroups& table, const AddedStates& states,
                             Control* control, cudaStream_t stream);

}  // namespace tessera::kernels
