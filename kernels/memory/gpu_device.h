// A GPU as the runs of sections see it: streams, cached columns, buffers that are kept from run to run. Private to
// kernels/.
//
// Start at: GpuDevice. One run at a time, under `mutex`.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_memory.h"
#include "kernels/kernels.h"
#include "kernels/memory/arena.h"
#include "kernels/memory/column_cache.h"
#include "kernels/memory/device_clock.h"
#include "kernels/memory/device_limits.h"
#include "kernels/memory/spare_encodings.h"
#include "kernels/memory/stop_word.h"

namespace tessera::kernels {

/// Memory that one run leaves to the next, because an allocation costs more than a small query.
struct KeptBuffers {
  DeviceBuffer scratch;               ///< registers of a launch that shared memory has no room for
  DeviceBuffer output, build_states;  ///< rows of a section; counters of builds
  /// What comes to the host: results of a launch with its counters, rows, counters of builds, what a search for units
  /// has found.
  PinnedBuffer host_results, host_rows, host_build_states, host_grid_report;
};

class GpuDevice {
 public:
  /// `kernels`: those that may take all the shared memory that a block can have; Open loads them.
  GpuDevice(int ordinal, const GpuOptions& options, GpuInfo device_info, const DeviceLimits& device_limits,
            std::vector<const void*> kernels)
      : info(std::move(device_info)),
        limits(device_limits),
        ordinal_(ordinal),
        options_(options),
        kernels_(std::move(kernels)) {}
  ~GpuDevice();
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  int ordinal() const { return ordinal_; }
  const GpuOptions& options() const { return options_; }
  bool is_open() const { return open_; }
  /// Makes the device current; the first time also the context and what every run needs. REQUIRES: `mutex` is held, as
  /// for all functions below.
  Status Open();
  /// Waits for the stream. If `cancel` becomes true, sets `stop` of the launch and returns kCancelled.
  Status WaitForStream(uint32_t* stop, const std::atomic<bool>* cancel);
  /// Whether the stream has something left to do.
  bool IsBusy() const { return cudaStreamQuery(stream) == cudaErrorNotReady; }
  /// Room in `buffer`, counted against the budget. Cached columns go for it if need be. What was in the buffer is lost
  /// if it has to grow.
  Status ReserveEvicting(DeviceBuffer* buffer, size_t bytes);
  /// The numbers 0, 1, 2 ... of the rows of a tablet, 4 bytes each: codes of slots that have none, see
  /// vm::SlotEncoding::row_codes.
  tessera::Result<const uint8_t*> RowNumbers();
  /// Calls f, which takes memory that is too little to count. If there is none, because other processes use the device
  /// as well, drops the cached columns and calls f again.
  template <class F>
  Status Evicting(F f) {
    Status status = f();
    if (status.ok() || status.code() != ErrorCode::kResource) return status;
    TESSERA_TRY(cache.Trim());
    return f();
  }
  /// Memory that launches and what they fill may still take. A sixteenth of the budget is left to what is small, and to
  /// pieces on their way to the host.
  uint64_t Room() const { return cache.budget() - std::min(cache.budget(), cache.claimed() + cache.budget() / 16); }
  /// How many blocks of `threads` threads of a kernel run on a multiprocessor at once, with `shared_bytes` of shared
  /// memory each. `prepare` returns a cudaError_t; it is called before CUDA is asked, the first time.
  template <class Prepare>
  tessera::Result<int> BlocksPerMultiprocessor(const void* kernel, int threads, uint32_t shared_bytes,
                                               Prepare prepare) {
    const auto known = blocks_.find({kernel, shared_bytes});
    if (known != blocks_.end()) return known->second;
    CUDA_TRY(prepare());
    return AskForBlocks(kernel, threads, shared_bytes);
  }
  /// One for each batch that may be in flight, so that one is filled while a launch reads another.
  Arena& arena(size_t number);

  const GpuInfo info;
  const DeviceLimits limits;
  mutable std::mutex mutex;
  cudaStream_t stream = nullptr;
  DeviceClock clock;  ///< of work on the stream
  ColumnCache cache;
  KeptBuffers buffers;
  SpareEncodings encodings;

 private:
  tessera::Result<int> AskForBlocks(const void* kernel, int threads, uint32_t shared_bytes);

  const int ordinal_;
  const GpuOptions options_;
  const std::vector<const void*> kernels_;
  bool open_ = false;
  StopWord stop_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::map<std::pair<const void*, uint32_t>, int> blocks_;  ///< by kernel and bytes of shared memory
  DeviceBuffer row_numbers_;
  bool numbered_ = false;  ///< row_numbers_ is filled
};

}  // namespace tessera::kernels
