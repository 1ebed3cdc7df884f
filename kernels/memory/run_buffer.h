// Device memory that belongs to one run. Private to kernels/.
//
// Start at: RunBuffer::Allocate. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/memory/gpu_device.h"

namespace tessera::kernels {

/// Device memory of one run, taken from the cache's pool and counted against its budget. Work on the device's stream
/// may use it until it is freed, and what is freed may be taken again at once: the stream keeps the order.
class RunBuffer {
 public:
  RunBuffer() = default;
  ~RunBuffer() { Free(); }
  RunBuffer(const RunBuffer&) = delete;
  RunBuffer& operator=(const RunBuffer&) = delete;

  /// REQUIRES: empty.
  Status Allocate(GpuDevice* gpu, uint64_t bytes);
  /// The same for what can be done without: takes free memory only and evicts no cached column. false: there is not
  /// enough.
  bool TryAllocate(GpuDevice* gpu, uint64_t bytes);
  /// Memory for `bytes` in place of what there was, which is given back first.
  Status Renew(GpuDevice* gpu, uint64_t bytes) {
    Free();
    return Allocate(gpu, bytes);
  }
  void Free();
  uint64_t bytes() const { return bytes_; }
  template <class T>
  T* As() const {
    return static_cast<T*>(data_);
  }
  friend void swap(RunBuffer& a, RunBuffer& b) {
    std::swap(a.gpu_, b.gpu_);
    std::swap(a.data_, b.data_);
    std::swap(a.bytes_, b.bytes_);
  }

 private:
  bool TakeSpare(GpuDevice* gpu, uint64_t bytes);

  GpuDevice* gpu_ = nullptr;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace tessera::kernels
