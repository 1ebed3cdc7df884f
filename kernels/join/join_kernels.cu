// Building join tables: one kernel finds the ranges of the rows' columns, another puts every row into its slot.

#include <algorithm>

#include "kernels/device/group_table.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/join/join_kernels.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;
constexpr uint32_t kMostBlocks = 2048;
constexpr size_t kAtOnce = 8;

/// The parameters of a launch for several tables.
template <class T>
struct Several {
  T tables[kAtOnce];
};
static_assert(sizeof(Several<JoinBuild>) <= 4096, "kernel parameters");

uint32_t Blocks(uint64_t items) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((items + kBlock - 1) / kBlock, 1, kMostBlocks));
}

/// Grid: (parts of the rows, columns, tables).
__global__ void Summarize(const __grid_constant__ Several<RowsToSummarize> all) {
  const RowsToSummarize& table = all.tables[blockIdx.z];
  if (blockIdx.y >= table.columns) return;
  const uint64_t made = table.control != nullptr ? table.control->rows : table.rows;
  const uint64_t rows = made < table.capacity ? made : table.capacity;
  const uint64_t column = blockIdx.y * table.capacity;
  const int64_t* low = table.low + column;
  const uint8_t* null = table.null + column;
  long long least = INT64_MAX, greatest = INT64_MIN;
  uint32_t nulls = 0;
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += uint64_t{gridDim.x} * kBlock) {
    if (null[i] != 0) {
      ++nulls;
      continue;
    }
    const long long v = low[i];
    least = min(least, v);
    greatest = max(greatest, v);
  }
  nulls = __reduce_add_sync(kAllLanes, nulls);
  for (int d = 16; d > 0; d >>= 1) {
    least = min(least, __shfl_xor_sync(kAllLanes, least, d));
    greatest = max(greatest, __shfl_xor_sync(kAllLanes, greatest, d));
  }
  if ((threadIdx.x & 31) != 0) return;
  ColumnSummary& s = table.summaries[blockIdx.y];
  if (least <= greatest) {
    atomicMin(reinterpret_cast<long long*>(&s.low), least);
    atomicMax(reinterpret_cast<long long*>(&s.high), greatest);
  }
  if (nulls != 0) atomicAdd(&s.nulls, static_cast<unsigned long long>(nulls));
}

/// Puts a value into the open-addressing table, or the row into the chain that is there. A slot's last word is 0
/// (free), 1 (its key is being written) or 2; no thread waits inside a claim.
__device__ __forceinline__ uint32_t InsertWide(const JoinBuild& b, uint64_t key, uint32_t value) {
  uint4* slots = static_cast<uint4*>(b.values);
  const uint32_t home = JoinSlot64(key, b.slot_shift);
  for (uint32_t step = 0;; ++step) {
    const uint32_t at = JoinSlotOfStep<uint4>(home, step, b.slot_mask);
    uint32_t* words = reinterpret_cast<uint32_t*>(slots + at);
    uint32_t state = atomicCAS(words + 3, 0u, 1u);
    if (state == 0) {
      words[0] = static_cast<uint32_t>(key);
      words[1] = static_cast<uint32_t>(key >> 32);
      const uint32_t before = atomicExch(words + 2, value);
      __threadfence();
      atomicExch(words + 3, 2u);
      return before;
    }
    if (b.next == nullptr) continue;  // a key of its own
    while (state == 1) state = atomicAdd(words + 3, 0u);
    __threadfence();
    const volatile uint32_t* read = words;
    if (read[0] == static_cast<uint32_t>(key) && read[1] == static_cast<uint32_t>(key >> 32))
      return atomicExch(words + 2, value);
  }
}

__device__ __forceinline__ uint32_t InsertNarrow(const JoinBuild& b, uint32_t key, uint32_t value) {
  unsigned long long* slots = static_cast<unsigned long long*>(b.values);
  const unsigned long long mine = static_cast<unsigned long long>(value) << 32 | key;
  const uint32_t home = JoinSlot32(key, b.slot_shift);
  for (uint32_t step = 0;; ++step) {
    const uint32_t at = JoinSlotOfStep<uint2>(home, step, b.slot_mask);
    const unsigned long long there = atomicCAS(slots + at, 0ull, mine);
    if (there == 0) return 0;
    if (b.next != nullptr && static_cast<uint32_t>(there) == key)
      return atomicExch(reinterpret_cast<uint32_t*>(slots + at) + 1, value);
  }
}

/// f(word) for each word of the row's keys.
template <class F>
__device__ __forceinline__ void ForEachKeyWord(const JoinBuild& b, uint32_t row, F f) {
  uint32_t wide = 0;
#pragma unroll 1
  for (uint32_t k = 0; k < b.keys; ++k) {
    f(static_cast<uint64_t>(b.row_columns[k * b.row_capacity + row]));
    if ((b.wide_keys >> k & 1) != 0)
      f(static_cast<uint64_t>(b.row_columns[(b.columns + wide++) * b.row_capacity + row]));
  }
}

__device__ __forceinline__ bool HaveSameKeys(const JoinBuild& b, uint32_t row, uint32_t other) {
  uint32_t wide = 0;
  bool same = true;
#pragma unroll 1
  for (uint32_t k = 0; k < b.keys; ++k) {
    const int64_t* column = b.row_columns + k * b.row_capacity;
    same &= column[row] == column[other];
    if ((b.wide_keys >> k & 1) == 0) continue;
    column = b.row_columns + (b.columns + wide++) * b.row_capacity;
    same &= column[row] == column[other];
  }
  return same;
}

/// Grid: (parts of the rows, tables).
__global__ void BuildTables(const __grid_constant__ Several<JoinBuild> all) {
  const JoinBuild& b = all.tables[blockIdx.y];
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < b.rows; i += uint64_t{gridDim.x} * kBlock) {
    const uint32_t row = static_cast<uint32_t>(i);
    uint64_t number = 0;
    if (b.hashed != 0) {
      number = static_cast<uint64_t>(b.low[0]);
      ForEachKeyWord(b, row, [&](uint64_t word) { number = AddToKeyNumber(number, word); });
    } else {
      for (uint32_t k = 0; k < b.keys; ++k) {
        const int64_t key = b.row_columns[k * b.row_capacity + row];
        number += (static_cast<uint64_t>(key) - static_cast<uint64_t>(b.low[k])) * b.stride[k];
      }
    }
    uint32_t value = row + 1;
    if (b.packed) {
      value = b.payload == 0 ? 1 : 0;
      for (uint32_t p = 0; p < b.payload; ++p) {
        const bool is_null = b.null[p] != nullptr && b.null[p][row] != 0;
        const uint32_t field = is_null ? b.null_field[p] : static_cast<uint32_t>(b.column[p][row] - b.base[p]);
        value |= field << b.shift[p];
      }
    }
    if (b.bits != nullptr) atomicOr(b.bits + (number >> 5), 1u << (number & 31));
    uint32_t before = 0;
    switch (b.probe) {
      case ProbeKind::kDirect:
        if (b.width == 1) {
          static_cast<uint8_t*>(b.values)[number] = static_cast<uint8_t>(value);
        } else if (b.width == 2) {
          static_cast<uint16_t*>(b.values)[number] = static_cast<uint16_t>(value);
        } else if (b.next == nullptr) {
          static_cast<uint32_t*>(b.values)[number] = value;
        } else {
          before = atomicExch(static_cast<uint32_t*>(b.values) + number, value);
        }
        break;
      case ProbeKind::kHash32:
        before = InsertNarrow(b, static_cast<uint32_t>(number), value);
        break;
      case ProbeKind::kHash64:
        before = InsertWide(b, number, value);
        break;
      default:
        break;
    }
    if (b.next != nullptr) b.next[row] = before;
    if (b.hashed != 0 && before != 0 && !HaveSameKeys(b, row, before - 1)) atomicOr(b.collided, 1u);
  }
}

/// start(tables, how many, `size` of the largest) for as many tables at a time as a launch takes.
template <class T, class Size, class Start>
cudaError_t ForSeveral(const T* tables, size_t count, Size size, Start start) {
  for (size_t first = 0; first < count; first += kAtOnce) {
    const size_t n = std::min(kAtOnce, count - first);
    Several<T> all;
    uint64_t most = 0;
    for (size_t i = 0; i < n; ++i) {
      all.tables[i] = tables[first + i];
      most = std::max<uint64_t>(most, size(all.tables[i]));
    }
    if (most > 0) start(all, static_cast<uint32_t>(n), most);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t StartSummarize(const RowsToSummarize* tables, size_t count, cudaStream_t stream) {
  return ForSeveral(
      tables, count, [](const RowsToSummarize& t) { return t.columns == 0 ? 0 : t.capacity; },
      [&](const Several<RowsToSummarize>& all, uint32_t n, uint64_t rows) {
        uint32_t columns = 0;
        for (uint32_t i = 0; i < n; ++i) columns = std::max(columns, all.tables[i].columns);
        // Four rows a thread where there are many.
        Summarize<<<dim3(Blocks(rows / 4), columns, n), kBlock, 0, stream>>>(all);
      });
}

cudaError_t StartBuildTables(const JoinBuild* builds, size_t count, cudaStream_t stream) {
  return ForSeveral(
      builds, count, [](const JoinBuild& b) { return b.rows; },
      [&](const Several<JoinBuild>& all, uint32_t n, uint64_t rows) {
        BuildTables<<<dim3(Blocks(rows), n), kBlock, 0, stream>>>(all);
      });
}

}  // namespace tessera::kernels
