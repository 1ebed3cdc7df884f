#include "vm/machine/unpacked_codes.h"

#include <cstring>

#include "tablet/schemes/packed_reader.h"

namespace tessera::vm {

const uint8_t* UnpackedCodes::Read(const Tile& tile, const TileMask& mask, size_t slot, const char** damaged) {
  static_assert(kTileRows <= PackedReader::kMostRows);
  /// To read one row by itself takes as long as this many side by side.
  constexpr int kRowsForOne = 12;
  const int width = tile.tablet->slots[slot].width, rows = mask.rows(), live = mask.live();
  Codes& unpacked = slots_[slot];
  if (unpacked.words == nullptr) unpacked.words = std::make_unique_for_overwrite<uint64_t[]>(PackedReader::kRoom);
  uint8_t* const out = reinterpret_cast<uint8_t*>(unpacked.words.get());
  if (unpacked.tile != tile.number) {
    unpacked.tile = tile.number;
    unpacked.by_places = 0;
  }
  if (unpacked.by_places == rows) return out;
  const PackedReader& reader = *tile.tablet->tile_codes[slot]->reader;
  const char* reason;
  // (The mask may get rows back that are not read now, and a loop comes here again and again.)
  if (mask.sparse() && (unpacked.by_places + live) * kRowsForOne < rows) {
    reason = reader.ReadPlaces(tile.first, mask.LiveRows(), out);
    bytes_ += static_cast<uint64_t>(live * width);
    unpacked.by_places += live;
  } else {
    reason = reader.Read(tile.first, static_cast<uint32_t>(rows), out);
    bytes_ += static_cast<uint64_t>(rows * width);
    unpacked.by_places = rows;
  }
  if (reason != nullptr) {
    // What follows in this instruction must not meet codes without meaning.
    memset(out, 0, sizeof(uint64_t) * kTileRows);
    *damaged = reason;
  }
  return out;
}

}  // namespace tessera::vm
