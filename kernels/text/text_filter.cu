#include "kernels/text/text_filter.h"

namespace tessera::kernels {
namespace {

/// Bytes of the entries of a block that fit shared memory; those of longer ones are read where they are.
constexpr uint32_t kSharedTexts = 32 << 10;

__device__ __forceinline__ bool IsAt(const char* text, const char* part, uint32_t size) {
  for (uint32_t k = 0; k < size; ++k) {
    if (text[k] != part[k]) return false;
  }
  return true;
}

/// Where a part of `length` bytes, at least 1, occurs first in [at, end), or nullptr.
__device__ const char* FindPart(const char* at, const char* end, const char* part, uint32_t length) {
  if (at + length > end) return nullptr;
  const uint32_t known = min(length, 4u);
  uint32_t head = 0;
  for (uint32_t k = 0; k < known; ++k) head |= static_cast<uint32_t>(static_cast<uint8_t>(part[k])) << (8 * k);
  const uint32_t mask = ~0u >> (8 * (4 - known));
  // Four bytes at a time, from the word that has the first one. (Words reach over both ends of the text, but not over
  // those of the memory that it is in: only a word with a byte of the text is read.)
  const char* place = at - (reinterpret_cast<uintptr_t>(at) & 3);
  const char* const last = end - length;
  uint32_t low = *reinterpret_cast<const uint32_t*>(place);
  for (; place <= last; place += 4) {
    const uint32_t high = place + 4 < end ? *reinterpret_cast<const uint32_t*>(place + 4) : 0;
#pragma unroll
    for (uint32_t b = 0; b < 4; ++b) {
      const bool found = ((__funnelshift_r(low, high, 8 * b) ^ head) & mask) == 0;
      if (found && place + b >= at && place + b <= last && IsAt(place + b + known, part + known, length - known))
        return place + b;
    }
    low = high;
  }
  return nullptr;
}

__device__ bool Matches(const char* text, uint64_t size, const TextPattern& p) {
  const uint32_t first = p.sizes[0], last = p.sizes[1];
  if (size < first + last || !IsAt(text, p.bytes, first) || !IsAt(text + size - last, p.bytes + first, last))
    return false;
  if (p.exact != 0) return size == first;
  const char* at = text + first;
  const char* const end = text + size - last;
  const char* part = p.bytes + first + last;
  for (uint32_t k = 2; k < p.parts; ++k) {
    at = FindPart(at, end, part, p.sizes[k]);
    if (at == nullptr) return false;
    at += p.sizes[k];
    part += p.sizes[k];
  }
  return true;
}

__global__ void FilterTexts(const TextFilter filter) {
  __shared__ __align__(16) char shared[kSharedTexts];
  uint32_t low = 0, high = filter.count - 1;  // the last job whose first block is not after this one
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    if (filter.jobs[middle].first_block <= blockIdx.x) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const TextJob& job = filter.jobs[low];
  const uint32_t first = (blockIdx.x - job.first_block) * kTextBlockRows;
  const uint32_t end = min(first + kTextBlockRows, job.rows);
  const auto offset = [&](uint32_t row) { return min(job.offsets[row], job.text_bytes); };
  // From a multiple of 16 bytes on: streams begin at one, and are padded after their end.
  const uint64_t from = offset(first) & ~uint64_t{15}, to = offset(end);
  const bool fits = from <= to && to - from <= kSharedTexts;
  if (fits) {
    for (uint64_t at = threadIdx.x * uint64_t{16}; at < to - from; at += blockDim.x * uint64_t{16})
      *reinterpret_cast<uint4*>(shared + at) = *reinterpret_cast<const uint4*>(job.texts + from + at);
  }
  __syncthreads();
  const uint32_t row = first + threadIdx.x;
  if (row >= end) return;
  const uint64_t begin = offset(row), size = max(offset(row + 1), begin) - begin;
  const char* const text = fits && begin >= from && begin + size <= to ? shared + (begin - from) : job.texts + begin;
  uint32_t outcome = 0;
  for (uint32_t k = 0; k < job.patterns; ++k)
    outcome |= static_cast<uint32_t>(Matches(text, size, filter.patterns[job.first_pattern + k])) << k;
  const bool null = job.null_bytes != nullptr && job.null_bytes[row] != 0;
  job.set[row] = !null && (job.passes.bits[outcome / 64] >> (outcome % 64) & 1) != 0 ? 1 : 0;
}

}  // namespace

cudaError_t StartTextFilter(const TextFilter& filter, cudaStream_t stream) {
  FilterTexts<<<filter.blocks, kTextBlockRows, 0, stream>>>(filter);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
