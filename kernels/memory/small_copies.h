// Small things on their way to the device and back. Private to kernels/.
//
// Start at: StartSmallCopies.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <initializer_list>

namespace tessera::kernels {

/// A copy between pinned memory of the host and memory of the device, in either direction.
struct SmallCopy {
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;
  const uint32_t* count = nullptr;  ///< on the device: how many pieces of `piece` bytes are copied; nullptr: all bytes
  uint64_t piece = 0;
};
inline constexpr size_t kMostSmallCopies = 3;

/// Copies them by one kernel. The copy engine does one copy after the other, whatever stream they are on, so a launch
/// would wait for all columns that are on their way (SSB q1.1 streamed at scale 20: 24 ms with the engine, 20 with the
/// kernel). REQUIRES: up to kMostSmallCopies; addresses, bytes and pieces are multiples of 8.
cudaError_t StartSmallCopies(std::initializer_list<SmallCopy> copies, cudaStream_t stream);

}  // namespace tessera::kernels
