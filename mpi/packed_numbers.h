// Numbers packed for a message: each less the least one, in the 1, 2, 4 or 8 bytes that the greatest needs. Private to
// mpi/.
//
// Start at: NumberPacking, PackNumbers. Plain data; no MPI. The threads of a pool, if there is one, share long lists.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace tessera {

struct NumberPacking {
  int64_t least = 0;
  uint8_t width = 1;  ///< bytes of a number
};
inline bool IsWidth(uint8_t width) { return width == 1 || width == 2 || width == 4 || width == 8; }

/// How `values` are packed. T: int64_t or uint32_t. `null`: of values that do not count if it is not 0; or empty.
template <class T>
NumberPacking PackingOf(std::span<const T> values, std::span<const uint8_t> null, ThreadPool* pool);
/// Writes values.size() * width bytes. What does not count becomes the least number.
template <class T>
void PackNumbers(std::span<const T> values, std::span<const uint8_t> null, const NumberPacking& packing, char* to,
                 ThreadPool* pool);
/// Reads as many bytes.
template <class T>
void UnpackNumbers(const char* from, const NumberPacking& packing, std::span<T> values, ThreadPool* pool);

}  // namespace tessera
