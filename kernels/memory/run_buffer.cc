#include "kernels/memory/run_buffer.h"

#include <algorithm>

namespace tessera::kernels {

namespace {

uint64_t Rounded(uint64_t bytes) { return (std::max<uint64_t>(bytes, 1) + 127) / 128 * 128; }

}  // namespace

bool RunBuffer::TryAllocate(GpuDevice* gpu, uint64_t bytes) {
  bytes = Rounded(bytes);
  if (gpu->TakeSpare(bytes, &data_, &bytes_)) {
    gpu_ = gpu;
    return true;
  }
  ColumnCache& cache = gpu->cache;
  if (cache.bytes() + cache.claimed() + bytes > cache.budget() || !cache.Claim(bytes).ok()) return false;
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
  if (gpu->TakeSpare(bytes, &data_, &bytes_)) {
    gpu_ = gpu;
    return Status::Ok();
  }
  Status claimed = gpu->cache.Claim(bytes);
  if (!claimed.ok()) {
    gpu->FreeSpare();
    claimed = gpu->cache.Claim(bytes);
  }
  TESSERA_TRY(claimed);
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
  gpu_->GiveBack(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace tessera::kernels
