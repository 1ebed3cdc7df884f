// Group tables between launches of the VM kernel.

#include "kernels/device/add_states.cuh"
#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/group_table.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;
uint32_t Blocks(uint32_t items) { return items == 0 ? 1 : items / kBlock + (items % kBlock != 0 ? 1 : 0); }

__global__ void Rehash(DeviceGroups table, uint32_t groups) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  if (g >= groups) return;
  const uint64_t* record = table.records + static_cast<uint64_t>(g) * table.record_words;
  KeyHash hash;  // as RowKey::Hash: the words, then the NULL bits
  for (uint32_t w = 1; w < table.record_words; ++w) hash.Add(record[w]);
  hash.Add(record[0]);
  const uint64_t h = hash.Finish();
  const unsigned long long slot = (h & 0xFFFFFFFF00000000u) | (g + 2);
  // The groups differ from each other, so the first free slot is theirs.
  for (uint64_t at = h & table.slot_mask; atomicCAS(AtomicWord(table.slots + at), 0ull, slot) != 0;)
    at = (at + 1) & table.slot_mask;
}

__global__ void Normalise(DeviceGroups table, uint32_t groups, const uint32_t* sums, uint32_t count,
                          uint32_t first_wide) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  if (g >= groups) return;
  uint64_t* states = table.states + static_cast<uint64_t>(g) * table.state_words;
  for (uint32_t k = 0; k < count; ++k) {
    uint64_t* s = states + sums[k];
    for (uint32_t part = 0; part + 1 < (k < first_wide ? 2u : 4u); ++part) {
      s[part + 1] += s[part] >> 32;
      s[part] &= 0xFFFFFFFFu;
    }
  }
}

__global__ void ClearDirectGroups(const __grid_constant__ Launch launch) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  if (g >= launch.direct_groups * launch.direct_copies) return;
  launch.touched[g] = 0;
  uint64_t* state = launch.groups.states + static_cast<uint64_t>(g) * launch.groups.state_words;
  for (uint32_t w = 0; w < launch.groups.state_words; ++w) state[w] = launch.groups.initial_state[w];
}

/// Enters the groups that a launch has numbered by their keys into the table, which may have groups already.
__global__ void EnterDirectGroups(const __grid_constant__ Launch launch, const DeviceGroups table) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  if (g >= launch.direct_groups) return;
  uint64_t* to = nullptr;
  for (uint32_t c = 0; c < launch.direct_copies; ++c) {
    const uint32_t copy = c * launch.direct_groups + g;
    if (launch.touched[copy] == 0) continue;
    if (to == nullptr) {
      const NumberKey key{launch, g};
      const uint32_t ordinal = FindOrMakeGroup(table, launch.control, key, key.Hash());
      if (ordinal == kTableFull) {  // the host has made room
        atomicOr(&launch.control->reasons, kFailed);
        return;
      }
      to = table.states + static_cast<uint64_t>(ordinal) * table.state_words;
    }
    AddStates(
        launch.aggregates,
        [&](uint32_t k) {
          return StateAt{launch.folds[k].head.op, launch.folds[k].state};
        },
        launch.groups.states + static_cast<uint64_t>(copy) * table.state_words, to);
  }
}

__device__ __forceinline__ bool LeavesOut(const GroupTest& test, const uint64_t* record, const uint64_t* state) {
  bool null = false, fits = true;
  const int128_t value = ReadValue(test.value, record, state, &null, &fits);
  return null || (fits && test.low <= value && value <= test.high);
}

__global__ void ListGroups(const DeviceGroups table, uint32_t groups, const __grid_constant__ GroupTests tests,
                           uint32_t* list, uint32_t* count) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  bool listed = g < groups;
  if (listed) {
    const uint64_t* record = table.records + static_cast<uint64_t>(g) * table.record_words;
    const uint64_t* state = table.states + static_cast<uint64_t>(g) * table.state_words;
    for (uint32_t t = 0; t < tests.count; ++t) listed = listed && !LeavesOut(tests.tests[t], record, state);
  }
  // One addition for all lanes: a single counter takes about one addition per clock.
  const uint32_t lanes = __ballot_sync(0xFFFFFFFFu, listed), lane = threadIdx.x & 31;
  uint32_t first = 0;
  if (lane == 0 && lanes != 0) first = atomicAdd(count, static_cast<uint32_t>(__popc(lanes)));
  first = __shfl_sync(0xFFFFFFFFu, first, 0);
  if (listed) list[first + static_cast<uint32_t>(__popc(lanes & ((1u << lane) - 1)))] = g;
}

__global__ void GatherGroups(const DeviceGroups table, const uint32_t* list, uint32_t listed, uint64_t* records,
                             uint64_t* states) {
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= listed) return;
  const uint64_t from = list[i];
  for (uint32_t w = 0; w < table.record_words; ++w)
    records[uint64_t{i} * table.record_words + w] = table.records[from * table.record_words + w];
  for (uint32_t w = 0; w < table.state_words; ++w)
    states[uint64_t{i} * table.state_words + w] = table.states[from * table.state_words + w];
}

__global__ void WriteGroups(const DeviceGroups table, uint32_t groups, const __grid_constant__ GroupColumns columns,
                            uint32_t* overflow) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  if (g >= groups) return;
  const uint64_t* record = table.records + static_cast<uint64_t>(g) * table.record_words;
  const uint64_t* state = table.states + static_cast<uint64_t>(g) * table.state_words;
  bool fits = true;
  for (uint32_t c = 0; c < columns.count; ++c) {
    const GroupColumn& to = columns.columns[c];
    bool null = false;
    const int128_t value = ReadValue(to.value, record, state, &null, &fits);
    to.low[g] = static_cast<uint64_t>(Low64(value));
    if (to.high != nullptr) to.high[g] = static_cast<uint64_t>(High64(value));
    to.null[g] = null ? 1 : 0;
  }
  if (!fits) atomicExch(overflow, 1u);
}

}  // namespace

cudaError_t StartClearDirectGroups(const Launch& launch, cudaStream_t stream) {
  ClearDirectGroups<<<Blocks(launch.direct_groups * launch.direct_copies), kBlock, 0, stream>>>(launch);
  return cudaGetLastError();
}

cudaError_t StartEnterDirectGroups(const Launch& launch, const DeviceGroups& table, cudaStream_t stream) {
  EnterDirectGroups<<<Blocks(launch.direct_groups), kBlock, 0, stream>>>(launch, table);
  return cudaGetLastError();
}

cudaError_t StartRehash(const DeviceGroups& table, uint32_t groups, cudaStream_t stream) {
  Rehash<<<Blocks(groups), kBlock, 0, stream>>>(table, groups);
  return cudaGetLastError();
}

cudaError_t StartNormalise(const DeviceGroups& table, uint32_t groups, const uint32_t* sums, uint32_t count,
                           uint32_t first_wide, cudaStream_t stream) {
  Normalise<<<Blocks(groups), kBlock, 0, stream>>>(table, groups, sums, count, first_wide);
  return cudaGetLastError();
}

cudaError_t StartListGroups(const DeviceGroups& table, uint32_t groups, const GroupTests& tests, uint32_t* list,
                            uint32_t* count, cudaStream_t stream) {
  ListGroups<<<Blocks(groups), kBlock, 0, stream>>>(table, groups, tests, list, count);
  return cudaGetLastError();
}

cudaError_t StartGatherGroups(const DeviceGroups& table, const uint32_t* list, uint32_t listed, uint64_t* records,
                              uint64_t* states, cudaStream_t stream) {
  GatherGroups<<<Blocks(listed), kBlock, 0, stream>>>(table, list, listed, records, states);
  return cudaGetLastError();
}

cudaError_t StartWriteGroups(const DeviceGroups& table, uint32_t groups, const GroupColumns& columns,
                             uint32_t* overflow, cudaStream_t stream) {
  WriteGroups<<<Blocks(groups), kBlock, 0, stream>>>(table, groups, columns, overflow);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
