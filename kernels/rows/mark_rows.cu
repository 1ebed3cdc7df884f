// Marking rows.

#include <algorithm>

#include "kernels/rows/mark_rows.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;
constexpr uint64_t kMostBlocks = 1 << 14;

/// Rows that lie beside each other are often found by lanes beside each other: their bits are set together.
__global__ void MarkRows(const uint64_t* numbers, uint64_t rows, const __grid_constant__ RowBits bits) {
  for (uint64_t i = uint64_t{blockIdx.x} * kBlock + threadIdx.x; i < rows; i += uint64_t{gridDim.x} * kBlock) {
    const uint64_t number = numbers[i];
    if (number >= bits.end) continue;
    const uint64_t word = number / 32;
    const uint32_t lanes = __match_any_sync(__activemask(), word);
    const uint32_t mine = __reduce_or_sync(lanes, 1u << (number % 32));
    if (threadIdx.x % 32 != static_cast<uint32_t>(__ffs(static_cast<int>(lanes))) - 1) continue;
    atomicOr(bits.words + word, mine);
    bits.tablets[number >> bits.tablet_shift] = 1;
  }
}

}  // namespace

cudaError_t StartMarkRows(const uint64_t* numbers, uint64_t rows, const RowBits& bits, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const uint64_t blocks = std::min((rows + kBlock - 1) / kBlock, kMostBlocks);
  MarkRows<<<static_cast<uint32_t>(blocks), kBlock, 0, stream>>>(numbers, rows, bits);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
