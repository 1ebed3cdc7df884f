#include "kernels/memory/run_buffer.h"

#include <algorithm>

namespace tessera::kernels {

namespace {

uint64_t Rounded(uint64_t bytes) {
  constexpr uint64_t kUnit = SpareMemory::kAlignment;
  return (std::max<uint64_t>(bytes, 1) + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

bool RunBuffer::TakeSpare(GpuDevice* gpu, uint64_t bytes) {
  data_ = gpu->cache.TakeSpare(bytes);
  if (data_ == nullptr) return false;
  gpu_ = gpu;
  bytes_ = bytes;
  return true;
}

bool RunBuffer::TryAllocate(GpuDevice* gpu, uint64_t bytes) {
  bytes = Rounded(bytes);
  if (TakeSpare(gpu, bytes)) return true;
  ColumnCache& cache = gpu->cache;
  if (!cache.ClaimFree(bytes)) return false;
  if (cudaMallocFromPoolAsync(&data_, bytes, cache.pool(), gpu->stream) != cudaSuccess) {  // others use the device, too
    cudaGetLastError();
    data_ = nullptr;
    cache.Release(bytes);
    return false;
  }
  gpu_ = gpu;
  bytes_ = bytes;
  return true;
}

Status RunBuffer::Allocate(GpuDevice* gpu, uint64_t bytes) {
  bytes = Rounded(bytes);
  if (TakeSpare(gpu, bytes)) return Status::Ok();
  TESSERA_TRY(gpu->cache.Claim(bytes));
  const Status taken = gpu->Evicting([&]() -> Status {
    CUDA_TRY(cudaMallocFromPoolAsync(&data_, bytes, gpu->cache.pool(), gpu->stream));
    return Status::Ok();
  });
  if (!taken.ok()) {
    data_ = nullptr;
    gpu->cache.Release(bytes);
    if (taken.code() == ErrorCode::kResource) gpu->cache.LiveWithLess();
    return taken;
  }
  gpu_ = gpu;
  bytes_ = bytes;
  return Status::Ok();
}

void RunBuffer::Free() {
  if (data_ == nullptr) return;
  gpu_->cache.PutSpare(data_, bytes_, gpu_->stream);
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace tessera::kernels
