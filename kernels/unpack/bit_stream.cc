#include "kernels/unpack/bit_stream.h"

#include "kernels/launch/tablet_record.h"
#include "tablet/chunk/packed_chunk.h"

namespace tessera::kernels {

std::optional<BitStream> AsBits(const Chunk& chunk) {
  PackedTree tree;
  if (ParsePackedCodes(chunk, &tree) != nullptr) return std::nullopt;
  BitStream stream;
  for (const PackedNode& node : tree) {
    if (node.scheme == static_cast<uint8_t>(Scheme::kFor)) {
      stream.base += node.parameter;
      continue;
    }
    if (node.scheme != static_cast<uint8_t>(Scheme::kNs) || node.bits == 0 || node.bits > kMostBits)
      return std::nullopt;
    // Codes that go round in the chunk's width would not do so in the kernel's words. (It numbers bits in 32 bits.)
    const uint64_t greatest = (uint64_t{1} << node.bits) - 1, most = ~uint64_t{0} >> (64 - 8 * chunk.width);
    const bool can =
        greatest <= most && stream.base <= most - greatest && uint64_t{node.bits} * chunk.rows <= UINT32_MAX;
    if (!can) return std::nullopt;
    stream.at = chunk.packed_codes + node.offset;
    stream.bits = node.bits;
    return stream;
  }
  return std::nullopt;
}

}  // namespace tessera::kernels
