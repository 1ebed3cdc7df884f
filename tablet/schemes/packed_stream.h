// A compressed stream: the tree of schemes that made it, and their bytes. FORMAT.md gives every byte.
//
// The reader of one that a stranger may have written asks ParsePackedStream first; unpacking then checks what depends
// on values (numbers of dictionary entries, sums of run lengths), and never reads or writes out of bounds.
//
// Start at: PackIntegers, PackBytes, ParsePackedStream, UnpackStream. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tablet/schemes/packed_node.h"
#include "tablet/schemes/scheme.h"

namespace tessera {

// What a scheme makes of a stream: the same for packing it and for planning.

/// kRle: the values of the runs, and their lengths less 1.
void SplitRuns(std::span<const uint64_t> values, Values* runs, Values* lengths);
/// kSep. REQUIRES: divisor > 0.
void Separate(std::span<const uint64_t> values, uint64_t divisor, Values* quotients, Values* remainders);
/// kFor: each value less `base`.
Values LessBase(std::span<const uint64_t> values, uint64_t base);
/// kDelta. REQUIRES: there are values.
Values DeltasOf(std::span<const uint64_t> values);

/// `values` by the schemes of `tree`; nullopt if they cannot be (NSV above 32 bits, more than 64 bitmaps, numbers that
/// are no decimals). `scaled`: for a tree that begins with kScale, else nullptr.
std::optional<std::vector<uint8_t>> PackIntegers(std::span<const uint64_t> values, const SchemeTree& tree,
                                                 const ScaledCodes* scaled);
/// Bytes by kZstd.
std::vector<uint8_t> PackBytes(std::span<const uint8_t> bytes, int level);

/// The numbers that kScale stores for codes: value times 10^`power`, each a whole number of at most 2^53 that gives the
/// same value back; NULLs `*null`. nullopt if there is another number among them.
std::optional<Values> ScaleCodes(std::span<const uint64_t> codes, int power, const ScaledCodes& scaled, int64_t* least,
                                 uint64_t* null);

/// Reads the nodes of a packed stream of `bytes` bytes and makes sure that they are one tree, that each stream has as
/// many values as its parent says, and that payloads lie where they must. Returns why not, or nullptr.
/// `values`: what the stream unpacks to; `width`: bytes of a value, 0 for bytes by kZstd. `scaled`: kScale is allowed.
const char* ParsePackedStream(const uint8_t* stream, uint64_t bytes, uint64_t values, int width, bool scaled,
                              PackedTree* tree);

/// Unpacks to integers of `width` bytes (1, 2, 4, 8; 0: bytes). Returns why it cannot be done, or nullptr. Values that do
/// not fit into the width lose their upper bits. `tree`: what ParsePackedStream() gave with the same arguments.
const char* UnpackStream(const uint8_t* stream, const PackedTree& tree, int width, const ScaledCodes* scaled,
                         uint8_t* out);

/// The node after the tree whose root is node `at`. REQUIRES: `tree` was checked.
size_t EndOfTree(const PackedTree& tree, size_t at);

/// How many runs a stream has whose tree is kRle below any number of kFor; 0: it is another tree.
uint64_t RunsIn(const PackedTree& tree);
/// Unpacks these runs, and not their rows: of each the value, of `width` bytes (1, 2, 4, 8), and its rows less 1. Returns as
/// UnpackStream. REQUIRES: RunsIn(tree) > 0.
const char* UnpackRuns(const uint8_t* stream, const PackedTree& tree, int width, uint8_t* values, uint32_t* lengths);

/// Makes a tree of runs that of their values, or of their rows less 1. REQUIRES: RunsIn(*tree) > 0.
void KeepOfRuns(bool values, PackedTree* tree);

/// Which schemes a tree has, with the bits of NS: "RLE, [[DELTA, NS3] | NS4]".
std::string DescribePackedTree(const PackedTree& tree);

}  // namespace tessera
