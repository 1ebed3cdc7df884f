// Texts in the keys of groups that go from device to device. Identifiers of texts are each rank's own, so groups travel
// with numbers that are the same on all ranks, which they give the texts when they tell them to each other. Private to
// kernels/.
//
// Start at: GroupTexts::Mark, Tell, ToNumbers, ToIdentifiers, in this order for each exchange of a run. REQUIRES, of all
// functions: the device's mutex is held.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"
#include "vm/shares/exchange.h"

namespace tessera::kernels {

/// Where records of groups have keys that are texts: the word of each, and its NULL bit in word 0.
struct TextKeys {
  uint32_t word[vm::kMaxKeys] = {};
  uint32_t bit[vm::kMaxKeys] = {};
  uint32_t count = 0;
};
TextKeys TextKeysOf(const vm::Section& section);

/// Records of groups in device memory, one after the other.
struct GroupRecords {
  uint64_t* words = nullptr;
  uint64_t n = 0;
  uint32_t record_words = 0;
};

class GroupTexts {
 public:
  /// Texts that a rank tells in one exchange, and identifiers that it has: with more, its groups go through the hosts.
  static constexpr uint64_t kMostTold = 1 << 16, kMostIdentifiers = 1 << 20;

  /// Finds the texts in this rank's groups that have no number yet. false: they are more than it may tell.
  tessera::Result<bool> Mark(GpuDevice* gpu, const TextKeys& keys, const GroupRecords& groups,
                             const vm::StringPool& strings);
  /// Bytes of these texts when they are told.
  uint64_t untold_bytes() const { return untold_.size(); }
  /// All ranks: each tells these texts, and all have numbers then. `bytes`: untold_bytes of all ranks. An error is this
  /// rank's.
  Status Tell(const std::vector<uint64_t>& bytes, vm::Exchange* exchange, vm::StringPool* strings, ThreadPool* threads);
  /// Device memory that an exchange takes at most, in bytes.
  uint64_t MostBytes(uint64_t identifiers, uint64_t ranks) const {
    return sizeof(uint32_t) * (identifiers + ids_.size() + ranks * kMostTold);
  }

  /// Puts numbers in the place of this rank's identifiers, and the other way round.
  Status ToNumbers(GpuDevice* gpu, const TextKeys& keys, const GroupRecords& groups) const {
    return Translate(gpu, keys, {groups}, numbers_);
  }
  Status ToIdentifiers(GpuDevice* gpu, const TextKeys& keys, const std::vector<GroupRecords>& groups) const {
    return Translate(gpu, keys, groups, ids_);
  }

 private:
  static constexpr uint32_t kNoNumber = UINT32_MAX;

  /// The identifiers of what a rank has told.
  static tessera::Result<std::vector<int64_t>> Learn(const std::string& told, vm::StringPool* strings,
                                                     ThreadPool* threads);
  /// Gives numbers to texts that have none. `count`: identifiers are less.
  void Number(const std::vector<int64_t>& ids, size_t count);
  static Status Translate(GpuDevice* gpu, const TextKeys& keys, const std::vector<GroupRecords>& groups,
                          const std::vector<uint32_t>& map);

  std::string untold_;  ///< texts, one after the other: the length of each in 4 bytes, and its bytes
  std::vector<int64_t> untold_ids_;
  std::vector<uint32_t> numbers_;  ///< [identifier]; kNoNumber: it was not told
  std::vector<uint32_t> ids_;      ///< [number]
};

/// Sets the bit of each key that is less than `count` and not NULL.
cudaError_t StartMarkKeys(const GroupRecords& groups, const TextKeys& keys, uint64_t count, uint32_t* bits,
                          cudaStream_t stream);
/// Each key k that is not NULL becomes map[k], or 0 if the map has none.
cudaError_t StartTranslateKeys(const GroupRecords& groups, const TextKeys& keys, const uint32_t* map, uint64_t count,
                               cudaStream_t stream);

}  // namespace tessera::kernels
