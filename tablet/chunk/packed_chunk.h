// Chunks whose streams are packed by trees of schemes (schemes/), and back. A packed chunk unpacks to the very streams
// that chunk_encoder.h made, so readers of chunks see no difference.
//
// Start at: PackChunk, UnpackChunk. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/schemes/compression_goal.h"
#include "tablet/schemes/packed_reader.h"
#include "tablet/schemes/packed_stream.h"
#include "tablet/schemes/scheme_planner.h"

namespace tessera {

/// Packs the streams for which that pays. Streams of less than a kilobyte stay as they are.
void PackChunk(CompressionGoal goal, EncodedChunk* chunk);

/// Bytes that stream `s` has unpacked. REQUIRES: CheckDescriptor().
uint64_t UnpackedBytes(const ChunkDescriptor& descriptor, uint32_t rows, Stream s);

/// Unpacks the packed streams of a chunk (all, or all but its codes) one after the other into `out`, each from a
/// multiple of kStreamAlignment on and padded to it with zeros, and points `chunk` there; returns why it cannot be
/// done, or nullptr. `chunk` is ViewChunk() of the descriptor; `out` has UnpackedRoom() bytes.
const char* UnpackChunk(const ChunkDescriptor& descriptor, const uint8_t* file, bool codes, uint8_t* out, Chunk* chunk);
uint64_t UnpackedRoom(const ChunkDescriptor& descriptor, uint32_t rows, bool codes);

/// Why the packed codes of a chunk are no tree of schemes, nullptr if they are. What depends on their values is not looked
/// at.
const char* CheckPackedCodes(const ChunkDescriptor& descriptor, uint32_t rows, const uint8_t* file);

/// The tree of schemes that makes the packed codes of a chunk, or of their part. Returns why there is none, or nullptr.
/// REQUIRES: chunk.packed_codes have the right checksum.
const char* ParsePackedCodes(const Chunk& chunk, PackedTree* tree);

/// Whether packed codes are bits that tell each code by themselves (NS, below FOR or not): to read them takes as long as to
/// read what they unpack to. REQUIRES: as ParsePackedCodes.
bool ArePlainBits(const Chunk& chunk);

/// Reads packed codes of a chunk, some rows at a time; codes without meaning are an error of the reader. nullptr: they have
/// to be unpacked whole, or are not packed. `checked`: they are known to unpack to what the chunk says. If they are not,
/// NULLs are counted here. REQUIRES: as ParsePackedCodes.
std::unique_ptr<const PackedReader> OpenPackedCodes(const Chunk& chunk, bool checked);

/// What the codes of a chunk of floating-point numbers are.
ScaledCodes ScaledCodesOf(const ChunkDescriptor& descriptor);
ScaledCodes ScaledCodesOf(const Chunk& chunk);

/// The encoding of a chunk and the schemes of its streams, for people: "FOR, NS7", "DICT, [NS1 | ZSTD]".
std::string DescribeChunk(const ChunkDescriptor& descriptor, uint32_t rows, const uint8_t* file);

}  // namespace tessera
