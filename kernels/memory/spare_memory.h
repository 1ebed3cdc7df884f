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
  /// REQUIRES: all pieces are back, and their stream and pool are still there; or there never was one.
  ~SpareMemory() { Free(UINT64_MAX); }
  SpareMemory(const SpareMemory&) = delete;
  SpareMemory& operator=(const SpareMemory&) = delete;

  struct Piece {
    void* data = nullptr;
    uint64_t bytes = 0;
    cudaStream_t stream = nullptr;  ///< of what uses it: the same for all pieces
  };
  /// Pieces begin at multiples of so many bytes, as CUDA's own do.
  static constexpr uint64_t kAlignment = 512;

  /// A piece of so many bytes; data is nullptr if there is none. REQUIRES: a multiple of kAlignment, not 0.
  Piece Take(uint64_t bytes);
  /// Keeps a piece that Take or the pool gave. What is kept is at most a part of `budget`, if no piece is taken; more is given
  /// back to the pool. Allocates nothing.
  void Put(const Piece& piece, uint64_t budget);
  /// Gives slabs of which no piece is taken back to the pool, until `bytes` are given back or there are no more.
  void Free(uint64_t bytes);
  /// Gives back all of these, and waits until nothing uses them.
  cudaError_t FreeAndWait();
  /// What is kept: what no piece is taken of.
  uint64_t bytes() const { return ranges_.free_bytes(); }

 private:
  /// The slab that was used longest ago. false: of all slabs pieces are taken.
  bool GiveBackSlab();

  SlabRanges ranges_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace tessera::kernels
