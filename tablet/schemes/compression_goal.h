// What packing is for.
#pragma once

#include <cstdint>

namespace tessera {

/// What packing is for: SET compression.
enum class CompressionGoal : uint8_t {
  kNone,      ///< codes of whole bytes, read in place
  kSpeed,     ///< what unpacks as fast as memory is read
  kBalanced,  ///< what pays as soon as a disk or a link is read
  kRatio,     ///< the fewest bytes
};

}  // namespace tessera
