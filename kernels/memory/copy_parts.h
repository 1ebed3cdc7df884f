// What is copied to the device by one call: pieces of streams, cut or put together to the size that calls and the link
// like. Private to kernels/; all but CopiesList to kernels/memory/.
//
// Start at: AddParts.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kernels/cuda/cuda_memory.h"
#include "kernels/memory/arrivals.h"
#include "kernels/memory/cached_pieces.h"

namespace tessera::kernels {

enum class CopyRoute : uint8_t {
  kStaged,  ///< through a buffer
  kDirect,  ///< from pinned pages
  kToHost,  ///< to pinned memory
};

/// Copies that were started together.
struct Copies {
  Copies() = default;
  ~Copies() {
    if (done != nullptr) IgnoreError(cudaEventDestroy(done));
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  std::vector<PieceIterator> pieces;
  ArrivingBatch arriving;                          ///< those of them that are unpacked
  std::vector<std::span<const uint8_t>> mappings;  ///< of tablets from whose pinned pages such are copied
  uint64_t part_bytes = 0, direct_part_bytes = 0;  ///< at most
  size_t left = 0;                                 ///< parts that are not yet on their way
  Status error;                                    ///< the first one
  cudaEvent_t done = nullptr;
  Clock::time_point started = {};
  double milliseconds = 0;  ///< until the last was on its way, beside what other copies took
};
using CopiesList = std::vector<std::shared_ptr<Copies>>;

/// Bytes on their way: `padded` of them, zeros after the first `bytes`.
struct CopyWay {
  const uint8_t* from;
  uint8_t* to;
  uint64_t bytes, padded;
  bool joins = false;  ///< follows the one before it in one allocation
};

/// What is copied by one call: a piece of a stream, or several streams.
struct CopyPart {
  std::vector<CopyWay> ways;
  uint64_t bytes;  ///< of all, padded
  CopyRoute route;
  std::shared_ptr<Copies> copies;
};

/// Fills the last part up, and cuts what is left into others.
void AddParts(CopyWay way, CopyRoute route, const std::shared_ptr<Copies>& copies, std::vector<CopyPart>* parts);
/// The same for a stream of which `pages` holds some or all: no part crosses from what was pinned together to what was
/// not.
void AddPinnedParts(const PinnedPages& pages, const CopyWay& way, CopyRoute route,
                    const std::shared_ptr<Copies>& copies, std::vector<CopyPart>* parts);

}  // namespace tessera::kernels
