// CUDA calls that return Status, and memory that belongs to an object. Private to kernels/.
//
// Start at: CUDA_TRY, DeviceBuffer.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace tessera::kernels {

/// kDevice (kResource if memory ran out) with the call, CUDA's words, file and line; if the process has lost the device,
/// with a hint that says so.
Status CudaStatus(cudaError_t error, const char* call, const char* file, int line);

/// Returns from the enclosing function if a CUDA call fails.
#define CUDA_TRY(call)                                                          \
  do {                                                                          \
    if (cudaError_t error_ = (call); error_ != cudaSuccess) {                   \
      return ::tessera::kernels::CudaStatus(error_, #call, __FILE__, __LINE__); \
    }                                                                           \
  } while (0)

/// For calls after whose failure there is nothing else to do: what gives something back, the last wait. CUDA's next call
/// must not meet the error again; if the device is lost it will say so itself.
inline void IgnoreError(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
}

/// Memory that grows and is kept from run to run, because an allocation costs more than a small query.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer() { Free(); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  /// At least `bytes`; what was in it is lost if it has to grow. REQUIRES: no work that uses it is under way.
  Status Reserve(size_t bytes);
  /// What Reserve takes for `bytes`.
  static size_t Rounded(size_t bytes);
  void Free();
  template <class T>
  T* As() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }
  friend void swap(DeviceBuffer& a, DeviceBuffer& b) {
    std::swap(a.data_, b.data_);
    std::swap(a.bytes_, b.bytes_);
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

/// The same on the host, pinned, so that copies run beside kernels and at the full rate of the link.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  ~PinnedBuffer() { Free(); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  Status Reserve(size_t bytes);
  void Free();
  template <class T>
  T* As() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tessera::kernels
