// Groups on their way to the ranks of their keys.

#include "kernels/device/add_states.cuh"
#include "kernels/device/group_table.cuh"
#include "kernels/ranks/group_parts.h"
#include "kernels/ranks/parts.cuh"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;

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

__global__ void CountGroups(const DeviceGroups table, uint32_t groups, uint32_t parts, uint32_t* counts) {
  CountParts(
      groups, parts, [&](uint32_t g) { return PartOf(table, g, parts); }, counts);
}

__global__ void CutGroups(const DeviceGroups table, uint32_t groups, uint32_t parts, uint32_t* places, LooseGroups to) {
  const auto copy = [&](uint32_t g, uint64_t at) {
    for (uint32_t w = 0; w < table.record_words; ++w)
      to.records[at * table.record_words + w] = table.records[uint64_t{g} * table.record_words + w];
    for (uint32_t w = 0; w < table.state_words; ++w)
      to.states[at * table.state_words + w] = table.states[uint64_t{g} * table.state_words + w];
  };
  DealToParts(
      groups, parts, [&](uint32_t g) { return PartOf(table, g, parts); }, places, copy);
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
  CountGroups<<<PartsBlocks(groups), kPartsBlock, 0, stream>>>(table, groups, parts, counts);
  return cudaGetLastError();
}

cudaError_t StartCutParts(const DeviceGroups& table, uint32_t groups, uint32_t parts, uint32_t* places,
                          const LooseGroups& to, cudaStream_t stream) {
  if (groups == 0) return cudaSuccess;
  CutGroups<<<PartsBlocks(groups), kPartsBlock, 0, stream>>>(table, groups, parts, places, to);
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
