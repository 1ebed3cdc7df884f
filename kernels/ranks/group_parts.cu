// Groups on their way to the ranks of their keys.

#include "kernels/device/add_states.cuh"
#include "kernels/device/group_table.cuh"
#include "kernels/ranks/group_parts.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;
/// Groups of a thread: a block's parts are reserved together, one addition for each part.
constexpr uint32_t kGroupsPerThread = 16, kGroupsPerBlock = kBlock * kGroupsPerThread;
uint32_t Blocks(uint64_t groups) { return static_cast<uint32_t>((groups + kGroupsPerBlock - 1) / kGroupsPerBlock); }

/// The key of a group, as its record has it.
struct RecordKey {
  const uint64_t* record;
  uint32_t words;

  __device__ __forceinline__ uint64_t Hash() const {  // as RowKey::Hash: the words, then the NULL bits
    KeyHash hash;
    for (uint32_t w = 1; w < words; ++w) hash.Add(record[w]);
    hash.Add(record[0]);
    return hash.Finish();
  }
  __device__ __forceinline__ bool Equals(const uint64_t* other) const {
    bool equal = true;
    for (uint32_t w = 0; w < words; ++w)
      equal &= __ldcg(reinterpret_cast<const unsigned long long*>(other + w)) == record[w];
    return equal;
  }
  __device__ __forceinline__ void Write(uint64_t* other) const {
    for (uint32_t w = 0; w < words; ++w) other[w] = record[w];
  }
};

/// The same on every rank. Other bits than those that address the table, which is filled evenly then.
__device__ __forceinline__ uint32_t PartOf(const DeviceGroups& table, uint32_t group, uint32_t parts) {
  const RecordKey key{table.records + uint64_t{group} * table.record_words, table.record_words};
  const uint64_t mixed = (key.Hash() ^ 0x51ED270B9F1D3A2Du) * 0x9E3779B97F4A7C15u;
  return static_cast<uint32_t>((mixed >> 32) * parts >> 32);
}

__global__ void CountParts(const DeviceGroups table, uint32_t groups, uint32_t parts, uint32_t* counts) {
  __shared__ uint32_t mine[kMaxParts];
  for (uint32_t p = threadIdx.x; p < parts; p += kBlock) mine[p] = 0;
  __syncthreads();
  const uint32_t first = blockIdx.x * kGroupsPerBlock;
  for (uint32_t g = first + threadIdx.x; g < groups && g < first + kGroupsPerBlock; g += kBlock)
    atomicAdd(&mine[PartOf(table, g, parts)], 1u);
  __syncthreads();
  for (uint32_t p = threadIdx.x; p < parts; p += kBlock) {
    if (mine[p] > 0) atomicAdd(&counts[p], mine[p]);
  }
}

__global__ void CutParts(const DeviceGroups table, uint32_t groups, uint32_t parts, uint32_t* places, LooseGroups to) {
  __shared__ uint32_t mine[kMaxParts];
  for (uint32_t p = threadIdx.x; p < parts; p += kBlock) mine[p] = 0;
  __syncthreads();
  const uint32_t first = blockIdx.x * kGroupsPerBlock;
  uint32_t part[kGroupsPerThread], place[kGroupsPerThread];
#pragma unroll
  for (uint32_t k = 0; k < kGroupsPerThread; ++k) {
    const uint32_t g = first + k * kBlock + threadIdx.x;
    if (g >= groups) continue;
    part[k] = PartOf(table, g, parts);
    place[k] = atomicAdd(&mine[part[k]], 1u);
  }
  __syncthreads();
  for (uint32_t p = threadIdx.x; p < parts; p += kBlock) {
    if (mine[p] > 0) mine[p] = atomicAdd(&places[p], mine[p]);
  }
  __syncthreads();
#pragma unroll
  for (uint32_t k = 0; k < kGroupsPerThread; ++k) {
    const uint32_t g = first + k * kBlock + threadIdx.x;
    if (g >= groups) continue;
    const uint64_t at = mine[part[k]] + place[k];
    for (uint32_t w = 0; w < table.record_words; ++w)
      to.records[at * table.record_words + w] = table.records[uint64_t{g} * table.record_words + w];
    for (uint32_t w = 0; w < table.state_words; ++w)
      to.states[at * table.state_words + w] = table.states[uint64_t{g} * table.state_words + w];
  }
}

__global__ void EnterGroups(LooseGroups from, const DeviceGroups table, const __grid_constant__ AddedStates states,
                            Control* control) {
  const uint64_t g = uint64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (g >= from.n) return;
  const RecordKey key{from.records + g * table.record_words, table.record_words};
  const uint32_t ordinal = FindOrMakeGroup(table, control, key, key.Hash());
  if (ordinal == kTableFull) {  // the host has made room
    atomicOr(&control->reasons, kFailed);
    return;
  }
  AddStates(
      states.count,
      [&](uint32_t k) {
        return StateAt{states.op[k], states.word[k]};
      },
      from.states + g * table.state_words, table.states + uint64_t{ordinal} * table.state_words);
}

}  // namespace

cudaError_t StartCountParts(const DeviceGroups& table, uint32_t groups, uint32_t parts, uint32_t* counts,
                            cudaStream_t stream) {
  if (groups == 0) return cudaSuccess;
  CountParts<<<Blocks(groups), kBlock, 0, stream>>>(table, groups, parts, counts);
  return cudaGetLastError();
}

cudaError_t StartCutParts(const DeviceGroups& table, uint32_t groups, uint32_t parts, uint32_t* places,
                          const LooseGroups& to, cudaStream_t stream) {
  if (groups == 0) return cudaSuccess;
  CutParts<<<Blocks(groups), kBlock, 0, stream>>>(table, groups, parts, places, to);
  return cudaGetLastError();
}

cudaError_t StartEnterGroups(const LooseGroups& from, const DeviceGroups& table, const AddedStates& states,
                             Control* control, cudaStream_t stream) {
  if (from.n == 0) return cudaSuccess;
  const auto blocks = static_cast<uint32_t>((from.n + kBlock - 1) / kBlock);
  EnterGroups<<<blocks, kBlock, 0, stream>>>(from, table, states, control);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
