// PTX instructions that CUDA C++ has no name for, one function each. (The copies into shared memory and their barriers
// are in ring.cuh.)
#pragma once

#include <cstdint>

namespace tessera::kernels {

__device__ __forceinline__ uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/// For device memory that other blocks write or read.
__device__ __forceinline__ uint64_t LoadRelaxed(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
  return v;
}
__device__ __forceinline__ uint32_t LoadRelaxed(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
  return v;
}
__device__ __forceinline__ void StoreRelaxed(uint64_t* p, uint64_t v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "l"(v) : "memory");
}

/// For shared memory, among the threads of a block.
__device__ __forceinline__ uint32_t LoadAcquireShared(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(SharedAddress(p)) : "memory");
  return v;
}
__device__ __forceinline__ void StoreReleaseShared(uint32_t* p, uint32_t v) {
  asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(SharedAddress(p)), "r"(v) : "memory");
}

/// sum += a * b in one instruction.
__device__ __forceinline__ void MulAddWide(uint64_t* sum, uint32_t a, uint32_t b) {
  asm("mad.wide.u32 %0, %1, %2, %0;" : "+l"(*sum) : "r"(a), "r"(b));
}
__device__ __forceinline__ void MulAddWide(uint64_t* sum, int32_t a, int32_t b) {
  asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(*sum) : "r"(a), "r"(b));
}

/// mask = 2 * mask + (x > ~not_span): the carry of an addition goes straight into the mask. Two instructions; a
/// comparison, a selection and the merging of bits take four.
__device__ __forceinline__ void ShiftIn(uint32_t& mask, uint32_t x, uint32_t not_span) {
  asm("{\n .reg .u32 sum;\n add.cc.u32 sum, %1, %2;\n addc.u32 %0, %0, %0;\n}" : "+r"(mask) : "r"(x), "r"(not_span));
}

/// threadIdx.x, read anew: what is computed from it cannot be moved out of the loop over instructions, where it would
/// hold a register for each address that any opcode uses (24 registers, measured with ptxas for sm_90).
__device__ __forceinline__ uint32_t ReadThread() {
  uint32_t t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
}

/// Hides how an address was computed, so that it is not computed anew for each use.
template <class T>
__device__ __forceinline__ void KeepAddress(T*& p) {
  asm("" : "+l"(p));
}

/// A barrier of the block's first kCount threads.
template <uint32_t kCount>
__device__ __forceinline__ void SyncFirstThreads() {
  asm volatile("bar.sync 1, %0;" ::"n"(kCount) : "memory");
}

__device__ __forceinline__ unsigned long long Nanoseconds() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

}  // namespace tessera::kernels
