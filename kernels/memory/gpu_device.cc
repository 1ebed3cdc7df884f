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
/// Encodings that are kept, and slots of one: 200 bytes each.
constexpr size_t kMostEncodings = 4096, kMostEncodedSlots = 32;
/// The most that a tablet has: TableSchema::tablet_rows.
constexpr uint32_t kTabletRows = 1u << 20;

}  // namespace

GpuDevice::~GpuDevice() {
  // (Open may have come to half of it.)
  if (stream == nullptr) return;
  IgnoreError(cudaSetDevice(ordinal_));
  cache.FreeSpare();
  IgnoreError(cudaStreamSynchronize(stream));
  for (cudaEvent_t e : {begin, end, zero_}) {
    if (e != nullptr) IgnoreError(cudaEventDestroy(e));
  }
  for (cudaStream_t s : {stream, cancel_stream_}) {
    if (s != nullptr) IgnoreError(cudaStreamDestroy(s));
  }
}

Status GpuDevice::Open() {
  CUDA_TRY(cudaSetDevice(ordinal_));
  if (open_) return Status::Ok();
  size_t free = 0, total = 0;
  CUDA_TRY(cudaMemGetInfo(&free, &total));
  const uint64_t budget = options_.memory_bytes != 0 ? std::min<uint64_t>(options_.memory_bytes, free) : free / 10 * 9;
  for (cudaStream_t* s : {&stream, &cancel_stream_}) {
    if (*s == nullptr) CUDA_TRY(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
  }
  for (cudaEvent_t* e : {&begin, &end, &zero_}) {
    if (*e == nullptr) CUDA_TRY(cudaEventCreate(e));
  }
  for (const void* kernel : kernels_) {
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(limits.shared_per_block)));
  }
  TESSERA_TRY(cache.Open(budget));
  TESSERA_TRY(one_.Reserve(sizeof(uint32_t)));
  *one_.As<uint32_t>() = 1;
  spare_encodings_.reserve(kMostEncodings);
  open_ = true;
  return Status::Ok();
}

Status GpuDevice::SendStop(uint32_t* stop) {
  CUDA_TRY(cudaMemcpyAsync(stop, one_.As<void>(), sizeof(uint32_t), cudaMemcpyHostToDevice, cancel_stream_));
  CUDA_TRY(cudaStreamSynchronize(cancel_stream_));
  return Status::Ok();
}

Status GpuDevice::SetClock() {
  zero_nanoseconds_ = 0;
  const PhaseClock* const clock = PhaseClock::current();
  if (clock == nullptr || !clock->keeps_spans()) return Status::Ok();
  const int64_t before = PhaseClock::Nanoseconds(Clock::now());
  CUDA_TRY(cudaEventRecord(zero_, stream));
  CUDA_TRY(cudaEventSynchronize(zero_));
  zero_nanoseconds_ = before + (PhaseClock::Nanoseconds(Clock::now()) - before) / 2;
  return Status::Ok();
}

tessera::Result<double> GpuDevice::KernelMilliseconds() {
  float milliseconds = 0, since_zero = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin, end));
  PhaseClock* const clock = PhaseClock::current();
  if (clock != nullptr && zero_nanoseconds_ != 0) {
    CUDA_TRY(cudaEventElapsedTime(&since_zero, zero_, begin));
    const int64_t start = zero_nanoseconds_ + static_cast<int64_t>(static_cast<double>(since_zero) * 1e6);
    clock->AddSpan(Phase::kKernel, 1, start, start + static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6));
  }
  return static_cast<double>(milliseconds);
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
      TESSERA_TRY(SendStop(stop));
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

vm::TabletEncoding GpuDevice::TakeEncoding() {
  if (spare_encodings_.empty()) return {};
  vm::TabletEncoding encoding = std::move(spare_encodings_.back());
  spare_encodings_.pop_back();
  return encoding;
}

void GpuDevice::KeepEncodings(std::vector<vm::TabletEncoding>* encodings) {
  for (vm::TabletEncoding& e : *encodings) KeepEncoding(std::move(e));
  encodings->clear();
}

void GpuDevice::KeepEncoding(vm::TabletEncoding encoding) {
  const size_t slots = encoding.slots.capacity();
  if (slots == 0 || slots > kMostEncodedSlots) return;
  if (spare_encodings_.size() == spare_encodings_.capacity()) return;  // (destructors call this)
  encoding.Clear();
  spare_encodings_.push_back(std::move(encoding));
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
