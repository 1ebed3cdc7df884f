// Small things on their way to the device and back. Private to kernels/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <initializer_list>

namespace tessera::kernels {

/// Pinned memory of the host and memory of the device, either way.
struct Sending {
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;
  const uint32_t* count = nullptr;  ///< on the device: only so many pieces of `piece` bytes; nullptr: all bytes
  uint64_t piece = 0;
};
inline constexpr size_t kMostSendings = 3;

/// Copies them by one kernel. The engine that copies does one thing after the other, whatever stream it is on: behind
/// columns that are on their way a launch would wait for all of them (SSB q1.1 streamed at scale 20: 24 ms, 20 like
/// this). REQUIRES: up to kMostSendings; addresses, bytes and pieces are multiples of 8.
cudaError_t StartSend(std::initializer_list<Sending> sendings, cudaStream_t stream);

}  // namespace tessera::kernels
