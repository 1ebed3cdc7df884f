// Memory of runs that is done with: the next run takes it without asking CUDA, which takes a microsecond for a small piece,
// and for a large one a millisecond for each gigabyte that it maps anew. What the pool gave is a slab here, from which pieces
// are cut, because the next query asks for other sizes than the last one. Private to kernels/memory/.
//
// Start at: SpareMemory. One thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/slab_ranges.h"

namespace tessera::kernels {

class SpareMemory {
 public:
  SpareMemory();
  /// REQUIRES: it is empty, or the stream and the pool of its slabs are still there.
  ~SpareMemory() { Free(UINT64_MAX); }
  SpareMemory(const SpareMemory&) = delete;
  SpareMemory& operator=(const SpareMemory&) = delete;

  /// Pieces begin at multiples of this many bytes, as CUDA's own do.
  static constexpr uint64_t kAlignment = 512;

  /// A piece of that many bytes, or nullptr. REQUIRES: a multiple of kAlignment, not 0.
  void* Take(uint64_t bytes) { return ranges_.Take(bytes); }
  /// Keeps a piece that Take or the pool gave, and that work on `stream` used, the same for all pieces. What Free could
  /// give back is at most a part of `budget`; more is given back to the pool. Allocates nothing.
  void Put(void* data, uint64_t bytes, cudaStream_t stream, uint64_t budget);
  /// Gives slabs of which no piece is taken back to the pool, until `bytes` are given back or there are no more.
  void Free(uint64_t bytes);
  /// Gives back all of these, and waits until nothing uses them.
  cudaError_t FreeAndWait();
  /// What is kept.
  uint64_t bytes() const { return ranges_.free_bytes(); }
  /// That part of it which Free can't give back, because it lies beside pieces that are taken.
  uint64_t held_bytes() const { return ranges_.held_bytes(); }

 private:
  /// The slab that was used longest ago. false: of all slabs pieces are taken.
  bool GiveBackSlab();

  SlabRanges ranges_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace tessera::kernels
