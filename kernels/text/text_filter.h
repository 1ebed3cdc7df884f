// LIKE over the texts of plain chunks, which lie in device memory as they are stored: one thread tests an entry. How the
// host starts it. Private to kernels/.
//
// A block brings the bytes of its entries to shared memory first, because neighbouring threads read neighbouring
// entries. Patterns are literal parts between %; of each part the first place where it occurs after the part before it
// is taken. A thread looks for the first four bytes of a part, which it has in a register.
//
// Start at: StartTextFilter.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::kernels {

inline constexpr uint32_t kMostPatternBytes = 96, kMostPatternParts = 8;

/// first % middle % ... % last. Parts lie in `bytes` one after the other: the first one, the last one, those between
/// them. Plain data.
struct TextPattern {
  char bytes[kMostPatternBytes];
  uint8_t sizes[kMostPatternParts];
  uint32_t parts;  ///< at least 2
  uint32_t exact;  ///< 1: the text is the first part, without %
  friend bool operator==(const TextPattern&, const TextPattern&) = default;
};

/// Patterns of a predicate, and what it says of an entry: bit i of the `outcome` is whether the entry matches pattern i,
/// and the entry passes if bit `outcome` of these is set.
inline constexpr uint32_t kMostTextPatterns = 8;
struct TextOutcomes {
  uint64_t bits[(1 << kMostTextPatterns) / 64] = {};
};

/// A chunk, and the predicate that its entries are tested by. NULL never passes.
struct TextJob {
  const uint64_t* offsets = nullptr;  ///< rows + 1; clamped to `text_bytes`
  const char* texts = nullptr;
  uint64_t text_bytes = 0;
  const uint8_t* null_bytes = nullptr;  ///< nullptr: no NULL
  uint8_t* set = nullptr;               ///< out: 1 for each row that passes
  uint32_t rows = 0;
  uint32_t first_block = 0;  ///< of the launch
  uint32_t first_pattern = 0, patterns = 0;
  TextOutcomes passes;
};

struct TextFilter {
  const TextJob* jobs = nullptr;  ///< device addresses, by first_block
  const TextPattern* patterns = nullptr;
  uint32_t count = 0;  ///< of jobs
  uint32_t blocks = 0;
};
inline constexpr uint32_t kTextBlockRows = 256;

/// Fills the sets of all jobs.
cudaError_t StartTextFilter(const TextFilter& filter, cudaStream_t stream);

}  // namespace tessera::kernels
