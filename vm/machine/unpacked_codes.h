// Codes that are stored packed, unpacked for a tile. Private to vm/machine/.
//
// Start at: UnpackedCodes. One machine's, and so one thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "vm/machine/tile.h"
#include "vm/machine/tile_mask.h"

namespace tessera::vm {

class UnpackedCodes {
 public:
  explicit UnpackedCodes(size_t slots) : slots_(slots) {}

  /// Codes of the tile's rows, of the slot's width: of live ones at least. `damaged`: becomes why they cannot be read; they
  /// are 0 then. REQUIRES: the slot's codes are read by tiles (TabletEncoding::tile_codes).
  const uint8_t* Read(const Tile& tile, const TileMask& mask, size_t slot, const char** damaged);
  /// Bytes that tiles have unpacked since the last call.
  uint64_t TakeBytes() { return std::exchange(bytes_, 0); }

 private:
  struct Codes {
    std::unique_ptr<uint64_t[]> words;
    uint64_t tile = 0;  ///< whose codes it has
    int by_places = 0;  ///< how many of them it has read one by one, perhaps some again; all rows of the tile: all
  };
  std::vector<Codes> slots_;
  uint64_t bytes_ = 0;
};

}  // namespace tessera::vm
