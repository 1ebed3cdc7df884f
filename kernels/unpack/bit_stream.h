// Packed codes that are bits and nothing else, which can be read where they lie, one without the others. Private to
// kernels/; any thread.
//
// Start at: AsBits.
#pragma once

#include <cstdint>
#include <optional>

#include "tablet/chunk/chunk.h"

namespace tessera::kernels {

/// Codes of `bits` bits each, one after the other from the lowest bit of a word on; `base` is added to each.
struct BitStream {
  const uint8_t* at = nullptr;  ///< nullptr: there is none
  uint64_t base = 0;
  uint32_t bits = 0;  ///< 1 to kMostBits
};
/// What the packed codes of a chunk are, if they are NS below any number of FOR. REQUIRES: they are right.
std::optional<BitStream> AsBits(const Chunk& chunk);

}  // namespace tessera::kernels
