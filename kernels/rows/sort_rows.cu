// Sorting rows: words are made from the columns, CUB's radix sort brings the rows' numbers into their order, then every
// column is gathered.

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/rows/sort_rows.h"
#include "tablet/values/ordered_float.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;
constexpr uint32_t kMostBlocks = 4096;
/// Words of up to this many bits are sorted as 32-bit numbers: a third less to move in each pass.
constexpr uint32_t kNarrowBits = 32;

uint32_t Blocks(uint64_t items) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((items + kBlock - 1) / kBlock, 1, kMostBlocks));
}

/// REQUIRES: the row is not NULL, or the part is kNull.
__device__ uint64_t CodeOf(const SortPart& p, uint32_t row) {
  switch (p.code) {
    case SortCode::kNull:
      return p.null[row] != 0 ? 1 : 0;
    case SortCode::kInteger:
      return p.values[row] ^ uint64_t { 1 } << 63;
    case SortCode::kUnsigned:
      return p.values[row];
    case SortCode::kFloat: {
      const double v = __longlong_as_double(static_cast<int64_t>(p.values[row]));
      return OrderedFloat(v == 0 ? 0.0 : v);
    }
    case SortCode::kRank:
      return p.ranks[p.values[row]];
  }
  return 0;
}

__device__ bool HasCode(const SortPart& p, uint32_t row) { return p.code == SortCode::kNull || p.null[row] == 0; }

__device__ uint64_t WordOf(const SortWord& w, uint32_t row) {
  uint64_t word = 0;
  for (uint32_t i = 0; i < w.count; ++i) {
    const SortPart& p = w.parts[i];
    if (!HasCode(p, row)) continue;
    const uint64_t code = CodeOf(p, row);
    word |= (p.reversed ? p.high - code : code - p.low) << p.shift;
  }
  return word;
}

struct PartGroup {
  SortPart parts[kMostParts];
};

/// Grid: (parts of the rows, parts of the key).
__global__ void FindRanges(const __grid_constant__ PartGroup group, uint32_t rows, CodeRange* ranges) {
  const SortPart& p = group.parts[blockIdx.y];
  unsigned long long low = UINT64_MAX, high = 0;
  for (uint32_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += gridDim.x * kBlock) {
    if (!HasCode(p, i)) continue;
    const unsigned long long code = CodeOf(p, i);
    low = min(low, code);
    high = max(high, code);
  }
  for (int step = 16; step > 0; step /= 2) {
    low = min(low, __shfl_xor_sync(~0u, low, step));
    high = max(high, __shfl_xor_sync(~0u, high, step));
  }
  if (threadIdx.x % 32 != 0) return;
  // (Most warps find that others have widened the range already.)
  CodeRange& range = ranges[blockIdx.y];
  if (low < *const_cast<volatile unsigned long long*>(&range.low)) atomicMin(&range.low, low);
  if (high > *const_cast<volatile unsigned long long*>(&range.high)) atomicMax(&range.high, high);
}

/// The words of the rows rows_in[i], or i if there are none, and these rows' numbers.
template <class Word>
__global__ void MakeWords(const __grid_constant__ SortWord word, const uint32_t* rows_in, uint32_t rows, Word* words,
                          uint32_t* rows_out) {
  for (uint32_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += gridDim.x * kBlock) {
    const uint32_t row = rows_in == nullptr ? i : rows_in[i];
    words[i] = static_cast<Word>(WordOf(word, row));
    rows_out[i] = row;
  }
}

__global__ void Select(const __grid_constant__ SortWord word, const uint32_t* bound, uint32_t rows, uint32_t* selected,
                       uint32_t* count) {
  const uint64_t most = WordOf(word, *bound);
  const uint32_t lane = threadIdx.x % 32;
  for (uint32_t first = blockIdx.x * kBlock + threadIdx.x - lane; first < rows; first += gridDim.x * kBlock) {
    const uint32_t row = first + lane;
    const bool keep = row < rows && WordOf(word, row) <= most;
    const uint32_t kept = __ballot_sync(~0u, keep);
    if (kept == 0) continue;
    uint32_t at = 0;
    if (lane == 0) at = atomicAdd(count, static_cast<uint32_t>(__popc(kept)));
    at = __shfl_sync(~0u, at, 0);
    if (keep) selected[at + static_cast<uint32_t>(__popc(kept & ((1u << lane) - 1)))] = row;
  }
}

/// Grid: (parts of the rows, columns).
template <class T>
__global__ void Gather(const T* from, T* to, uint64_t from_capacity, uint64_t to_capacity, const uint32_t* order,
                       uint32_t rows) {
  from += blockIdx.y * from_capacity;
  to += blockIdx.y * to_capacity;
  for (uint32_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += gridDim.x * kBlock) {
    to[i] = from[order == nullptr ? i : order[i]];
  }
}

uint64_t RoundUp(uint64_t n) { return (n + 255) / 256 * 256; }

/// Words and rows, twice each, because a pass of the sort reads one copy and writes the other; and what CUB needs.
struct Scratch {
  uint64_t* words[2];
  uint32_t* rows[2];
  uint8_t* rest;
  size_t head;
  Scratch(void* scratch, uint64_t n) {
    uint8_t* at = static_cast<uint8_t*>(scratch);
    for (uint64_t*& w : words) {
      w = reinterpret_cast<uint64_t*>(at);
      at += RoundUp(n * 8);
    }
    for (uint32_t*& r : rows) {
      r = reinterpret_cast<uint32_t*>(at);
      at += RoundUp(n * 4);
    }
    rest = at;
    head = 2 * (RoundUp(n * 8) + RoundUp(n * 4));
  }
  template <class Word>
  cub::DoubleBuffer<Word> Words() const {
    return {reinterpret_cast<Word*>(words[0]), reinterpret_cast<Word*>(words[1])};
  }
};

template <class Word>
cudaError_t SortByWord(const SortWord& word, const uint32_t* among, uint32_t rows, const Scratch& s, size_t rest_bytes,
                       cub::DoubleBuffer<uint32_t>* order, cudaStream_t stream) {
  cub::DoubleBuffer<Word> words = s.Words<Word>();
  MakeWords<Word><<<Blocks(rows), kBlock, 0, stream>>>(word, among, rows, words.Current(), order->Current());
  return cub::DeviceRadixSort::SortPairs(s.rest, rest_bytes, words, *order, rows, 0, static_cast<int>(word.bits),
                                         stream);
}

}  // namespace

std::vector<SortWord> PackParts(const std::vector<SortPart>& parts) {
  std::vector<SortWord> words;
  for (auto p = parts.rbegin(); p != parts.rend(); ++p) {
    const uint32_t bits = p->low > p->high ? 0 : static_cast<uint32_t>(std::bit_width(p->high - p->low));
    if (bits == 0) continue;
    if (words.empty() || words.back().bits + bits > 64 || words.back().count == kMostParts) words.emplace_back();
    SortWord& w = words.back();
    w.parts[w.count] = *p;
    w.parts[w.count++].shift = static_cast<uint8_t>(w.bits);
    w.bits += bits;
  }
  return words;
}

cudaError_t StartFindRanges(const std::vector<SortPart>& parts, uint32_t rows, CodeRange* ranges, cudaStream_t stream) {
  for (size_t first = 0; first < parts.size(); first += kMostParts) {
    const size_t n = std::min<size_t>(parts.size() - first, kMostParts);
    PartGroup group;
    std::copy_n(parts.begin() + static_cast<ptrdiff_t>(first), n, group.parts);
    FindRanges<<<dim3(Blocks(rows), static_cast<uint32_t>(n)), kBlock, 0, stream>>>(group, rows, ranges + first);
  }
  return cudaGetLastError();
}

cudaError_t SortScratchBytes(uint32_t rows, size_t* bytes) {
  const Scratch s(nullptr, rows);
  cub::DoubleBuffer<uint32_t> order(s.rows[0], s.rows[1]);
  cub::DoubleBuffer<uint64_t> wide = s.Words<uint64_t>();
  cub::DoubleBuffer<uint32_t> narrow = s.Words<uint32_t>();
  size_t wide_bytes = 0, narrow_bytes = 0;
  cudaError_t error = cub::DeviceRadixSort::SortPairs(nullptr, wide_bytes, wide, order, rows);
  if (error == cudaSuccess) error = cub::DeviceRadixSort::SortPairs(nullptr, narrow_bytes, narrow, order, rows);
  *bytes = s.head + std::max(wide_bytes, narrow_bytes);
  return error;
}

cudaError_t StartSort(const std::vector<SortWord>& words, const uint32_t* among, uint32_t rows, void* scratch,
                      size_t scratch_bytes, const uint32_t** order, cudaStream_t stream) {
  const Scratch s(scratch, rows);
  const size_t rest_bytes = scratch_bytes - s.head;
  cub::DoubleBuffer<uint32_t> numbers(s.rows[0], s.rows[1]);
  if (words.empty()) {
    MakeWords<uint32_t><<<Blocks(rows), kBlock, 0, stream>>>(SortWord(), among, rows, s.Words<uint32_t>().Current(),
                                                             numbers.Current());
  }
  bool first = true;
  for (const SortWord& w : words) {
    // From the second word on the numbers are there: each thread reads one and writes it back to its place.
    const uint32_t* from = first ? among : numbers.Current();
    const auto sort = w.bits <= kNarrowBits ? SortByWord<uint32_t> : SortByWord<uint64_t>;
    if (const cudaError_t error = sort(w, from, rows, s, rest_bytes, &numbers, stream); error != cudaSuccess)
      return error;
    first = false;
  }
  *order = numbers.Current();
  return cudaGetLastError();
}

cudaError_t StartSelect(const SortWord& word, const uint32_t* bound, uint32_t rows, uint32_t* selected, uint32_t* count,
                        cudaStream_t stream) {
  Select<<<Blocks(rows), kBlock, 0, stream>>>(word, bound, rows, selected, count);
  return cudaGetLastError();
}

cudaError_t StartGather(const RowColumns& from, const RowColumns& to, uint32_t columns, uint32_t null_columns,
                        const uint32_t* order, uint32_t rows, cudaStream_t stream) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  const dim3 grid(Blocks(rows), columns), null_grid(Blocks(rows), null_columns);
  Gather<uint64_t><<<grid, kBlock, 0, stream>>>(from.low, to.low, from.capacity, to.capacity, order, rows);
  if (null_columns == 0) return cudaGetLastError();
  Gather<uint8_t><<<null_grid, kBlock, 0, stream>>>(from.null, to.null, from.capacity, to.capacity, order, rows);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
