// Where a warp is in the ring.
//
// Start at: RingPosition.
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// A stage of the ring, and the parity of the phase that its barrier is in. One register.
class RingPosition {
 public:
  __device__ __forceinline__ uint32_t stage() const { return at_ & ~kParity; }
  __device__ __forceinline__ uint32_t parity() const { return at_ / kParity; }
  __device__ __forceinline__ void GoOn(uint32_t stages) {
    if (stage() + 1 == stages) {
      at_ = ~at_ & kParity;
    } else {
      ++at_;
    }
  }

 private:
  static constexpr uint32_t kParity = 1u << 31;
  uint32_t at_ = 0;
};

}  // namespace tessera::kernels
