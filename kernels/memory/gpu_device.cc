#include "kernels/memory/gpu_device.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "base/phase_clock.h"

namespace tessera::kernels {
namespace {

/// How long the host spins for a launch, and how long it lets others run between looks then, before it sleeps between them.
/// (While it slept from 2 ms on, it saw the end of SSB's longer scans 130 microseconds late.)
constexpr auto kSpin = std::chrono::milliseconds(2), kYield = std::chrono::milliseconds(20),
               kBetweenStops = std::chrono::milliseconds(1);
constexpr int kPauses = 10;  ///< between two looks: half a microsecond
/// The most that a tablet has: TableSchema::tablet_rows.
constexpr uint32_t kTabletRows = 1u << 20;

}  // namespace

GpuDevice::~GpuDevice() {
  // (Open may have come to half of it.)
  if (stream == nullptr) return;
  IgnoreError(cudaSetDevice(ordinal_));
  cache.FreeSpare();
  IgnoreError(cudaStreamSynchronize(stream));
  IgnoreError(cudaStreamDestroy(stream));
}

Status GpuDevice::Open() {
  CUDA_TRY(cudaSetDevice(ordinal_));
  if (open_) return Status::Ok();
  size_t free = 0, total = 0;
  CUDA_TRY(cudaMemGetInfo(&free, &total));
  const uint64_t budget = options_.memory_bytes != 0 ? std::min<uint64_t>(options_.memory_bytes, free) : free / 10 * 9;
  if (stream == nullptr) CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TESSERA_TRY(stop_.Open());
  TESSERA_TRY(clock.Open());
  for (const void* kernel : kernels_) {
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(limits.shared_per_block)));
  }
  TESSERA_TRY(cache.Open(budget));
  encodings.Reserve();
  open_ = true;
  return Status::Ok();
}

Status GpuDevice::WaitForStream(uint32_t* stop, const std::atomic<bool>* cancel) {
  const PhaseScope phase(Phase::kKernel);
  const auto start = std::chrono::steady_clock::now();
  auto cancelled = [&] { return cancel != nullptr && cancel->load(std::memory_order_relaxed); };
  auto next_stop = start;
  bool stop_sent = false;
  for (;;) {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state == cudaSuccess) break;
    if (state != cudaErrorNotReady) return CudaStatus(state, "cudaStreamQuery", __FILE__, __LINE__);
    const auto now = std::chrono::steady_clock::now();
    // More than once: counters that were still on their way to the device have overwritten a stop sent before.
    if (cancelled() && now >= next_stop) {
      TESSERA_TRY(stop_.Send(stop));
      stop_sent = true;
      next_stop = now + kBetweenStops;
    }
    const auto waited = now - start;
    if (waited > kYield) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    } else if (waited > kSpin) {
      std::this_thread::yield();
    }
    // CUDA's lock is also for the threads that copy.
    for (int i = 0; i < kPauses; ++i) __builtin_ia32_pause();
  }
  if (stop_sent || cancelled()) return Cancelled();
  return Status::Ok();
}

Status GpuDevice::ReserveEvicting(DeviceBuffer* buffer, size_t bytes) {
  if (bytes <= buffer->bytes()) return Status::Ok();
  // Launches that have not been waited for may still use it.
  if (buffer->bytes() > 0) CUDA_TRY(cudaStreamSynchronize(stream));
  cache.Release(buffer->bytes());
  buffer->Free();
  const uint64_t taken = DeviceBuffer::Rounded(bytes);
  TESSERA_TRY(cache.Claim(taken));
  const Status status = Evicting([&] { return buffer->Reserve(bytes); });
  if (!status.ok()) cache.Release(taken);
  return status;
}

tessera::Result<const uint8_t*> GpuDevice::RowNumbers() {
  if (!numbered_) {
    std::vector<uint32_t> numbers(kTabletRows);
    std::iota(numbers.begin(), numbers.end(), 0u);
    const uint64_t bytes = numbers.size() * sizeof(uint32_t);
    TESSERA_TRY(ReserveEvicting(&row_numbers_, bytes));
    // (Pageable memory: the copy is done when the call returns.)
    CUDA_TRY(cudaMemcpyAsync(row_numbers_.As<void>(), numbers.data(), bytes, cudaMemcpyHostToDevice, stream));
    numbered_ = true;
  }
  return row_numbers_.As<const uint8_t>();
}

tessera::Result<int> GpuDevice::AskForBlocks(const void* kernel, int threads, uint32_t shared_bytes) {
  int blocks = 0;
  CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes));
  if (blocks < 1) return Status(ErrorCode::kInternal, "a block of the VM kernel does not fit on a multiprocessor");
  blocks_[{kernel, shared_bytes}] = blocks;
  return blocks;
}

Arena& GpuDevice::arena(size_t number) {
  while (arenas_.size() <= number) arenas_.push_back(std::make_unique<Arena>());
  return *arenas_[number];
}

}  // namespace tessera::kernels
