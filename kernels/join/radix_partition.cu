// Radix partitioning: one kernel counts the rows of each partition, another moves every row into its partition. A block
// moves some thousand rows at a time. It brings them into the order of their partitions in shared memory, column by
// column, and writes runs.

#include <algorithm>
#include <type_traits>

#include "kernels/device/row_vectors.cuh"
#include "kernels/join/radix_partition.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 512;
/// How many vectors of four adjacent rows of a tile a thread has.
constexpr uint32_t kVectors = kRadixTileRows / (4 * kBlock);
/// Columns end in zeros up to a multiple of this many rows.
constexpr uint32_t kPaddedRows = 16;
static_assert(kPaddedRows * 8 <= kBlock);
/// If this many lanes of a warp have rows of the same partition, the warp counts them together. Otherwise their atomic
/// additions would come one after the other.
constexpr int kCrowd = 8;
static_assert(kBlock >= kMostRadixParts && kMostRadixParts == 256, "a thread for each part, whose number has 8 bits");

/// A tile of a source.
struct RadixTile {
  const RadixSource* columns;
  uint32_t first, rows;
};
__device__ __forceinline__ RadixTile FindTile(const RadixPartition& p, uint32_t tile) {
  // The last source that does not start after the tile.
  uint32_t low = 0, high = p.sources;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (__ldg(p.first_tile + middle) <= tile) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const uint32_t first = (tile - __ldg(p.first_tile + low)) * kRadixTileRows;
  return {p.from + uint64_t{low} * p.columns, first, min(kRadixTileRows, __ldg(p.source_rows + low) - first)};
}

/// The first row, within its tile, of a thread's vector.
__device__ __forceinline__ uint32_t RowOf(uint32_t vector) { return (vector * kBlock + threadIdx.x) * 4; }

/// Codes, as in the partitions, of the four rows from `row` on. Word: 32 bits where they fit.
template <class Word>
__device__ __forceinline__ void LoadFour(const RadixSource& c, uint64_t null_code, uint32_t row, Word (&code)[4]) {
  switch (c.width) {
    case 0:
      code[0] = code[1] = code[2] = code[3] = 0;
      break;
    case 1: {
      const uint32_t v = __ldg(reinterpret_cast<const uint32_t*>(c.codes + row));
      code[0] = v & 255, code[1] = v >> 8 & 255, code[2] = v >> 16 & 255, code[3] = v >> 24;
      break;
    }
    case 2: {
      const uint2 v = __ldg(reinterpret_cast<const uint2*>(c.codes + uint64_t{row} * 2));
      code[0] = v.x & 65535, code[1] = v.x >> 16, code[2] = v.y & 65535, code[3] = v.y >> 16;
      break;
    }
    case 4: {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(c.codes + uint64_t{row} * 4));
      code[0] = v.x, code[1] = v.y, code[2] = v.z, code[3] = v.w;
      break;
    }
    default: {
      const ulonglong2* at = reinterpret_cast<const ulonglong2*>(c.codes + uint64_t{row} * 8);
      const ulonglong2 v = __ldg(at), w = __ldg(at + 1);
      code[0] = static_cast<Word>(v.x), code[1] = static_cast<Word>(v.y);
      code[2] = static_cast<Word>(w.x), code[3] = static_cast<Word>(w.y);
      // (Where codes of 8 bytes become shorter ones NULL may only show in the upper half.)
      if (sizeof(Word) < 8 && c.has_null_code) {
        const uint64_t whole[4] = {v.x, v.y, w.x, w.y};
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i)
          code[i] = whole[i] == c.null_code ? static_cast<Word>(null_code - c.add) : code[i];
      }
    }
  }
  if (c.all_null) {
    code[0] = code[1] = code[2] = code[3] = static_cast<Word>(null_code);
    return;
  }
  const bool nulls = c.has_null_code && (sizeof(Word) == 8 || c.width < 8);
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const bool null = nulls && code[i] == static_cast<Word>(c.null_code);
    code[i] = null ? static_cast<Word>(null_code) : static_cast<Word>(code[i] + c.add);
  }
}

template <class Word>
__device__ __forceinline__ uint32_t PartOf(const RadixPartition& p, Word number) {
  if (p.key.probe == ProbeKind::kHash32) number = static_cast<Word>(JoinSlot32(static_cast<uint32_t>(number), 0));
  if (sizeof(Word) == 8 && p.key.probe == ProbeKind::kHash64) number = JoinProduct64(number);
  return static_cast<uint32_t>(number >> p.key.shift) & (p.key.parts - 1);
}

/// A block's first key column while it finds partitions: in registers, if there are enough.
template <class Word>
using FirstKey = std::conditional_t<sizeof(Word) == 4, const RadixSource, const RadixSource&>;

/// The partitions of the four rows from `row` of the tile on, or of fewer at its end. `first` is the tile's first
/// column.
template <class Word>
__device__ __forceinline__ void FindParts(const RadixPartition& p, const RadixTile& tile, const RadixSource& first,
                                          uint32_t row, uint32_t (&part)[4]) {
  Word number[4] = {};
  if (row < tile.rows) LoadFour<Word>(first, p.to[0].null_code, tile.first + row, number);
    // (The first key's stride is 1.)
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) number[i] += static_cast<Word>(p.number_add);
  for (uint32_t k = 1; k < p.keys && row < tile.rows; ++k) {
    Word code[4];
    LoadFour<Word>(tile.columns[k], p.to[k].null_code, tile.first + row, code);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) number[i] += code[i] * static_cast<Word>(p.number_stride[k]);
  }
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) part[i] = PartOf(p, number[i]);
}

/// Adds one to count[part[i]] for each row that there is, and sets `rank` to what was there. All lanes call it.
__device__ __forceinline__ void CountParts(const uint32_t (&part)[4], uint32_t rows, uint32_t* count,
                                           uint32_t (&rank)[4]) {
  const uint32_t lane = threadIdx.x & 31;
  const uint32_t first = __shfl_sync(kAllLanes, part[0], 0);
  if (__popc(__ballot_sync(kAllLanes, part[0] == first)) < kCrowd) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      if (i < rows) rank[i] = atomicAdd(count + part[i], 1u);
    }
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t crowd = __ballot_sync(kAllLanes, i < rows && part[i] == first);
    uint32_t before = 0;
    if (lane == 0) before = atomicAdd(count + first, static_cast<uint32_t>(__popc(crowd)));
    before = __shfl_sync(kAllLanes, before, 0);
    if ((crowd >> lane & 1) != 0) {
      rank[i] = before + static_cast<uint32_t>(__popc(crowd & ((1u << lane) - 1)));
    } else if (i < rows) {
      rank[i] = atomicAdd(count + part[i], 1u);
    }
  }
}

template <class Word>
__global__ void __launch_bounds__(kBlock) CountRadixRows(const __grid_constant__ RadixPartition p) {
  __shared__ uint32_t count[kBlock];
  count[threadIdx.x] = 0;
  __syncthreads();
  for (uint32_t t = blockIdx.x; t < p.tiles; t += gridDim.x) {
    const RadixTile tile = FindTile(p, t);
    const RadixSource key = tile.columns[0];
#pragma unroll 4
    for (uint32_t v = 0; v < kVectors; ++v) {
      const uint32_t row = RowOf(v), rows = row < tile.rows ? min(4u, tile.rows - row) : 0;
      uint32_t part[4], rank[4];
      FindParts<Word>(p, tile, key, row, part);
      CountParts(part, rows, count, rank);
    }
  }
  __syncthreads();
  if (count[threadIdx.x] != 0) atomicAdd(p.next + threadIdx.x, count[threadIdx.x]);
}

/// The sum of v over the threads before this one. One block of kBlock threads calls it; `warps` has a word a warp.
__device__ __forceinline__ uint32_t SumBefore(uint32_t v, uint32_t* warps) {
  const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  uint32_t sum = v;
#pragma unroll
  for (uint32_t d = 1; d < 32; d <<= 1) {
    const uint32_t other = __shfl_up_sync(kAllLanes, sum, d);
    if (lane >= d) sum += other;
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  uint32_t before = 0;
  for (uint32_t w = 0; w < warp; ++w) before += warps[w];
  return before + sum - v;
}

/// The first block turns counts into the rows where the parts begin; all find the places of tiles.
__global__ void __launch_bounds__(kBlock) FindRadixPlaces(const __grid_constant__ RadixPartition p) {
  __shared__ uint32_t warps[kBlock / 32];
  if (blockIdx.x == 0) {
    const bool is_part = threadIdx.x < kMostRadixParts;
    const uint32_t before = SumBefore(is_part ? p.next[threadIdx.x] : 0, warps);
    if (is_part) p.next[threadIdx.x] = before;
    // What is after the last row may be read, as in a tablet.
    for (uint32_t c = 0; c < p.columns; ++c) {
      const uint32_t width = p.to[c].width, bytes = (kPaddedRows - p.rows % kPaddedRows) % kPaddedRows * width;
      if (threadIdx.x < bytes) p.to[c].codes[uint64_t{p.rows} * width + threadIdx.x] = 0;
    }
  }
  if (p.blocks == 0) return;
  const uint32_t tiles = (p.rows - 1) / kTileRows + 1;
  for (uint32_t tile = blockIdx.x * kBlock + threadIdx.x; tile < tiles; tile += gridDim.x * kBlock) {
    // The tile's block, how many tiles the block takes before it, and how many blocks before that one take as many:
    // each block has `least` tiles or one more.
    const uint32_t block = static_cast<uint32_t>((uint64_t{tile + 1} * p.blocks - 1) / tiles);
    const uint32_t first = FirstTileOf(block, p.blocks, tiles), turn = tile - first, least = tiles / p.blocks;
    p.tile_places[turn * p.blocks + (turn < least ? block : first - least * block)] = tile;
  }
}

/// A column of a tile into the order of the parts, then out.
template <class Code, class Word>
__device__ __forceinline__ void MoveColumn(const RadixPartition& p, const RadixTile& tile, uint32_t column,
                                           const uint32_t (&place)[kVectors][2], const uint8_t* part_of,
                                           const uint32_t* shift_of, Code* staged) {
  const RadixSource from = tile.columns[column];
  const uint64_t null_code = p.to[column].null_code;
#pragma unroll
  for (uint32_t v = 0; v < kVectors; ++v) {
    const uint32_t row = RowOf(v);
    if (row >= tile.rows) continue;
    Word code[4];
    LoadFour<Word>(from, null_code, tile.first + row, code);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      if (row + i < tile.rows) staged[place[v][i / 2] >> (16 * (i & 1)) & 0xFFFF] = static_cast<Code>(code[i]);
    }
  }
  __syncthreads();
  Code* const to = reinterpret_cast<Code*>(p.to[column].codes);
  for (uint32_t i = threadIdx.x; i < tile.rows; i += kBlock) {
    uint32_t at = i + shift_of[part_of[i]];
    if (p.blocks != 0) at = __ldg(p.tile_places + at / kTileRows) * kTileRows + at % kTileRows;
    to[at] = staged[i];
  }
  __syncthreads();
}

}  // namespace

template <class Word>
__global__ void __launch_bounds__(kBlock, 2) MoveRadixRows(const __grid_constant__ RadixPartition p) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ uint8_t part_of[kRadixTileRows];  ///< of the tile's rows, in the order of their parts
  __shared__ uint32_t count[kBlock], first_of[kBlock], warps[kBlock / 32];  // (threads beyond the parts have none)
  uint32_t* const shift_of = count;  // what makes a place in the tile a place among all rows
  for (uint32_t t = blockIdx.x; t < p.tiles; t += gridDim.x) {
    const RadixTile tile = FindTile(p, t);
    count[threadIdx.x] = 0;
    __syncthreads();
    uint32_t part[kVectors], place[kVectors][2];  // 8 and 16 bits a row
    FirstKey<Word> key = tile.columns[0];
#pragma unroll
    for (uint32_t v = 0; v < kVectors; ++v) {
      const uint32_t row = RowOf(v), rows = row < tile.rows ? min(4u, tile.rows - row) : 0;
      uint32_t of[4], rank[4] = {};
      FindParts<Word>(p, tile, key, row, of);
      CountParts(of, rows, count, rank);
      part[v] = of[0] | of[1] << 8 | of[2] << 16 | of[3] << 24;
      place[v][0] = rank[0] | rank[1] << 16;
      place[v][1] = rank[2] | rank[3] << 16;
    }
    __syncthreads();
    const uint32_t rows_of_part = count[threadIdx.x];
    const uint32_t first = SumBefore(rows_of_part, warps);
    first_of[threadIdx.x] = first;
    shift_of[threadIdx.x] = rows_of_part == 0 ? 0 : atomicAdd(p.next + threadIdx.x, rows_of_part) - first;
    __syncthreads();
#pragma unroll
    for (uint32_t v = 0; v < kVectors; ++v) {
      const uint32_t row = RowOf(v);
      const uint32_t of[4] = {part[v] & 255, part[v] >> 8 & 255, part[v] >> 16 & 255, part[v] >> 24};
      place[v][0] += first_of[of[0]] | first_of[of[1]] << 16;
      place[v][1] += first_of[of[2]] | first_of[of[3]] << 16;
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        if (row + i < tile.rows) part_of[place[v][i / 2] >> (16 * (i & 1)) & 0xFFFF] = static_cast<uint8_t>(of[i]);
      }
    }
    for (uint32_t c = 0; c < p.columns; ++c) {
      switch (p.to[c].width) {
        case 1:
          MoveColumn<uint8_t, uint32_t>(p, tile, c, place, part_of, shift_of, shared);
          break;
        case 2:
          MoveColumn<uint16_t, uint32_t>(p, tile, c, place, part_of, shift_of, reinterpret_cast<uint16_t*>(shared));
          break;
        case 4:
          MoveColumn<uint32_t, uint32_t>(p, tile, c, place, part_of, shift_of, reinterpret_cast<uint32_t*>(shared));
          break;
        default:
          MoveColumn<uint64_t, uint64_t>(p, tile, c, place, part_of, shift_of, reinterpret_cast<uint64_t*>(shared));
      }
    }
  }
}

cudaError_t StartRadixPartition(const RadixPartition& p, int multiprocessors, cudaStream_t stream) {
  if (p.rows == 0) return cudaSuccess;
  uint32_t width = 0;
  for (uint32_t c = 0; c < p.columns; ++c) width = std::max(width, p.to[c].width);
  bool wide = p.key.probe == ProbeKind::kHash64;
  for (uint32_t k = 0; k < p.keys; ++k) wide |= p.to[k].width > 4;
  const auto count = wide ? CountRadixRows<uint64_t> : CountRadixRows<uint32_t>;
  const auto move = wide ? MoveRadixRows<uint64_t> : MoveRadixRows<uint32_t>;
  const uint32_t shared = kRadixTileRows * width;
  const auto blocks = [&](const void* kernel, uint32_t shared_bytes, uint32_t* found) {
    int each = 0;
    const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, kBlock, shared_bytes);
    *found = std::clamp(static_cast<uint32_t>(each * multiprocessors), 1u, p.tiles);
    return error;
  };
  uint32_t counting = 0, moving = 0;
  const void* const count_kernel = reinterpret_cast<const void*>(count);
  const void* const move_kernel = reinterpret_cast<const void*>(move);
  cudaError_t error =
      cudaFuncSetAttribute(move_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (error == cudaSuccess) error = blocks(count_kernel, 0, &counting);
  if (error == cudaSuccess) error = blocks(move_kernel, shared, &moving);
  if (error == cudaSuccess) error = cudaMemsetAsync(p.next, 0, kMostRadixParts * sizeof *p.next, stream);
  if (error != cudaSuccess) return error;
  count<<<counting, kBlock, 0, stream>>>(p);
  FindRadixPlaces<<<p.blocks == 0 ? 1 : static_cast<uint32_t>(multiprocessors), kBlock, 0, stream>>>(p);
  move<<<moving, kBlock, shared, stream>>>(p);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
