// Which device a rank opens.

#include "mpi/rank_gpu.h"

#include <utility>

namespace tessera {

Status RankGpu::Open(int local_rank, uint64_t memory_bytes) {
  if (gpu_ != nullptr || failed()) return error_;
  const int devices = GpuCount();
  Result<std::unique_ptr<Gpu>> gpu = Gpu::Open(devices > 0 ? local_rank % devices : 0, GpuOptions{memory_bytes});
  if (gpu.ok()) {
    gpu_ = std::move(*gpu);
  } else {
    error_ = {ErrorCode::kDevice, gpu.status().message(), gpu.status().hint()};
  }
  return error_;
}

}  // namespace tessera
