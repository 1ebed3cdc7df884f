// How the host stops a launch that is under way. The word that stops it lies in device memory: some 400 blocks that read
// one in host memory before each tile would load the link. Private to kernels/memory/.
//
// Start at: StopWord::Send. One thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/status.h"
#include "kernels/cuda/cuda_memory.h"

namespace tessera::kernels {

class StopWord {
 public:
  StopWord() = default;
  ~StopWord();
  StopWord(const StopWord&) = delete;
  StopWord& operator=(const StopWord&) = delete;

  /// REQUIRES: called first; the device is current, as for Send.
  Status Open();
  /// Sets the launch's word `stop` on the device, beside the launch.
  Status Send(uint32_t* stop);

 private:
  cudaStream_t stream_ = nullptr;
  PinnedBuffer one_;  ///< the word that is copied
};

}  // namespace tessera::kernels
