#include "runtime.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <thread>
#include <vector>

#include "block.h"
#include "kernels/launch/launch.h"

namespace tessera::kernels {
/// Shared memory of the block that runs on this thread.
alignas(128) thread_local uint8_t shared[(227 << 10) + 128];
}  // namespace tessera::kernels

namespace cuda_emulator {
namespace {

// ---- The device

constexpr uint32_t kMultiprocessors = 2, kMostBlocks = 4;  ///< blocks of a multiprocessor
constexpr size_t kSharedOfBlock = 227 << 10, kSharedOfMultiprocessor = 228 << 10;
constexpr size_t kMemory = size_t{2} << 30;
constexpr size_t kMargin = 64, kAlignment = 512;
constexpr size_t kMostPatterned = size_t{16} << 20;
constexpr uint32_t kMostPending = 2048;  ///< cudaLimitDevRuntimePendingLaunchCount, unless it is set
constexpr uint8_t kNew = 0xA5, kFreed = 0xDD, kBehind = 0x5C;

thread_local cudaError_t last_error = cudaSuccess;
cudaError_t Return(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// TESSERA_EMULATED_GPUS, for tests of which one a rank takes; they share what is here. If there are several a process
/// says which it takes first.
int DeviceCount() {
  static const int count = [] {
    const char* const text = std::getenv("TESSERA_EMULATED_GPUS");
    return text == nullptr ? 1 : std::max(1, std::atoi(text));
  }();
  return count;
}
thread_local int current_device = 0;

// ---- Grids

struct Grid {
  Configuration configuration;
  std::function<void()> kernel;
  Grid* parent = nullptr;
  uint64_t next = 0, left = 0;  ///< blocks
  uint64_t open = 1;            ///< itself, if it has blocks left, and grids launched by it that are not done
  std::vector<std::unique_ptr<Grid>> tails;
  std::function<void()> done;  ///< of a grid that the host launched
};
thread_local Grid* running = nullptr;

class Device {
 public:
  Device() {
    for (uint32_t i = 0; i < kMultiprocessors * kMostBlocks; ++i) workers_.emplace_back([this] { Work(); });
  }
  ~Device() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    more_.notify_all();
    for (std::thread& w : workers_) w.join();
  }

  void Start(std::unique_ptr<Grid> grid) {
    const std::lock_guard<std::mutex> lock(mutex_);
    StartLocked(std::move(grid));
  }
  void StartChild(std::unique_ptr<Grid> grid) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (grid->configuration.stream == kTailLaunch) {
      running->tails.push_back(std::move(grid));
      return;
    }
    if (++children_ > kMostPending) Fail("more grids are pending than the device's limit", Where::current());
    grid->parent = running;
    ++running->open;
    StartLocked(std::move(grid));
  }

 private:
  void StartLocked(std::unique_ptr<Grid> grid) {
    const dim3& blocks = grid->configuration.grid;
    grid->left = uint64_t{blocks.x} * blocks.y * blocks.z;
    // (Most grids of tests have fewer blocks than there is room for.)
    const uint64_t wanted = std::min<uint64_t>(grid->left, workers_.size());
    waiting_.push_back(grid.release());
    for (uint64_t i = 0; i < wanted; ++i) more_.notify_one();
  }

  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      more_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Grid* grid = waiting_.front();
      const dim3& blocks = grid->configuration.grid;
      const uint64_t n = grid->next++;
      if (grid->next == uint64_t{blocks.x} * blocks.y * blocks.z) waiting_.pop_front();
      lock.unlock();
      const size_t shared_bytes = grid->configuration.shared_bytes;
      std::memset(tessera::kernels::shared, kNew, shared_bytes);
      std::memset(tessera::kernels::shared + shared_bytes, kBehind, kMargin);
      running = grid;
      RunBlock(grid->kernel,
               {static_cast<uint32_t>(n % blocks.x), static_cast<uint32_t>(n / blocks.x % blocks.y),
                static_cast<uint32_t>(n / blocks.x / blocks.y)},
               grid->configuration.block, blocks);
      running = nullptr;
      for (size_t i = 0; i < kMargin; ++i) {
        if (tessera::kernels::shared[shared_bytes + i] != kBehind)
          Fail("a kernel wrote after its shared memory", Where::current());
      }
      lock.lock();
      if (--grid->left == 0) Close(grid);
    }
  }

  /// One of the things that a grid waits for is done.
  void Close(Grid* grid) {
    if (--grid->open != 0) return;
    if (!grid->tails.empty()) {
      std::unique_ptr<Grid> tail = std::move(grid->tails.front());
      grid->tails.erase(grid->tails.begin());
      tail->parent = grid;
      grid->open = 1;
      StartLocked(std::move(tail));
      return;
    }
    const std::unique_ptr<Grid> owned(grid);
    if (grid->parent != nullptr) {
      if (children_ > 0 && grid->configuration.stream == kFireAndForget) --children_;
      Close(grid->parent);
    }
    if (grid->done) grid->done();
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Grid*> waiting_;  ///< that have blocks which do not run yet
  uint32_t children_ = 0;
  bool ends_ = false;
  std::vector<std::thread> workers_;
};
Device& TheDevice() {
  static Device device;
  return device;
}

// ---- Streams and events

class Stream {
 public:
  Stream() : worker_([this] { Work(); }) {}
  ~Stream() {
    Wait();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }
  void Add(std::function<void()> f) {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(f));
    changed_.notify_all();
  }
  bool IsIdle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return work_.empty();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return work_.empty(); });
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !work_.empty(); });
      if (work_.empty()) return;
      lock.unlock();
      work_.front()();  // others only add after it
      lock.lock();
      work_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  ///< the first one is under way
  bool ends_ = false;
  std::thread worker_;
};
Stream& StreamOf(cudaStream_t stream) {
  static Stream standard;
  return stream == nullptr ? standard : *reinterpret_cast<Stream*>(stream);
}

/// Shared with what is enqueued: an event may be destroyed before streams have come to it.
struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;
  std::chrono::steady_clock::time_point when;
  void Wait(uint64_t until) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return reached >= until; });
  }
};
using SharedEvent = std::shared_ptr<Event>;
const SharedEvent& EventOf(cudaEvent_t event) { return *reinterpret_cast<SharedEvent*>(event); }

// ---- Memory

class Memory {
 public:
  cudaError_t Allocate(void** to, size_t bytes, bool pinned) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *to = nullptr;
    if (!pinned && taken_ + bytes > kMemory) return cudaErrorMemoryAllocation;
    const size_t whole = (bytes + kMargin + kAlignment - 1) / kAlignment * kAlignment;
    uint8_t* p = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, whole));
    if (p == nullptr) return cudaErrorMemoryAllocation;
    std::memset(p, kNew, std::min(bytes, kMostPatterned));
    std::memset(p + bytes, kBehind, kMargin);
    blocks_[p] = {bytes, pinned};
    if (!pinned) taken_ += bytes;
    *to = p;
    return cudaSuccess;
  }
  void Free(void* memory) {
    if (memory == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    uint8_t* p = static_cast<uint8_t*>(memory);
    const auto block = blocks_.find(p);
    if (block == blocks_.end()) Fail("memory is freed that was not allocated", Where::current());
    const size_t bytes = block->second.bytes;
    for (size_t i = 0; i < kMargin; ++i) {
      if (p[bytes + i] != kBehind) Fail("something wrote after an allocation", Where::current());
    }
    if (!block->second.pinned) taken_ -= bytes;
    blocks_.erase(block);
    std::memset(p, kFreed, std::min(bytes, kMostPatterned));
    std::free(p);
  }
  /// Whether [p, p + bytes) lies within an allocation of that kind.
  bool Holds(const void* memory, size_t bytes, bool pinned) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint8_t* p = static_cast<const uint8_t*>(memory);
    if (pinned && Contains(registered_, p, bytes)) return true;
    auto block = blocks_.upper_bound(const_cast<uint8_t*>(p));
    if (block == blocks_.begin()) return false;
    --block;
    return block->second.pinned == pinned && p + bytes <= block->first + block->second.bytes;
  }
  /// Whether [p, p + bytes) begins or ends within memory that was registered, and goes on after or before it.
  bool Crosses(const void* memory, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint8_t* p = static_cast<const uint8_t*>(memory);
    if (Contains(registered_, p, bytes)) return false;
    const auto after = registered_.lower_bound(p + bytes);
    return after != registered_.begin() && std::prev(after)->first + std::prev(after)->second > p;
  }
  /// Memory of the host that was there before becomes pinned.
  cudaError_t Register(const void* memory, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint8_t* p = static_cast<const uint8_t*>(memory);
    const auto after = registered_.upper_bound(p);
    if (after != registered_.end() && after->first < p + bytes) return cudaErrorHostMemoryAlreadyRegistered;
    if (after != registered_.begin() && p < std::prev(after)->first + std::prev(after)->second)
      return cudaErrorHostMemoryAlreadyRegistered;
    registered_[p] = bytes;
    return cudaSuccess;
  }
  cudaError_t Unregister(const void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return registered_.erase(static_cast<const uint8_t*>(memory)) == 1 ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
  }
  size_t free_bytes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return kMemory - taken_;
  }

 private:
  struct Block {
    size_t bytes;
    bool pinned;
  };
  static bool Contains(const std::map<const uint8_t*, size_t>& ranges, const uint8_t* p, size_t bytes) {
    const auto after = ranges.upper_bound(p);
    return after != ranges.begin() && p + bytes <= std::prev(after)->first + std::prev(after)->second;
  }

  std::mutex mutex_;
  std::map<uint8_t*, Block> blocks_;
  std::map<const uint8_t*, size_t> registered_;
  size_t taken_ = 0;
};
Memory& TheMemory() {
  static Memory memory;
  return memory;
}

}  // namespace

cudaError_t LaunchGrid(const Configuration& configuration, std::function<void()> kernel) {
  const dim3 &g = configuration.grid, &b = configuration.block;
  if (g.x == 0 || g.y == 0 || g.z == 0 || b.x * b.y * b.z == 0 || b.x * b.y * b.z > 1024 || g.y > 65535 ||
      g.z > 65535 || configuration.shared_bytes > kSharedOfBlock)
    return Return(cudaErrorInvalidConfiguration);
  auto grid = std::make_unique<Grid>();
  grid->configuration = configuration;
  grid->kernel = std::move(kernel);
  if (here != nullptr) {
    TheDevice().StartChild(std::move(grid));
    return cudaSuccess;
  }
  // std::function wants what can be copied.
  Enqueue(configuration.stream, [grid = std::make_shared<std::unique_ptr<Grid>>(std::move(grid))] {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    (*grid)->done = [&] {
      const std::lock_guard<std::mutex> lock(mutex);
      done = true;
      changed.notify_all();
    };
    TheDevice().Start(std::move(*grid));
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done; });
  });
  return cudaSuccess;
}

void Enqueue(cudaStream_t stream, std::function<void()> f) { StreamOf(stream).Add(std::move(f)); }

}  // namespace cuda_emulator

// ---- What cuda_runtime_api.h declares

using namespace cuda_emulator;

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    default:
      return "error";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = DeviceCount();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= DeviceCount()) return Return(cudaErrorInvalidDevice);
  current_device = device;
  static std::once_flag said;
  if (DeviceCount() > 1) std::call_once(said, [&] { fprintf(stderr, "emulated GPU %d\n", device); });
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::strncpy(p->name, "emulated GPU", sizeof(p->name) - 1);
  const pid_t process = getpid();  // each has a GPU of its own
  std::memcpy(p->uuid.bytes, &process, sizeof process);
  p->totalGlobalMem = kMemory;
  p->multiProcessorCount = kMultiprocessors;
  p->major = 9;
  p->l2CacheSize = 8 << 20;
  p->sharedMemPerBlockOptin = kSharedOfBlock;
  p->sharedMemPerMultiprocessor = kSharedOfMultiprocessor;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t shared_bytes) {
  *blocks = static_cast<int>(std::min<size_t>(kMostBlocks, kSharedOfMultiprocessor / (shared_bytes + 1024)));
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = TheMemory().free_bytes();
  *total = kMemory;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** p, size_t bytes) { return Return(TheMemory().Allocate(p, bytes, false)); }
cudaError_t cudaFree(void* p) {
  TheMemory().Free(p);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) { return Return(TheMemory().Allocate(p, bytes, true)); }
cudaError_t cudaFreeHost(void* p) {
  TheMemory().Free(p);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned) { return Return(TheMemory().Register(p, bytes)); }
cudaError_t cudaHostUnregister(void* p) { return Return(TheMemory().Unregister(p)); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 1;  // (of those that are asked for)
  return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  static int the_pool;  // all allocations are alike
  *pool = reinterpret_cast<cudaMemPool_t>(&the_pool);
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMallocFromPoolAsync(void** p, size_t bytes, cudaMemPool_t, cudaStream_t) {
  return Return(TheMemory().Allocate(p, bytes, false));
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  Enqueue(stream, [p] { TheMemory().Free(p); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  Memory& memory = TheMemory();
  const bool to_device = kind != cudaMemcpyDeviceToHost, from_device = kind != cudaMemcpyHostToDevice;
  if ((to_device && !memory.Holds(to, bytes, false)) || (from_device && !memory.Holds(from, bytes, false)))
    return Return(cudaErrorInvalidValue);
  if (to_device && !from_device && memory.Crosses(from, bytes)) return Return(cudaErrorInvalidValue);
  const bool pinned = to_device == from_device || memory.Holds(to_device ? from : to, bytes, true);
  // A test may make copies to the device as slow as these are while other processes use the link.
  const char* const delay = to_device ? std::getenv("CUDA_EMULATOR_COPY_MICROSECONDS") : nullptr;
  const std::chrono::microseconds slow(delay != nullptr ? std::atoi(delay) : 0);
  Enqueue(stream, [to, from, bytes, slow] {
    if (slow.count() > 0) std::this_thread::sleep_for(slow);
    std::memcpy(to, from, bytes);
  });
  if (!pinned) StreamOf(stream).Wait();  // memory that is not pinned has been read or written when the call returns
  return cudaSuccess;
}
cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* bytes, size_t count,
                                 cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t stream) {
  for (size_t i = 0; i < count; ++i) {
    const cudaError_t error = cudaMemcpyAsync(to[i], from[i], bytes[i], cudaMemcpyHostToDevice, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!TheMemory().Holds(to, bytes, false)) return Return(cudaErrorInvalidValue);
  Enqueue(stream, [to, value, bytes] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(new Stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete &StreamOf(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  StreamOf(stream).Wait();
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (StreamOf(stream).IsIdle()) return cudaSuccess;
  std::this_thread::sleep_for(
      std::chrono::microseconds(20));  // who asks again and again needs the cores that blocks run on
  return cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const SharedEvent e = EventOf(event);
  Enqueue(stream, [e, until = e->recorded] { e->Wait(until); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new SharedEvent(std::make_shared<Event>()));
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &EventOf(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const SharedEvent e = EventOf(event);
  const auto now = e->recorded + 1;
  Enqueue(stream, [e, now] {
    const std::lock_guard<std::mutex> lock(e->mutex);
    e->reached = now;
    e->when = std::chrono::steady_clock::now();
    e->changed.notify_all();
  });
  e->recorded = now;  // (there may have been no memory)
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  EventOf(event)->Wait(EventOf(event)->recorded);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(EventOf(end)->when - EventOf(begin)->when).count();
  return cudaSuccess;
}

/// Kernels that are launched by their address: those of the VM, which have one parameter.
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  using tessera::kernels::Launch;
  const auto function = reinterpret_cast<void (*)(Launch)>(reinterpret_cast<uintptr_t>(kernel));
  return LaunchGrid({grid, block, shared_bytes, stream},
                    [function, launch = *static_cast<const Launch*>(arguments[0])] { function(launch); });
}

}  // extern "C"
