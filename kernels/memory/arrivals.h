// Packed codes that come to the device and are unpacked there: the memory where they arrive, chunk after chunk, and what
// unpacking takes beside it. Private to kernels/memory/.
//
// What chunks take is reserved one by one, then a batch takes all of that over. Its kernels are started by whichever thread
// notices that the last of its bytes are on their way.
//
// Start at: Arrivals::Reserve, Take, Prepare. One thread at a time, but for Start.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/memory/cached_pieces.h"
#include "kernels/memory/copy_streams.h"
#include "kernels/memory/device_budget.h"
#include "kernels/unpack/unpack.h"
#include "tablet/files/tablet.h"

namespace tessera::kernels {

/// Memory where packed codes arrive, one chunk after the other; given back to the pool after the kernels of a batch.
struct Slab {
  uint8_t* memory;
  uint64_t bytes, used;
};

/// A chunk that is unpacked on the device.
struct Unpacking {
  UnpackPlan plan;
  uint8_t* packed = nullptr;  ///< in a slab, after the chunk that was fetched before
  bool begins_slab = false;
  uint64_t scratch_at = 0;  ///< in the scratch memory of the batch
  uint8_t* out = nullptr;
  std::weak_ptr<const Tablet> unchecked;  ///< the codes of this tablet's column have not been unpacked before
  int column = 0;
  FoundCodes* found = nullptr;  ///< on the device, of ArrivingBatch::found; nullptr: is not checked
};

/// Chunks that are unpacked together.
struct ArrivingBatch {
  std::vector<std::unique_ptr<Unpacking>> unpackings;
  std::vector<Slab> slabs;
  uint64_t bytes = 0;  ///< of the slabs
  std::shared_ptr<uint8_t> scratch;
  UnpackBatch kernels;
  UnpackStep* steps = nullptr;  ///< of the kernels, on the device
  FoundCodes* found = nullptr;  ///< on the device, of those that are unchecked; nullptr: none is
};

class Arrivals {
 public:
  Arrivals(const CopyStreams& streams, const DeviceBudget& budget, CachedPieces* pieces)
      : streams_(streams), budget_(budget), pieces_(*pieces) {}
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Room for a chunk of `packed_bytes` bytes, and for what unpacking it needs. REQUIRES: unpacking->plan. After an error
  /// nothing is reserved.
  Status Reserve(uint64_t packed_bytes, Unpacking* unpacking);
  /// Gives up what was reserved since the last Take.
  void Abandon();
  /// What was reserved since becomes that of the batch. Nothing fails.
  void Take(ArrivingBatch* batch);
  /// Makes the steps of unpacking, and room for them and for what is found in codes that are unpacked for the first time.
  /// REQUIRES: all of the batch's unpackings are there.
  Status Prepare(ArrivingBatch* batch);
  /// Starts the kernels, once the codes and the steps are there, and gives the slabs back. Any thread, one after the other:
  /// batches share scratch memory.
  static Status Start(cudaStream_t stream, ArrivingBatch* batch);
  /// Waits for what was found, and tells the tablets. `done`: comes after the kernels; `stream` waits with the caller.
  /// Errors: kCorrupt.
  static Status Check(const ArrivingBatch& batch, cudaEvent_t done, cudaStream_t stream);
  /// What was not unpacked, and the memory that unpacking took.
  void GiveBack(ArrivingBatch* batch);
  /// Before the streams go.
  void FreeAll() { scratch_.reset(); }

  /// See ColumnCache.
  bool IsUnpackingMuch() const { return bytes_ + scratch_bytes_ > budget_.bytes() / kUnpackingShare; }
  uint64_t bytes() const { return bytes_; }
  uint64_t ShareOfLaunch() const { return budget_.bytes() / kUnpackingShare / kUnpackingLaunches; }
  /// Whether what was reserved needs more scratch memory than batches have.
  bool HasMuchReserved() const { return reserved_scratch_ > MostScratch(); }

 private:
  /// See IsUnpackingMuch and ShareOfLaunch.
  static constexpr uint64_t kUnpackingShare = 4, kUnpackingLaunches = 4;
  /// Most bytes of a slab with several chunks, and of the scratch memory of a batch with several tablets.
  static constexpr uint64_t kSlab = uint64_t{16} << 20, kScratch = uint64_t{64} << 20;

  uint64_t MostScratch() const { return std::min(kScratch, budget_.bytes() / 16); }
  Result<uint8_t*> ReserveArrival(uint64_t bytes);
  Status ReserveScratch(uint64_t bytes);
  void FreeUnusedScratch();
  Status PrepareChecks(ArrivingBatch* batch);
  Status PrepareSteps(ArrivingBatch* batch);
  /// `stream`: of what uses the memory last.
  static void Free(std::vector<Slab>* slabs, cudaStream_t stream);

  const CopyStreams& streams_;
  const DeviceBudget& budget_;
  CachedPieces& pieces_;
  uint64_t bytes_ = 0;  ///< of all slabs
  std::vector<Slab> reserved_;
  uint64_t reserved_scratch_ = 0;
  std::shared_ptr<uint8_t> scratch_;  ///< of the next batch; those under way use it one by one, or an earlier one
  uint64_t scratch_bytes_ = 0;
};

}  // namespace tessera::kernels
