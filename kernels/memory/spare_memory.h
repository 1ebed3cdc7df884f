// Memory of runs that is done with: the next run takes it without asking CUDA, which takes a microsecond for a small piece,
// and for a large one a millisecond for each gigabyte that it maps anew. Private to kernels/memory/.
//
// Start at: SpareMemory. One thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace tessera::kernels {

class SpareMemory {
 public:
  SpareMemory();
  /// REQUIRES: it is empty, or the streams and the pool of its pieces are still there.
  ~SpareMemory() { Free(UINT64_MAX); }
  SpareMemory(const SpareMemory&) = delete;
  SpareMemory& operator=(const SpareMemory&) = delete;

  struct Piece {
    void* data = nullptr;
    uint64_t bytes = 0;
    cudaStream_t stream = nullptr;  ///< of what used it last
  };

  /// A piece of at least so many bytes, and not many more; data is nullptr if there is none. It is for work on the stream on
  /// which it was used.
  Piece Take(uint64_t bytes);
  /// Keeps a piece of a pool's memory. What is kept is at most a part of `budget`; more is given back to the pool.
  void Put(const Piece& piece, uint64_t budget);
  /// Gives at least so many bytes back to the pool, or all that there are: the smallest piece that will do, or else the
  /// largest ones.
  void Free(uint64_t bytes);
  /// Gives all back, and waits until nothing uses them.
  cudaError_t FreeAndWait();
  /// Of all pieces.
  uint64_t bytes() const { return bytes_; }

 private:
  std::vector<Piece>::iterator GiveBack(std::vector<Piece>::iterator piece);

  std::vector<Piece> pieces_;  ///< the oldest first
  uint64_t bytes_ = 0;
};

}  // namespace tessera::kernels
