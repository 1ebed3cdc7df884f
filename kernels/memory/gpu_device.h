// A GPU as the runs of sections see it: streams, cached columns, buffers that are kept from run to run. Private to
// kernels/.
//
// Start at: GpuDevice. One run at a time, under `mutex`.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/join/join_kernels.h"
#include "kernels/kernels.h"
#include "kernels/launch/launch.h"
#include "kernels/memory/column_cache.h"
#include "kernels/memory/cuda_memory.h"
#include "kernels/memory/send.h"
#include "kernels/plan/launch_plan.h"

namespace tessera::kernels {

/// Small things that travel to the device together: one copy instead of a dozen.
class Arena {
 public:
  void Clear() { bytes_ = 0; }
  /// Room for `bytes`; returns its offset.
  size_t Add(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ += (bytes + 127) / 128 * 128;
    return offset;
  }
  /// Memory for what was added, not cleared. REQUIRES: no copy from here is under way.
  Status Allocate() {
    TESSERA_TRY(host_.Reserve(bytes_));
    TESSERA_TRY(device_.Reserve(bytes_));
    return Status::Ok();
  }
  uint8_t* Host(size_t offset) const { return host_.As<uint8_t>() + offset; }
  template <class T>
  T* Device(size_t offset) const {
    return reinterpret_cast<T*>(device_.As<uint8_t>() + offset);
  }
  /// Copies what lies from `first` on to the device.
  Status Send(size_t first, cudaStream_t stream) {
    CUDA_TRY(StartSend({{device_.As<uint8_t>() + first, host_.As<uint8_t>() + first, bytes_ - first}}, stream));
    return Status::Ok();
  }

 private:
  size_t bytes_ = 0;
  PinnedBuffer host_;
  DeviceBuffer device_;
};

/// What a join table's build and the host tell each other: its launches' counters, and what is known of its columns.
struct BuildState {
  Control control;
  ColumnSummary columns[kMaxSummaries];
};

class GpuDevice {
 public:
  GpuDevice(int ordinal, const GpuOptions& options, GpuInfo device_info, const DeviceLimits& device_limits)
      : info(std::move(device_info)), limits(device_limits), ordinal_(ordinal), options_(options) {}
  ~GpuDevice();
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  bool is_open() const { return open_; }
  /// Makes the device current; the first time also the context and what every run needs. REQUIRES: `mutex` is held, as
  /// for all below.
  Status Open();
  /// Ends the launch that is under way, if there is one. The word lies in device memory: some 400 blocks that ask for
  /// one in host memory before each tile would load the link.
  Status TellToStop(Control* control);
  /// Waits for the stream; on a wish to cancel, tells the launch with this control to stop. Returns kCancelled then.
  Status Wait(Control* control, const std::atomic<bool>* cancel);
  /// Room in `buffer`, counted against the budget, at the expense of cached columns if need be. What was in it is lost
  /// if it has to grow.
  Status ReserveEvicting(DeviceBuffer* buffer, size_t bytes);
  /// Calls f, which takes memory that is too little to count; again without cached columns, if there is none left:
  /// other processes may use the device as well.
  template <class F>
  Status Evicting(F f) {
    Status status = f();
    if (status.ok() || status.code() != ErrorCode::kResource) return status;
    FreeSpare();
    TESSERA_TRY(cache.Clear());
    return f();
  }
  /// Memory that launches and what they fill may still take. A sixteenth of the budget is left to what is small, and to
  /// pieces on their way to the host.
  uint64_t Room() const { return cache.budget() - std::min(cache.budget(), cache.claimed() + cache.budget() / 16); }
  /// Memory of runs: what one gives back, the next may take without asking CUDA, which takes a microsecond each time.
  /// All of it was claimed from the cache's budget. false: none of about this size is left.
  bool TakeSpare(uint64_t bytes, void** data, uint64_t* got);
  void GiveBack(void* data, uint64_t bytes);
  void FreeSpare();
  /// How many blocks of an instantiation with so much shared memory run on a multiprocessor at once.
  tessera::Result<int> BlocksPerMultiprocessor(Variant variant, uint32_t shared_bytes);
  /// Some of them for each run, so that one is filled while a launch reads another.
  Arena& arena(size_t number);

  const GpuInfo info;
  const DeviceLimits limits;
  mutable std::mutex mutex;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  ColumnCache cache;
  DeviceBuffer scratch;
  DeviceBuffer output, build_states;
  PinnedBuffer host_results, host_rows, host_build_states, host_found;

 private:
  const int ordinal_;
  const GpuOptions options_;
  bool open_ = false;
  cudaStream_t cancel_stream_ = nullptr;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::map<std::pair<Variant, uint32_t>, int> blocks_;
  struct Spare {
    void* data;
    uint64_t bytes;
  };
  std::vector<Spare> spare_;
  PinnedBuffer one_;
};

}  // namespace tessera::kernels
