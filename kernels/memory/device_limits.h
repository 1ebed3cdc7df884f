// What a GPU has room for, as far as planning a launch has to know it. No CUDA here. Private to kernels/.
#pragma once

#include <cstdint>

namespace tessera::kernels {

struct DeviceLimits {
  uint32_t shared_per_block = 0;  ///< bytes of shared memory, with opt-in
  uint32_t shared_per_multiprocessor = 0;
  uint32_t multiprocessors = 0;
  uint64_t cache_bytes = 0;      ///< L2
  uint64_t groups = UINT64_MAX;  ///< numbers of groups that there is room for in device memory
  uint64_t rows = UINT64_MAX;    ///< that an output should have room for
};

}  // namespace tessera::kernels
