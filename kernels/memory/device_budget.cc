#include "kernels/memory/device_budget.h"

#include <algorithm>

#include "kernels/cuda/cuda_memory.h"

namespace tessera::kernels {

DeviceBudget::~DeviceBudget() {
  if (pool_ != nullptr) IgnoreError(cudaMemPoolDestroy(pool_));
}

Status DeviceBudget::Open(uint64_t bytes, int device) {
  whole_ = bytes_ = bytes;
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = device;
  if (pool_ == nullptr) CUDA_TRY(cudaMemPoolCreate(&pool_, &props));  // an earlier call may have come so far
  uint64_t keep = UINT64_MAX;                                         // what is freed stays with the pool
  CUDA_TRY(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
  return Status::Ok();
}

bool DeviceBudget::ClaimFree(uint64_t bytes) {
  if (columns_ + claimed() + bytes > bytes_) return false;
  MakeSpareRoom(bytes);
  claimed_ += bytes;
  return true;
}

void* DeviceBudget::TakeSpare(uint64_t bytes) {
  void* const data = spare_.Take(bytes);
  if (data != nullptr) claimed_ += bytes;
  return data;
}

void DeviceBudget::PutSpare(void* data, uint64_t bytes, cudaStream_t stream) {
  Release(bytes);
  spare_.Put(data, bytes, stream, bytes_);
}

void DeviceBudget::MakeSpareRoom(uint64_t bytes) {
  if (!Fits(bytes)) spare_.Free(taken() + spare_.bytes() + bytes - bytes_);
}

void DeviceBudget::LiveWithFewerColumns(uint64_t bytes) {
  bytes_ = std::min(bytes_, claimed() + std::max<uint64_t>(columns_ / 2, bytes));
}

}  // namespace tessera::kernels
