// What a cache of columns holds and what it has done: for tessera_cache().
//
// Start at: CacheReport. Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tablet/files/tablet.h"

namespace tessera {

/// A column of a tablet that is in the cache, at least in part.
struct CachedColumn {
  std::shared_ptr<const Tablet> tablet;
  int column = 0;
  uint64_t bytes = 0;
  uint64_t hits = 0;  ///< since it came
};

/// Counts are of pieces: streams of chunks on a GPU, unpacked chunks on the host.
struct CacheReport {
  std::string name;  ///< "gpu", "host"
  uint64_t bytes = 0;
  uint64_t budget = 0;  ///< 0: the GPU was not used yet
  uint64_t hits = 0, misses = 0;
  uint64_t evictions = 0;  ///< pieces that went because others needed their place
  uint64_t bytes_in = 0;   ///< to a GPU: over the link; the host: that unpacking made
  uint64_t pinned = 0;     ///< of tablets' files, where they are mapped, for a GPU
  std::vector<CachedColumn> columns;
};

}  // namespace tessera
