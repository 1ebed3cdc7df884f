#include "kernels/memory/spare_memory.h"

#include <algorithm>

#include "kernels/memory/cuda_memory.h"

namespace tessera::kernels {
namespace {

/// How many slabs are kept, and the part of the budget that one of them and all that is free may have.
constexpr size_t kMostSlabs = 128;
constexpr uint64_t kSlabShare = 16, kShare = 8;

}  // namespace

SpareMemory::SpareMemory() : ranges_(kMostSlabs) {}

SpareMemory::Piece SpareMemory::Take(uint64_t bytes) {
  uint8_t* const data = ranges_.Take(bytes);
  return data == nullptr ? Piece{} : Piece{data, bytes, stream_};
}

void SpareMemory::Put(const Piece& piece, uint64_t budget) {
  stream_ = piece.stream;
  auto* const data = static_cast<uint8_t*>(piece.data);
  const bool is_new = !ranges_.Holds(data);
  if (is_new && (piece.bytes > budget / kSlabShare || (ranges_.is_full() && !GiveBackSlab()))) {
    IgnoreError(cudaFreeAsync(data, stream_));
    return;
  }
  ranges_.Put({data, piece.bytes});
  while (bytes() > budget / kShare && GiveBackSlab()) continue;
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
  if (bytes() == 0) return cudaSuccess;  // and there may be no stream
  Free(UINT64_MAX);
  return cudaStreamSynchronize(stream_);
}

}  // namespace tessera::kernels
