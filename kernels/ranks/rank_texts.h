// Texts in rows that go from device to device: each rank has its own identifiers, so those that come are translated.
// Private to kernels/.
//
// Start at: RankTexts::Tell, Translate. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/ranks/gather_rows.h"
#include "vm/string_pool.h"
#include "vm/vm.h"

namespace tessera::kernels {

class RankTexts {
 public:
  /// Ranks whose pools have more identifiers do not tell each other their strings: each takes some 35 ns on every rank.
  static constexpr uint64_t kMostTexts = 1 << 18;

  /// All ranks: learns the strings of the others. Errors: those before the strings travel are of all ranks.
  Status Tell(vm::Exchange* exchange, vm::StringPool* strings);
  /// Gives gathered rows this rank's identifiers. `own`: this rank, whose rows come first.
  Status Translate(GpuDevice* gpu, const RowsToGather& table, size_t own) const;

 private:
  std::vector<std::vector<int64_t>> ids_;  ///< [rank][identifier there]
};

/// values[i] becomes ids[values[i]]; what is no identifier, as under a NULL may be, becomes 0.
cudaError_t StartTranslate(uint64_t* values, uint64_t rows, const int64_t* ids, uint64_t count, cudaStream_t stream);

}  // namespace tessera::kernels
