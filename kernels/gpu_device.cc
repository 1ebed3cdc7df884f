#include "kernels/gpu_device.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "kernels/vm_kernel.h"

namespace tessera::kernels {
namespace {

/// How long the host spins for a launch before it sleeps between looks: most take less than this.
constexpr auto kSpin = std::chrono::milliseconds(2);

}  // namespace

GpuDevice::~GpuDevice() {
  if (!open_) return;
  cudaSetDevice(ordinal_);
  cudaStreamSynchronize(stream);
  for (cudaEvent_t e : {begin, end, done}) cudaEventDestroy(e);
  cudaStreamDestroy(stream);
  cudaStreamDestroy(cancel_stream_);
}

Status GpuDevice::Open() {
  CUDA_TRY(cudaSetDevice(ordinal_));
  if (open_) return Status::Ok();
  size_t free = 0, total = 0;
  CUDA_TRY(cudaMemGetInfo(&free, &total));
  const uint64_t budget = options_.memory_bytes != 0 ? std::min<uint64_t>(options_.memory_bytes, free) : free / 10 * 9;
  CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_TRY(cudaStreamCreateWithFlags(&cancel_stream_, cudaStreamNonBlocking));
  CUDA_TRY(cudaEventCreate(&begin));
  CUDA_TRY(cudaEventCreate(&end));
  CUDA_TRY(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  for (Variant variant : {Variant::kLean, Variant::kStar, Variant::kPairs, Variant::kFull}) {
    CUDA_TRY(cudaFuncSetAttribute(VmKernelFor(variant), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(limits.shared_per_block)));
  }
  TESSERA_TRY(cache.Open(budget));
  TESSERA_TRY(control.Reserve(sizeof(Control)));
  TESSERA_TRY(host_control.Reserve(sizeof(Control)));
  TESSERA_TRY(one_.Reserve(sizeof(uint32_t)));
  *one_.As<uint32_t>() = 1;
  open_ = true;
  return Status::Ok();
}

Status GpuDevice::TellToStop(Control* of) {
  CUDA_TRY(cudaMemcpyAsync(&of->stop, one_.As<void>(), sizeof(uint32_t), cudaMemcpyHostToDevice, cancel_stream_));
  CUDA_TRY(cudaStreamSynchronize(cancel_stream_));
  return Status::Ok();
}

Status GpuDevice::Wait(Control* of, const std::atomic<bool>* cancel) {
  const auto start = std::chrono::steady_clock::now();
  auto cancelled = [&] { return cancel != nullptr && cancel->load(std::memory_order_relaxed); };
  bool told = false;
  for (;;) {
    const cudaError_t state = cudaEventQuery(done);
    if (state == cudaSuccess) break;
    if (state != cudaErrorNotReady) return CudaStatus(state, "cudaEventQuery", __FILE__, __LINE__);
    if (cancelled() && !told) {
      TESSERA_TRY(TellToStop(of));
      told = true;
    }
    if (std::chrono::steady_clock::now() - start > kSpin) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (told || cancelled()) return {ErrorCode::kCancelled, "canceling statement due to user request"};
  return Status::Ok();
}

Status GpuDevice::ReserveEvicting(DeviceBuffer* buffer, size_t bytes) {
  Status status = buffer->Reserve(bytes);
  if (status.ok() || status.code() != ErrorCode::kResource) return status;
  TESSERA_TRY(cache.Clear());
  return buffer->Reserve(bytes);
}

Arena& GpuDevice::arena(size_t number) {
  while (arenas_.size() <= number) arenas_.push_back(std::make_unique<Arena>());
  return *arenas_[number];
}

}  // namespace tessera::kernels
