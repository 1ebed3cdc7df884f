// Small things that travel to the device together. Private to kernels/.
//
// Start at: Arena::Add, Allocate, Send. One owner at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/cuda_memory.h"
#include "kernels/memory/small_copies.h"

namespace tessera::kernels {

/// Small things that travel to the device together: one copy instead of a dozen.
class Arena {
 public:
  void Clear() { bytes_ = 0; }
  /// Room for `bytes`; returns its offset.
  size_t Add(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ += (bytes + 127) / 128 * 128;
    return offset;
  }
  /// Memory for what was added, not cleared. REQUIRES: no copy from here is under way.
  Status Allocate() {
    TESSERA_TRY(host_.Reserve(bytes_));
    TESSERA_TRY(device_.Reserve(bytes_));
    return Status::Ok();
  }
  uint8_t* Host(size_t offset) const { return host_.As<uint8_t>() + offset; }
  template <class T>
  T* Device(size_t offset) const {
    return reinterpret_cast<T*>(device_.As<uint8_t>() + offset);
  }
  /// Copies what lies from `first` on to the device.
  Status Send(size_t first, cudaStream_t stream) {
    CUDA_TRY(StartSmallCopies({{device_.As<uint8_t>() + first, host_.As<uint8_t>() + first, bytes_ - first}}, stream));
    return Status::Ok();
  }

 private:
  size_t bytes_ = 0;
  PinnedBuffer host_;
  DeviceBuffer device_;
};

}  // namespace tessera::kernels
