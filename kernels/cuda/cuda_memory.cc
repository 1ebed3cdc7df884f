#include "kernels/cuda/cuda_memory.h"

#include <string>

namespace tessera::kernels {

namespace {

/// Errors after which every call of this process fails: what kernels have done cannot be undone.
bool IsLasting(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidDevice:  // a library's word for a device that was there when it was opened
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status CudaStatus(cudaError_t error, const char* call, const char* file, int line) {
  cudaGetLastError();  // an error that is not sticky must not be met again by the next call
  const ErrorCode code = error == cudaErrorMemoryAllocation ? ErrorCode::kResource : ErrorCode::kDevice;
  return {code,
          std::string(call) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ", " + file + ":" +
              std::to_string(line) + ")",
          IsLasting(error) ? "This process has lost the GPU: start it again, or SET device = host." : ""};
}

size_t DeviceBuffer::Rounded(size_t bytes) {
  // A little more than asked for, so that slow growth does not allocate each time.
  return (bytes + bytes / 4 + 4095) / 4096 * 4096;
}

Status DeviceBuffer::Reserve(size_t bytes) {
  if (bytes <= bytes_) return Status::Ok();
  Free();
  void* data = nullptr;  // what a call that fails leaves there is not known
  CUDA_TRY(cudaMalloc(&data, Rounded(bytes)));
  data_ = data;
  bytes_ = Rounded(bytes);
  return Status::Ok();
}

void DeviceBuffer::Free() {
  if (data_ != nullptr) IgnoreError(cudaFree(data_));
  data_ = nullptr;
  bytes_ = 0;
}

Status PinnedBuffer::Reserve(size_t bytes) {
  if (bytes <= bytes_) return Status::Ok();
  Free();
  const size_t rounded = (bytes + bytes / 4 + 4095) / 4096 * 4096;
  void* data = nullptr;
  CUDA_TRY(cudaHostAlloc(&data, rounded, cudaHostAllocDefault));
  data_ = data;
  bytes_ = rounded;
  return Status::Ok();
}

void PinnedBuffer::Free() {
  if (data_ != nullptr) IgnoreError(cudaFreeHost(data_));
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace tessera::kernels
