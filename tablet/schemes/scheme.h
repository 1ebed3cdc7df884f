// The compression schemes of Fang, He and Luo ("Database Compression on Graphics Processors", VLDB 2010), and trees of
// them: a scheme makes streams of integers from one, and each of these may be compressed by another scheme. A stream is
// some 2^20 unsigned 64-bit integers at most; what they mean (codes of a chunk, lengths of texts) is no matter here.
//
// Start at: Scheme, SchemeTree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// The numbers are in files.
enum class Scheme : uint8_t {
  kNs = 0,      ///< null suppression: every value in the same number of bits, 0 to 64
  kNsv = 1,     ///< the same with a length for each value: 1 to 4 bytes, and 2 bits that say how many
  kFor = 2,     ///< frame of reference: the least value, and [values less it]
  kDelta = 3,   ///< the first value, and [each value less the one before it], modulo 2^64
  kRle = 4,     ///< run-length encoding: [values of the runs], [their lengths less 1]
  kDict = 5,    ///< [the different values, ascending], [the number of each row's value]
  kBitmap = 6,  ///< [the different values], and for each of them one bit a row
  kSep = 7,     ///< separation: [quotients] and [remainders] of a divisor: dates and times, decimals
  kScale = 8,   ///< floating-point numbers as decimals: [value times 10^n, less the least]
  kZstd = 9,    ///< bytes, by the library zstd
};
inline constexpr int kSchemes = 10;

/// Of a tree: schemes from the root to a leaf, and all of them.
inline constexpr int kDeepestTree = 6, kMostSchemes = 31;

/// What the scheme makes: other streams; 0 for a leaf.
int ChildrenOf(Scheme scheme);
/// "RLE"
const char* NameOf(Scheme scheme);

/// Which schemes compress a stream.
struct SchemeTree {
  Scheme scheme = Scheme::kNs;
  uint64_t parameter = 0;  ///< kSep: the divisor; kScale: n; kZstd: the level
  std::vector<SchemeTree> children;

  static SchemeTree Leaf(Scheme scheme) { return {scheme, 0, {}}; }
  /// As the paper writes it: "RLE, [[DELTA, NS] | NS]".
  std::string ToString() const;
};

}  // namespace tessera
