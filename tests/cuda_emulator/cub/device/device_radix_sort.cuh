// cub::DeviceRadixSort for the emulator, as far as the kernels use it.
#pragma once

#include "cuda_cpp.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace cub {

template <class T>
struct DoubleBuffer {
  T* buffers[2] = {};
  int selector = 0;
  DoubleBuffer(T* current, T* other) : buffers{current, other} {}
  T* Current() const { return buffers[selector]; }
  T* Alternate() const { return buffers[1 - selector]; }
};

struct DeviceRadixSort {
  /// By bits [begin_bit, end_bit) of the keys, rows with equal ones in the order they have. The result is in the other
  /// buffers.
  template <class Key, class Value>
  static cudaError_t SortPairs(void* scratch, size_t& scratch_bytes, DoubleBuffer<Key>& keys,
                               DoubleBuffer<Value>& values, uint32_t n, int begin_bit = 0, int end_bit = sizeof(Key) * 8,
                               cudaStream_t stream = nullptr) {
    if (scratch == nullptr) {
      scratch_bytes = 4096;
      return cudaSuccess;
    }
    if (scratch_bytes < 4096) return cudaErrorInvalidValue;
    const Key mask = static_cast<Key>((end_bit == sizeof(Key) * 8 ? ~Key{0} : (Key{1} << end_bit) - 1) >> begin_bit
                                                                                                        << begin_bit);
    cuda_emulator::Enqueue(stream, [=, from = keys.Current(), to = keys.Alternate(), values_from = values.Current(),
                                    values_to = values.Alternate()] {
      std::memset(scratch, 0x77, 4096);
      std::vector<uint32_t> order(n);
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return (from[a] & mask) < (from[b] & mask); });
      for (uint32_t i = 0; i < n; ++i) {
        to[i] = from[order[i]];
        values_to[i] = values_from[order[i]];
      }
      std::memset(from, 0x77, n * sizeof(Key));
      std::memset(values_from, 0x77, n * sizeof(Value));
    });
    keys.selector ^= 1;
    values.selector ^= 1;
    return cudaSuccess;
  }
};

}  // namespace cub
