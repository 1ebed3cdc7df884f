// The GPU of one process, rank or not: opened by the first query that may use it, and not tried again if that fails.
//
// Start at: RankGpu::Open. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "kernels/kernels.h"

namespace tessera {

class RankGpu {
 public:
  /// Opens device `local_rank` modulo the number of devices, unless that was done before. `memory_bytes`: as in
  /// GpuOptions. Errors: kDevice, whatever the reason, and the same each time.
  Status Open(int local_rank, uint64_t memory_bytes);

  /// nullptr if it is not open.
  Gpu* get() const { return gpu_.get(); }
  bool failed() const { return !error_.ok(); }

 private:
  std::unique_ptr<Gpu> gpu_;
  Status error_;
};

}  // namespace tessera
