// Ranges of the pieces of two tables, and the pairs of pieces that can hold a match.

#include <algorithm>

#include "kernels/device/grid_search.cuh"
#include "kernels/join/grid_units.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kRangeThreads = 128;

/// Grid: (pieces, columns).
__global__ void Ranges(const __grid_constant__ RowColumns rows, const __grid_constant__ PieceRanges pieces) {
  __shared__ long long least_of[kRangeThreads / 32], greatest_of[kRangeThreads / 32];
  __shared__ uint32_t flags_of[kRangeThreads / 32];
  const uint64_t column = blockIdx.y * rows.capacity;
  const RangeKind kind = pieces.kinds[blockIdx.y];
  for (uint32_t piece = blockIdx.x; piece < pieces.pieces(); piece += gridDim.x) {
    const uint32_t first = piece * pieces.piece_rows, n = min(pieces.piece_rows, pieces.rows - first);
    // Doubles are compared in their ordered form.
    long long least = INT64_MAX, greatest = INT64_MIN;
    uint32_t flags = 0;  // 1: NULL, 2: NaN, 4: a value
    for (uint32_t i = threadIdx.x; i < n && kind != RangeKind::kUnknown; i += kRangeThreads) {
      const uint64_t at = column + first + i;
      if (rows.null[at] != 0) {
        flags |= 1;
        continue;
      }
      long long v = static_cast<long long>(rows.low[at]);
      if (kind == RangeKind::kFloat) {
        const double d = __longlong_as_double(v);
        if (d != d) flags |= 2;
        v = static_cast<long long>(OrderedFloat(d == 0 ? 0.0 : d) ^ (uint64_t{1} << 63));
      }
      flags |= 4;
      least = min(least, v);
      greatest = max(greatest, v);
    }
    flags = __reduce_or_sync(kAllLanes, flags);
    for (int d = 16; d > 0; d >>= 1) {
      least = min(least, __shfl_xor_sync(kAllLanes, least, d));
      greatest = max(greatest, __shfl_xor_sync(kAllLanes, greatest, d));
    }
    if ((threadIdx.x & 31) == 0) {
      least_of[threadIdx.x / 32] = least;
      greatest_of[threadIdx.x / 32] = greatest;
      flags_of[threadIdx.x / 32] = flags;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (uint32_t w = 1; w < kRangeThreads / 32; ++w) {
        least = min(least, least_of[w]);
        greatest = max(greatest, greatest_of[w]);
        flags |= flags_of[w];
      }
      vm::KnownRange r;
      r.unknown = kind == RangeKind::kUnknown || (flags & 2) != 0;
      r.may_be_null = kind == RangeKind::kUnknown || (flags & 1) != 0;
      r.low = 1, r.high = 0;
      if ((flags & 4) != 0) {
        const uint64_t sign = uint64_t{1} << 63;
        r.low = kind == RangeKind::kFloat ? FromOrderedFloat(static_cast<uint64_t>(least) ^ sign)
                                          : vm::range::DoubleAtMost(least);
        r.high = kind == RangeKind::kFloat ? FromOrderedFloat(static_cast<uint64_t>(greatest) ^ sign)
                                           : vm::range::DoubleAtLeast(greatest);
      }
      pieces.ranges[uint64_t{piece} * pieces.columns + blockIdx.y] = r;
    }
    __syncthreads();
  }
}

__global__ void ListUnits(const __grid_constant__ UnitSearch search) {
  FindUnits(search, 0, search.outer.pieces(), &search.totals->count, search.units);
}

}  // namespace

cudaError_t StartRanges(const RowColumns& rows, const PieceRanges& pieces, cudaStream_t stream) {
  if (pieces.rows == 0 || pieces.columns == 0) return cudaSuccess;
  const uint32_t blocks = static_cast<uint32_t>(std::min<uint64_t>(pieces.pieces(), 65536));
  Ranges<<<dim3(blocks, pieces.columns), kRangeThreads, 0, stream>>>(rows, pieces);
  return cudaGetLastError();
}

cudaError_t StartListUnits(const UnitSearch& search, cudaStream_t stream) {
  const uint64_t units = uint64_t{search.outer.pieces()} * search.inner.pieces();
  if (units == 0) return cudaSuccess;
  const uint64_t blocks = std::clamp<uint64_t>((units + kSearchThreads - 1) / kSearchThreads, 1, kSearchBlocks);
  ListUnits<<<static_cast<uint32_t>(blocks), kSearchThreads, 0, stream>>>(search);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
