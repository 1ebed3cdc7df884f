#include "kernels/memory/spare_memory.h"

#include <algorithm>

#include "kernels/cuda/cuda_memory.h"

namespace tessera::kernels {
namespace {

/// How many slabs are kept, and the part of the budget that one of them, and all that can be given back, may have.
constexpr size_t kMostSlabs = 128;
constexpr uint64_t kSlabShare = 16, kShare = 8;

}  // namespace

SpareMemory::SpareMemory() : ranges_(kMostSlabs) {}

void SpareMemory::Put(void* data, uint64_t bytes, cudaStream_t stream, uint64_t budget) {
  stream_ = stream;
  const SlabRanges::Range piece{static_cast<uint8_t*>(data), bytes};
  const bool is_new = !ranges_.Holds(piece.data);
  if (is_new && (bytes > budget / kSlabShare || (ranges_.is_full() && !GiveBackSlab()))) {
    IgnoreError(cudaFreeAsync(data, stream_));
    return;
  }
  ranges_.Put(piece);
  while (this->bytes() - held_bytes() > budget / kShare && GiveBackSlab()) continue;
}

bool SpareMemory::GiveBackSlab() {
  const SlabRanges::Range slab = ranges_.RemoveSlab();
  if (slab.bytes > 0) IgnoreError(cudaFreeAsync(slab.data, stream_));
  return slab.bytes > 0;
}

void SpareMemory::Free(uint64_t bytes) {
  const uint64_t kept = this->bytes() - std::min(this->bytes(), bytes);
  while (this->bytes() > kept && GiveBackSlab()) continue;
}

cudaError_t SpareMemory::FreeAndWait() {
  if (bytes() == held_bytes()) return cudaSuccess;  // there may be no stream
  Free(UINT64_MAX);
  return cudaStreamSynchronize(stream_);
}

}  // namespace tessera::kernels
