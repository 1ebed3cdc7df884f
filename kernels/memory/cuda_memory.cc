#include "kernels/memory/cuda_memory.h"

#include <string>

namespace tessera::kernels {

Status CudaStatus(cudaError_t error, const char* call, const char* file, int line) {
  cudaGetLastError();  // an error that is not sticky must not be met again by the next call
  const ErrorCode code = error == cudaErrorMemoryAllocation ? ErrorCode::kResource : ErrorCode::kDevice;
  return {code, std::string(call) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ", " + file +
                    ":" + std::to_string(line) + ")"};
}

size_t DeviceBuffer::Rounded(size_t bytes) {
  // A little more than asked for, so that slow growth does not allocate each time.
  return (bytes + bytes / 4 + 4095) / 4096 * 4096;
}

Status DeviceBuffer::Reserve(size_t bytes) {
  if (bytes <= bytes_) return Status::Ok();
  Free();
  CUDA_TRY(cudaMalloc(&data_, Rounded(bytes)));
  bytes_ = Rounded(bytes);
  return Status::Ok();
}

void DeviceBuffer::Free() {
  if (data_ != nullptr) cudaFree(data_);
  data_ = nullptr;
  bytes_ = 0;
}

Status PinnedBuffer::Reserve(size_t bytes) {
  if (bytes <= bytes_) return Status::Ok();
  Free();
  const size_t rounded = (bytes + bytes / 4 + 4095) / 4096 * 4096;
  CUDA_TRY(cudaHostAlloc(&data_, rounded, cudaHostAllocDefault));
  bytes_ = rounded;
  return Status::Ok();
}

void PinnedBuffer::Free() {
  if (data_ != nullptr) cudaFreeHost(data_);
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace tessera::kernels
