// The streams on which columns come to the device. Private to kernels/memory/.
//
// Start at: CopyStreams. The thread of the cache.
#pragma once

#include <cuda_runtime_api.h>

#include "base/status.h"
#include "kernels/cuda/cuda_memory.h"

namespace tessera::kernels {

struct CopyStreams {
  CopyStreams() = default;
  ~CopyStreams() {
    for (cudaStream_t s : {copy, unpack}) {
      if (s != nullptr) IgnoreError(cudaStreamDestroy(s));
    }
  }
  CopyStreams(const CopyStreams&) = delete;
  CopyStreams& operator=(const CopyStreams&) = delete;

  Status Open() {
    for (cudaStream_t* s : {&copy, &unpack}) {
      if (*s == nullptr) CUDA_TRY(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    }
    return Status::Ok();
  }
  /// Until nothing writes to memory of copies: what is dropped or given back then may be another's at once.
  void Wait() const {
    for (cudaStream_t s : {copy, unpack}) {
      if (s != nullptr) IgnoreError(cudaStreamSynchronize(s));
    }
  }

  cudaStream_t copy = nullptr;
  cudaStream_t unpack = nullptr;  ///< of the kernels that unpack what came
};

}  // namespace tessera::kernels
