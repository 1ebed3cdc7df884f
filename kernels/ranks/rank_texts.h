// Texts in rows that go from device to device: each rank has its own identifiers, so those that come are translated.
// Private to kernels/.
//
// Start at: RankTexts::Mark, Prepare, Tell, Translate, in this order for each exchange of a run. REQUIRES, of all functions: the
// device's mutex is held.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/rows/device_rows.h"
#include "tablet/values/types.h"
#include "vm/rows/string_pool.h"
#include "vm/shares/exchange.h"

namespace tessera::kernels {

class RankTexts {
 public:
  /// Ranks with more identifiers do not tell each other their texts.
  static constexpr uint64_t kMostTexts = 1 << 20;

  /// Notes the texts that this rank's rows have, before they go. `count`: identifiers are less.
  Status Mark(GpuDevice* gpu, const std::vector<SqlType>& columns, const DeviceRows& rows, uint64_t count);
  /// Puts the texts together that were noted and not told. Returns their bytes.
  uint64_t Prepare(const vm::StringPool& strings);
  /// All ranks: each tells the texts that it has prepared. `bytes`: of all ranks'. An error is this rank's.
  Status Tell(const std::vector<uint64_t>& bytes, vm::Exchange* exchange, vm::StringPool* strings, ThreadPool* threads);
  /// Gives rows this rank's identifiers. rows_of[r]: those that came of rank r, which stand rank by rank; `own`: this
  /// rank.
  Status Translate(GpuDevice* gpu, const std::vector<SqlType>& columns, const std::vector<uint64_t>& rows_of,
                   size_t own, DeviceRows* rows) const;

 private:
  Status Learn(const std::string& told, vm::StringPool* strings, ThreadPool* threads, std::vector<int64_t>* ids) const;

  std::vector<uint32_t> marked_, told_;    ///< a bit for each identifier
  std::string untold_;                     ///< prepared
  std::vector<std::vector<int64_t>> ids_;  ///< [rank][identifier there]
};

/// Sets the bit of each value that is less than `count`.
cudaError_t StartMark(const uint64_t* values, uint64_t rows, uint64_t count, uint32_t* bits, cudaStream_t stream);
/// values[i] becomes ids[values[i]]; what is no identifier, as under a NULL may be, becomes 0.
cudaError_t StartTranslate(uint64_t* values, uint64_t rows, const int64_t* ids, uint64_t count, cudaStream_t stream);

}  // namespace tessera::kernels
