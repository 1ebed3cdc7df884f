// The ring: mbarriers and copies into shared memory. From sm_90 on there is one bulk copy for each column of a tile;
// before it each lane copies 16 bytes at a time with cp.async. Both complete on the stage's "full" barrier.
#pragma once

#include <cstdint>

#include "kernels/device/ptx.cuh"

namespace tessera::kernels {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TESSERA_BULK_COPY 1
#else
#define TESSERA_BULK_COPY 0
#endif

/// Arrivals that complete a "full" barrier: the producer's first lane, or each lane's copies.
inline constexpr uint32_t kFullArrivals = TESSERA_BULK_COPY ? 1 : 32;

__device__ __forceinline__ void BarrierInit(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(arrivals) : "memory");
}

/// Makes initialised barriers visible to the copy engine.
__device__ __forceinline__ void BarrierInitDone() {
#if TESSERA_BULK_COPY
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ __forceinline__ void BarrierArrive(uint64_t* barrier) {
  asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(SharedAddress(barrier))
               : "memory");
}

__device__ __forceinline__ bool BarrierTryWait(uint64_t* barrier, uint32_t parity) {
  uint32_t done;
#if TESSERA_BULK_COPY
  asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n selp.b32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(SharedAddress(barrier)), "r"(parity)
               : "memory");
#else
  asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n selp.b32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(SharedAddress(barrier)), "r"(parity)
               : "memory");
#endif
  return done != 0;
}

/// Waits until the phase of the given parity is complete.
__device__ __forceinline__ void BarrierWait(uint64_t* barrier, uint32_t parity) {
  while (!BarrierTryWait(barrier, parity)) {
  }
}

/// For the producer's first lane: announces that `bytes` will arrive.
__device__ __forceinline__ void BarrierExpect(uint64_t* barrier, uint32_t bytes) {
#if TESSERA_BULK_COPY
  asm volatile(
      "{\n .reg .b64 state;\n mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;\n}" ::"r"(SharedAddress(barrier)),
      "r"(bytes)
      : "memory");
#else
  (void)barrier;
  (void)bytes;
#endif
}

/// One lane copies `bytes`, a multiple of 16, between addresses that are multiples of 16.
__device__ __forceinline__ void CopyBulk(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
#if TESSERA_BULK_COPY
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   SharedAddress(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(SharedAddress(barrier))
               : "memory");
#else
  (void)to, (void)from, (void)bytes, (void)barrier;
#endif
}

/// One lane brings `bytes`, a multiple of 16, from an address that is one, too, nearer: to the L2 cache.
__device__ __forceinline__ void PrefetchBulk(const void* from, uint32_t bytes) {
#if TESSERA_BULK_COPY
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
#else
  (void)from, (void)bytes;
#endif
}

/// All lanes copy `bytes` together, without a bulk copy engine.
__device__ __forceinline__ void CopyByLanes(uint8_t* to, const uint8_t* from, uint32_t bytes, uint32_t lane) {
#if defined(__CUDA_ARCH__) && !TESSERA_BULK_COPY
  for (uint32_t at = lane * 16; at < bytes; at += 32 * 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(SharedAddress(to + at)),
                 "l"(__cvta_generic_to_global(from + at))
                 : "memory");
  }
#else
  (void)to, (void)from, (void)bytes, (void)lane;
#endif
}

/// For each lane, after its CopyByLanes of a stage: the lane arrives at the barrier when its copies have landed.
__device__ __forceinline__ void ArriveAfterCopies(uint64_t* barrier) {
#if defined(__CUDA_ARCH__) && !TESSERA_BULK_COPY
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(SharedAddress(barrier)) : "memory");
#else
  (void)barrier;
#endif
}

}  // namespace tessera::kernels
