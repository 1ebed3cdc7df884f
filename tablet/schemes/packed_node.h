// What a packed stream consists of: a header, the nodes of its tree of schemes and their payloads. FORMAT.md gives every byte.
// And the values that go in and come out.
//
// Start at: PackedNode. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "base/uninitialized.h"

namespace tessera {

/// Values of a stream.
using Values = UninitializedVector<uint64_t>;

/// First bytes of a packed stream; `nodes` PackedNodes follow, parents before children, then their payloads in the same
/// order, each of a multiple of 8 bytes.
struct PackedHeader {
  uint32_t nodes;
  uint32_t reserved;  ///< 0
  uint64_t bytes;     ///< of all
};
static_assert(sizeof(PackedHeader) == 16);

struct PackedNode {
  uint8_t scheme;     ///< Scheme
  uint8_t bits;       ///< kNs: of a value; kScale: the power of ten
  uint16_t reserved;  ///< 0
  uint32_t values;    ///< of the stream that this is made from; kZstd: 0
  uint64_t
      parameter;    ///< kFor: base; kDelta: first value; kRle: runs; kDict, kBitmap: different values; kSep: divisor;
                    ///< kScale: least value (signed); kNsv: bytes of the values; kZstd: bytes unpacked
  uint64_t null;    ///< kScale: what stands for NULL in the child, UINT64_MAX if there are none; otherwise 0
  uint64_t offset;  ///< of the payload, from the header
  uint64_t bytes;   ///< of the payload
};
static_assert(sizeof(PackedNode) == 40);

/// For kScale: what codes of floating-point numbers are, see Chunk.
struct ScaledCodes {
  uint64_t base = 0;       ///< code = ordered form - base
  uint64_t null_code = 0;  ///< if the chunk has NULLs
  bool has_nulls = false;
  bool single = false;  ///< REAL
};

/// A copy of a stream's nodes, parents before children: what was checked must not change in a file that others can cut.
using PackedTree = std::vector<PackedNode>;

}  // namespace tessera
