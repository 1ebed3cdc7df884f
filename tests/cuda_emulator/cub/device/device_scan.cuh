// cub::DeviceScan for the emulator, as far as the kernels use it.
#pragma once

#include "cuda_cpp.h"

#include <cstring>

namespace cub {

struct DeviceScan {
  /// out[i] = in[0] + ... + in[i]; `in` may be `out`.
  template <class Value>
  static cudaError_t InclusiveSum(void* scratch, size_t& scratch_bytes, const Value* in, Value* out, uint32_t n,
                                  cudaStream_t stream = nullptr) {
    return Sum(scratch, scratch_bytes, in, out, n, true, stream);
  }
  /// out[i] = in[0] + ... + in[i - 1]
  template <class Value>
  static cudaError_t ExclusiveSum(void* scratch, size_t& scratch_bytes, const Value* in, Value* out, uint32_t n,
                                  cudaStream_t stream = nullptr) {
    return Sum(scratch, scratch_bytes, in, out, n, false, stream);
  }

 private:
  template <class Value>
  static cudaError_t Sum(void* scratch, size_t& scratch_bytes, const Value* in, Value* out, uint32_t n, bool inclusive,
                         cudaStream_t stream) {
    if (scratch == nullptr) {
      scratch_bytes = 1024;
      return cudaSuccess;
    }
    if (scratch_bytes < 1024) return cudaErrorInvalidValue;
    cuda_emulator::Enqueue(stream, [=] {
      std::memset(scratch, 0x77, 1024);
      Value sum = 0;
      for (uint32_t i = 0; i < n; ++i) {
        const Value before = sum;
        sum = static_cast<Value>(sum + in[i]);
        out[i] = inclusive ? sum : before;
      }
    });
    return cudaSuccess;
  }
};

}  // namespace cub
