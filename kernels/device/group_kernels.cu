// Group tables between launches of the VM kernel.

#include <algorithm>

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

/// A block clears kBlock groups. Adjacent threads write adjacent words: a thread for each state takes three times as long.
__global__ void ClearDirectGroups(const __grid_constant__ Launch launch) {
  const uint32_t groups = launch.direct.groups * launch.direct.copies, first = blockIdx.x * kBlock;
  const uint32_t words = min(kBlock, groups - first) * launch.groups.state_words;
  uint64_t* const states = launch.groups.states + static_cast<uint64_t>(first) * launch.groups.state_words;
  for (uint32_t w = threadIdx.x; w < words; w += kBlock)
    states[w] = launch.groups.initial_state[w % launch.groups.state_words];
  if (first + threadIdx.x < groups) launch.direct.touched[first + threadIdx.x] = 0;
}

__device__ __forceinline__ bool IsTouched(const Launch& launch, uint32_t g) {
  bool touched = false;
  for (uint32_t c = 0; c < launch.direct.copies && !touched; ++c)
    touched = launch.direct.touched[c * launch.direct.groups + g] != 0;
  return touched;
}

/// Adds the states of a group that a launch has numbered by its key to those at `to`.
__device__ __forceinline__ void AddCopies(const Launch& launch, uint32_t g, uint64_t* to) {
  for (uint32_t c = 0; c < launch.direct.copies; ++c) {
    const uint32_t copy = c * launch.direct.groups + g;
    if (launch.direct.touched[copy] == 0) continue;
    AddStates(
        launch.aggregates.count,
        [&](uint32_t k) {
          return StateAt{launch.folds[k].head.op, launch.folds[k].state};
        },
        launch.groups.states + static_cast<uint64_t>(copy) * launch.groups.state_words, to);
  }
}

/// Enters the groups that a launch has numbered by their keys into the table, which may have groups already.
__global__ void EnterDirectGroups(const __grid_constant__ Launch launch, const DeviceGroups table) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  if (g >= launch.direct.groups || !IsTouched(launch, g)) return;
  const NumberKey key{launch, g};
  const uint32_t ordinal = FindOrMakeGroup(table, launch.state.control, key, key.Hash());
  if (ordinal == kTableFull) {  // the host has made room
    atomicOr(&launch.state.control->reasons, kFailed);
    return;
  }
  AddCopies(launch, g, table.states + static_cast<uint64_t>(ordinal) * table.state_words);
}

/// Adjacent numbers of groups that a thread looks at.
constexpr uint32_t kNumbersEach = 8;

/// The same for a table without groups.
__global__ void ListDirectGroups(const __grid_constant__ Launch launch, const DeviceGroups table, uint32_t begin,
                                 uint32_t end) {
  __shared__ uint32_t warps[kBlock / 32], block_first, block_groups;
  __shared__ uint32_t numbers[kBlock * kNumbersEach];
  const uint32_t first = begin + (blockIdx.x * kBlock + threadIdx.x) * kNumbersEach;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t touched = 0;
#pragma unroll
  for (uint32_t i = 0; i < kNumbersEach; ++i) {
    if (first + i < end && IsTouched(launch, first + i)) touched |= 1u << i;
  }
  const uint32_t mine = static_cast<uint32_t>(__popc(touched));
  uint32_t through = mine;
  for (uint32_t n = 1; n < 32; n *= 2) {
    const uint32_t other = __shfl_up_sync(0xFFFFFFFFu, through, n);
    if (lane >= n) through += other;
  }
  if (lane == 31) warps[warp] = through;
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t all = 0;
    for (uint32_t& w : warps) {
      const uint32_t of_warp = w;
      w = all;
      all += of_warp;
    }
    block_groups = all;
    block_first = all == 0 ? 0 : atomicAdd(&launch.state.control->groups, all);
  }
  __syncthreads();
  uint32_t* at = numbers + warps[warp] + through - mine;
  for (; touched != 0; touched &= touched - 1)
    *at++ = first + static_cast<uint32_t>(__ffs(static_cast<int>(touched))) - 1;
  __syncthreads();
  const uint32_t groups = block_groups, state_words = table.state_words;
  if (block_first + groups > table.max_groups) {  // the host has made room
    if (threadIdx.x == 0) atomicOr(&launch.state.control->reasons, kFailed);
    return;
  }
  uint64_t* const records = table.records + static_cast<uint64_t>(block_first) * table.record_words;
  uint64_t* const states = table.states + static_cast<uint64_t>(block_first) * state_words;
  for (uint32_t g = threadIdx.x; g < groups; g += kBlock)
    NumberKey{launch, numbers[g]}.Write(records + g * table.record_words);
  if (launch.direct.copies == 1) {
    for (uint32_t w = threadIdx.x; w < groups * state_words; w += kBlock) {
      const uint32_t g = w / state_words;
      states[w] = launch.groups.states[static_cast<uint64_t>(numbers[g]) * state_words + (w - g * state_words)];
    }
    return;
  }
  for (uint32_t g = threadIdx.x; g < groups; g += kBlock) {
    uint64_t* const state = states + g * state_words;
    for (uint32_t w = 0; w < state_words; ++w) state[w] = table.initial_state[w];
    AddCopies(launch, numbers[g], state);
  }
}

__global__ void CountDirectGroups(const __grid_constant__ Launch launch, uint32_t* count) {
  uint32_t mine = 0;
  for (uint64_t g = uint64_t{blockIdx.x} * kBlock + threadIdx.x; g < launch.direct.groups; g += gridDim.x * kBlock)
    mine += IsTouched(launch, static_cast<uint32_t>(g));
  mine = __reduce_add_sync(0xFFFFFFFFu, mine);
  if (threadIdx.x % 32 == 0 && mine != 0) atomicAdd(count, mine);
}

__device__ __forceinline__ bool LeavesOut(const GroupTests& tests, const uint64_t* record, const uint64_t* state) {
  bool leaves_out = false, null = false, fits = true;
  for (uint32_t t = 0; t < tests.count; ++t) {
    const int128_t value = ReadValue(tests.tests[t].value, record, state, &null, &fits);
    leaves_out = leaves_out || null || (tests.tests[t].low <= value && value <= tests.tests[t].high);
  }
  for (uint32_t s = 0; s < tests.sum_count; ++s) ReadValue(tests.sums[s], record, state, &null, &fits);
  return leaves_out && fits;
}

__global__ void ListGroups(const DeviceGroups table, uint32_t groups, const __grid_constant__ GroupTests tests,
                           uint32_t* list, uint32_t* count) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  bool listed = g < groups;
  if (listed) {
    const uint64_t* record = table.records + static_cast<uint64_t>(g) * table.record_words;
    const uint64_t* state = table.states + static_cast<uint64_t>(g) * table.state_words;
    listed = !LeavesOut(tests, record, state);
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
  ClearDirectGroups<<<Blocks(launch.direct.groups * launch.direct.copies), kBlock, 0, stream>>>(launch);
  return cudaGetLastError();
}

cudaError_t StartEnterDirectGroups(const Launch& launch, const DeviceGroups& table, cudaStream_t stream) {
  EnterDirectGroups<<<Blocks(launch.direct.groups), kBlock, 0, stream>>>(launch, table);
  return cudaGetLastError();
}

cudaError_t StartListDirectGroups(const Launch& launch, const DeviceGroups& table, uint32_t begin, uint32_t end,
                                  cudaStream_t stream) {
  const uint32_t threads = (end - begin + kNumbersEach - 1) / kNumbersEach;
  ListDirectGroups<<<Blocks(threads), kBlock, 0, stream>>>(launch, table, begin, end);
  return cudaGetLastError();
}

cudaError_t StartCountDirectGroups(const Launch& launch, uint32_t* count, cudaStream_t stream) {
  constexpr uint32_t kMostBlocks = 1 << 14;
  CountDirectGroups<<<std::min(Blocks(launch.direct.groups), kMostBlocks), kBlock, 0, stream>>>(launch, count);
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
