// Rows on their way to the ranks of their keys.

#include <algorithm>

#include "kernels/device/group_table.cuh"
#include "kernels/ranks/parts.cuh"
#include "kernels/ranks/row_parts.h"

namespace tessera::kernels {
namespace {

/// Blocks that count buckets: each adds up to kBuckets counters in the end, so there are few.
constexpr uint32_t kCountingBlocks = 1024;
/// Keys lie densely if this many times their number would fill their range.
constexpr uint64_t kDensePart = 16;

/// Integers of 64 and of 128 bits with the same value are equal, so both have two words.
__device__ __forceinline__ uint32_t BucketOf(const RowKeys& keys, const KeyBuckets& by, uint32_t row) {
  if (by.by_range) {
    const auto key = static_cast<int64_t>(keys.low[0][row]);
    if (keys.null[0][row] != 0 || key <= by.low) return 0;
    const uint64_t bucket = (static_cast<uint64_t>(key) - static_cast<uint64_t>(by.low)) >> by.shift;
    return static_cast<uint32_t>(min(bucket, uint64_t{kBuckets - 1}));
  }
  KeyHash hash;
  for (uint32_t k = 0; k < keys.count; ++k) {
    const bool null = keys.null[k][row] != 0;
    const uint64_t low = keys.low[k][row];
    const uint64_t high =
        keys.high[k] != nullptr ? keys.high[k][row] : static_cast<uint64_t>(static_cast<int64_t>(low) >> 63);
    hash.Add(null ? 0 : low);
    hash.Add(null ? 0 : high);
  }
  // Other bits than those that address a join table, which is filled evenly then.
  const uint64_t mixed = (hash.Finish() ^ 0x51ED270B9F1D3A2Du) * 0x9E3779B97F4A7C15u;
  return static_cast<uint32_t>((mixed >> 32) * kBuckets >> 32);
}

__device__ __forceinline__ uint32_t PartOf(const RowKeys& keys, const KeyBuckets& by, const RowTargets& to,
                                           uint32_t row) {
  const uint16_t target = to.targets[BucketOf(keys, by, row)];
  if (target == vm::kStay) return to.own;
  // (By the row's number alone a pattern of rows could give a rank most of them.)
  if (target == vm::kDeal) return ((row * 0x9E3779B1u >> 12) + to.own) % to.ranks;
  return target == vm::kToAll ? to.ranks : target;
}

__global__ void CountBuckets(const __grid_constant__ RowKeys keys, const KeyBuckets by, uint32_t rows,
                             uint32_t* counts) {
  __shared__ uint32_t mine[kBuckets];
  for (uint32_t b = threadIdx.x; b < kBuckets; b += kPartsBlock) mine[b] = 0;
  __syncthreads();
  for (uint64_t i = uint64_t{blockIdx.x} * kPartsBlock + threadIdx.x; i < rows; i += uint64_t{gridDim.x} * kPartsBlock)
    CountOne(mine, BucketOf(keys, by, static_cast<uint32_t>(i)));
  __syncthreads();
  for (uint32_t b = threadIdx.x; b < kBuckets; b += kPartsBlock) {
    if (mine[b] > 0) atomicAdd(&counts[b], mine[b]);
  }
}

__global__ void CountRows(const __grid_constant__ RowKeys keys, const KeyBuckets by, const RowTargets to, uint32_t rows,
                          uint32_t* counts) {
  CountParts(
      rows, to.ranks + 1, [&](uint32_t row) { return PartOf(keys, by, to, row); }, counts);
}

__global__ void ListRows(const __grid_constant__ RowKeys keys, const KeyBuckets by, const RowTargets to, uint32_t rows,
                         uint32_t* places, uint32_t* list) {
  DealToParts(
      rows, to.ranks + 1, [&](uint32_t row) { return PartOf(keys, by, to, row); }, places,
      [&](uint32_t row, uint32_t place) { list[place] = row; });
}

}  // namespace

KeyBuckets ChooseBuckets(const ColumnSummary& key, uint64_t rows, bool is_integer) {
  KeyBuckets out;
  if (!is_integer || key.low > key.high) return out;
  const uint64_t range = static_cast<uint64_t>(key.high) - static_cast<uint64_t>(key.low);
  if (range / kDensePart > rows) return out;
  out.by_range = true;
  out.low = key.low;
  while (range >> out.shift >= kBuckets) ++out.shift;
  return out;
}

RowKeys KeysOf(const DeviceRows& rows, const std::vector<SqlType>& columns, size_t keys) {
  RowKeys out;
  size_t wide = 0;
  for (size_t k = 0; k < keys; ++k) {
    out.low[k] = rows.low(k);
    if (IsWide(columns[k])) out.high[k] = rows.high(wide++);
    out.null[k] = rows.null(k);
  }
  out.count = static_cast<uint32_t>(keys);
  return out;
}

cudaError_t StartCountBuckets(const RowKeys& keys, const KeyBuckets& by, uint32_t rows, uint32_t* counts,
                              cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  CountBuckets<<<std::min(PartsBlocks(rows), kCountingBlocks), kPartsBlock, 0, stream>>>(keys, by, rows, counts);
  return cudaGetLastError();
}

cudaError_t StartCountRows(const RowKeys& keys, const KeyBuckets& by, const RowTargets& to, uint32_t rows,
                           uint32_t* counts, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  CountRows<<<PartsBlocks(rows), kPartsBlock, 0, stream>>>(keys, by, to, rows, counts);
  return cudaGetLastError();
}

cudaError_t StartListRows(const RowKeys& keys, const KeyBuckets& by, const RowTargets& to, uint32_t rows,
                          uint32_t* places, uint32_t* list, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  ListRows<<<PartsBlocks(rows), kPartsBlock, 0, stream>>>(keys, by, to, rows, places, list);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
