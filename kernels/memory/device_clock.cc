#include "kernels/memory/device_clock.h"

#include "base/clock.h"
#include "base/phase_clock.h"
#include "kernels/cuda/cuda_memory.h"

namespace tessera::kernels {

DeviceClock::~DeviceClock() {
  for (cudaEvent_t e : {begin_, end_, zero_}) {
    if (e != nullptr) IgnoreError(cudaEventDestroy(e));
  }
}

Status DeviceClock::Open() {
  for (cudaEvent_t* e : {&begin_, &end_, &zero_}) {
    if (*e == nullptr) CUDA_TRY(cudaEventCreate(e));  // an earlier call may have come so far
  }
  return Status::Ok();
}

Status DeviceClock::SetZero(cudaStream_t stream) {
  zero_nanoseconds_ = 0;
  const PhaseClock* const clock = PhaseClock::current();
  if (clock == nullptr || !clock->keeps_spans()) return Status::Ok();
  const int64_t before = PhaseClock::Nanoseconds(Clock::now());
  CUDA_TRY(cudaEventRecord(zero_, stream));
  CUDA_TRY(cudaEventSynchronize(zero_));
  zero_nanoseconds_ = before + (PhaseClock::Nanoseconds(Clock::now()) - before) / 2;
  return Status::Ok();
}

Status DeviceClock::Begin(cudaStream_t stream) {
  CUDA_TRY(cudaEventRecord(begin_, stream));
  return Status::Ok();
}

Status DeviceClock::End(cudaStream_t stream) {
  CUDA_TRY(cudaEventRecord(end_, stream));
  return Status::Ok();
}

tessera::Result<double> DeviceClock::WaitForMilliseconds() {
  CUDA_TRY(cudaEventSynchronize(end_));
  float milliseconds = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin_, end_));
  return static_cast<double>(milliseconds);
}

tessera::Result<double> DeviceClock::KernelMilliseconds() {
  float milliseconds = 0, since_zero = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin_, end_));
  PhaseClock* const clock = PhaseClock::current();
  if (clock != nullptr && zero_nanoseconds_ != 0) {
    CUDA_TRY(cudaEventElapsedTime(&since_zero, zero_, begin_));
    const int64_t start = zero_nanoseconds_ + static_cast<int64_t>(static_cast<double>(since_zero) * 1e6);
    clock->AddSpan(Phase::kKernel, 1, start, start + static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6));
  }
  return static_cast<double>(milliseconds);
}

}  // namespace tessera::kernels
