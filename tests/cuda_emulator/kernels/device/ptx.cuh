// kernels/device/ptx.cuh for the emulator.
#pragma once

#include <chrono>

#include "cuda_cpp.h"

namespace tessera::kernels {

inline uint64_t LoadRelaxed(const uint64_t* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
inline uint32_t LoadRelaxed(const uint32_t* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
inline void StoreRelaxed(uint64_t* p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }

inline uint32_t LoadAcquireShared(const uint32_t* p) { return *p; }
inline void StoreReleaseShared(uint32_t* p, uint32_t v) { *p = v; }

inline void MulAddWide(uint64_t* sum, uint32_t a, uint32_t b) { *sum += uint64_t{a} * b; }
inline void MulAddWide(uint64_t* sum, int32_t a, int32_t b) { *sum += static_cast<uint64_t>(int64_t{a} * b); }

inline void ShiftIn(uint32_t& mask, uint32_t x, uint32_t not_span) { mask = 2 * mask + (x > ~not_span ? 1 : 0); }

inline uint32_t ReadThread() { return threadIdx.x; }

template <class T>
void KeepAddress(T*&) {}

template <uint32_t kCount>
void SyncFirstThreads(cuda_emulator::Where where = cuda_emulator::Where::current()) {
  cuda_emulator::Sync(1, kCount, where);
}

inline unsigned long long Nanoseconds() {
  return static_cast<unsigned long long>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace tessera::kernels
