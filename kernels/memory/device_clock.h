// How long work on the device takes, and when it began on the host's clock. Private to kernels/.
//
// Start at: DeviceClock::Begin, KernelMilliseconds. One thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/status.h"

namespace tessera::kernels {

class DeviceClock {
 public:
  DeviceClock() = default;
  ~DeviceClock();
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  /// REQUIRES: called first; the device is current, as for all functions below.
  Status Open();
  /// If the statement of this thread keeps its spans: finds out how far the device's clock is from the host's, to some 10
  /// microseconds. Waits for the stream.
  Status SetZero(cudaStream_t stream);
  /// What is put into the stream between these two calls is measured.
  Status Begin(cudaStream_t stream);
  Status End(cudaStream_t stream);
  /// Waits for that, and returns its milliseconds.
  tessera::Result<double> WaitForMilliseconds();
  /// The same of kernels, which become a span of the statement. REQUIRES: they have ended.
  tessera::Result<double> KernelMilliseconds();

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cudaEvent_t zero_ = nullptr;    ///< of SetZero, at `zero_nanoseconds_` of the host's clock
  int64_t zero_nanoseconds_ = 0;  ///< 0: no spans are kept
};

}  // namespace tessera::kernels
