// Sorting rows by their columns: how the host starts it. Private to kernels/.
//
// The sort keys are cut into *parts*: whether a key is NULL, its value, each half of a wide value. A part has as many
// bits as the range of its codes needs. Parts are packed into *words* of up to 64 bits. The radix sort takes the words
// one after the other, the least significant first.
//
// Start at: PackParts, StartSort, StartGather.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace tessera::kernels {

/// How the values of a part become codes, unsigned numbers in their order.
enum class SortCode : uint8_t {
  kNull,      ///< 0 or 1: the row is NULL
  kInteger,   ///< signed
  kUnsigned,  ///< the lower half of a wide value
  kFloat,     ///< -0.0 equals 0.0; NaN is greater than every number
  kRank,      ///< of a text, by its identifier
};

struct SortPart {
  SortCode code = SortCode::kInteger;
  bool reversed = false;  ///< descending; kNull: NULL comes first
  uint8_t shift = 0;      ///< of its bits in the word
  const uint64_t* values = nullptr;
  const uint8_t* null = nullptr;
  const uint32_t* ranks = nullptr;  ///< kRank
  /// The least and the greatest code of rows that are not NULL (kNull: of all rows); low > high: there are none. NULL
  /// has the bits 0 in all parts but kNull.
  uint64_t low = 0, high = UINT64_MAX;
};

inline constexpr uint32_t kMostParts = 16;
struct SortWord {
  uint32_t bits = 0, count = 0;
  SortPart parts[kMostParts];
};
/// The words of parts, most significant part first; the words come least significant first. None: all rows are equal.
std::vector<SortWord> PackParts(const std::vector<SortPart>& parts);

/// The range of a part's codes, before any code was seen.
struct CodeRange {
  unsigned long long low = UINT64_MAX, high = 0;
};
/// Widens ranges[i] by the codes of parts[i] in rows [0, rows).
cudaError_t StartFindRanges(const std::vector<SortPart>& parts, uint32_t rows, CodeRange* ranges, cudaStream_t stream);

/// Bytes of device memory that StartSort needs for that many rows.
cudaError_t SortScratchBytes(uint32_t rows, size_t* bytes);
/// (*order)[i] becomes the number of the row that comes i-th among rows [0, rows), or among[0 .. rows) if that is
/// given. Rows that are equal keep their order. *order lies in the scratch memory.
cudaError_t StartSort(const std::vector<SortWord>& words, const uint32_t* among, uint32_t rows, void* scratch,
                      size_t scratch_bytes, const uint32_t** order, cudaStream_t stream);

/// Selects the rows of [0, rows) whose word is no greater than that of row *bound: their numbers, in any order. *count,
/// 0 before, becomes their number.
cudaError_t StartSelect(const SortWord& word, const uint32_t* bound, uint32_t rows, uint32_t* selected, uint32_t* count,
                        cudaStream_t stream);

/// Columns of 64 bits and of NULL bytes, each with room for `capacity` rows, one after the other.
struct RowColumns {
  uint64_t* low = nullptr;
  uint8_t* null = nullptr;
  uint64_t capacity = 0;
};
/// Row i of `to` becomes row order[i] of `from`, or row i if there is no order, in `columns` columns and `null_columns`
/// columns of NULL bytes.
cudaError_t StartGather(const RowColumns& from, const RowColumns& to, uint32_t columns, uint32_t null_columns,
                        const uint32_t* order, uint32_t rows, cudaStream_t stream);

}  // namespace tessera::kernels
