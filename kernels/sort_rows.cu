// Sorting rows by a column: CUB's radix sort over order-preserving keys, then every column is gathered.

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/sort_rows.h"
#include "tablet/ordered_float.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;
constexpr uint32_t kMostBlocks = 4096;

uint32_t Blocks(uint64_t items) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((items + kBlock - 1) / kBlock, 1, kMostBlocks));
}

/// Bits of a key: integers count from `low`, and NULL is one more than the greatest.
int KeyBits(const SortColumn& c) {
  const uint64_t span = static_cast<uint64_t>(c.high) - static_cast<uint64_t>(c.low);
  return c.is_float || span >= UINT64_MAX - 1 ? 64 : std::bit_width(span + 1);
}

__global__ void MakeKeys(const __grid_constant__ SortColumn c, uint64_t null_key, uint64_t* keys, uint32_t* rows) {
  for (uint32_t i = blockIdx.x * kBlock + threadIdx.x; i < c.rows; i += gridDim.x * kBlock) {
    uint64_t key = static_cast<uint64_t>(c.values[i]) - static_cast<uint64_t>(c.low);
    if (c.is_float) {
      const double v = __longlong_as_double(c.values[i]);
      key = OrderedFloat(v == 0 ? 0.0 : v);
    }
    if (c.null[i] != 0) key = null_key;
    keys[i] = key;
    rows[i] = i;
  }
}

/// Grid: (parts of the rows, columns).
template <class T>
__global__ void Gather(const T* from, T* to, uint64_t from_capacity, uint64_t to_capacity, const uint32_t* order,
                       uint32_t rows) {
  from += blockIdx.y * from_capacity;
  to += blockIdx.y * to_capacity;
  for (uint32_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += gridDim.x * kBlock) to[i] = from[order[i]];
}

uint64_t RoundUp(uint64_t n) { return (n + 255) / 256 * 256; }

/// Keys and rows before the sort, keys behind it, and what CUB needs.
struct Scratch {
  uint64_t *keys, *sorted_keys;
  uint32_t* rows;
  uint8_t* rest;
  size_t head;
  Scratch(void* scratch, uint64_t n) {
    uint8_t* at = static_cast<uint8_t*>(scratch);
    keys = reinterpret_cast<uint64_t*>(at);
    sorted_keys = reinterpret_cast<uint64_t*>(at + RoundUp(n * 8));
    rows = reinterpret_cast<uint32_t*>(at + 2 * RoundUp(n * 8));
    head = 2 * RoundUp(n * 8) + RoundUp(n * 4);
    rest = at + head;
  }
};

}  // namespace

cudaError_t SortScratchBytes(const SortColumn& column, size_t* bytes) {
  const Scratch s(nullptr, column.rows);
  const cudaError_t error = cub::DeviceRadixSort::SortPairs(nullptr, *bytes, s.keys, s.sorted_keys, s.rows, s.rows,
                                                            column.rows, 0, KeyBits(column));
  *bytes += s.head;
  return error;
}

cudaError_t StartSort(const SortColumn& column, uint32_t* order, void* scratch, size_t scratch_bytes,
                      cudaStream_t stream) {
  const Scratch s(scratch, column.rows);
  const int bits = KeyBits(column);
  const uint64_t null_key = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  MakeKeys<<<Blocks(column.rows), kBlock, 0, stream>>>(column, null_key, s.keys, s.rows);
  size_t rest = scratch_bytes - s.head;
  return cub::DeviceRadixSort::SortPairs(s.rest, rest, s.keys, s.sorted_keys, s.rows, order, column.rows, 0, bits,
                                         stream);
}

cudaError_t StartGather(const RowColumns& from, const RowColumns& to, uint32_t columns, uint32_t null_columns,
                        const uint32_t* order, uint32_t rows, cudaStream_t stream) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  Gather<<<dim3(Blocks(rows), columns), kBlock, 0, stream>>>(from.low, to.low, from.capacity, to.capacity, order, rows);
  Gather<<<dim3(Blocks(rows), null_columns), kBlock, 0, stream>>>(from.null, to.null, from.capacity, to.capacity, order,
                                                                  rows);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
