// CUDA C++ for g++, as far as the kernels use it: included in front of each of them. A kernel is a function that
// runtime.cc calls for each thread; what threads do together is in block.h.
//
// __shared__ variables are thread-local, because a block runs on a thread of the host.
#pragma once

#include <cuda_runtime.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <ctime>
#include <type_traits>

#include "block.h"
#include "runtime.h"

#undef __device__
#undef __global__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#define __device__
#define __global__
#define __shared__ thread_local
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (::cuda_emulator::here->thread)
#define blockIdx (::cuda_emulator::here->block)
#define blockDim (::cuda_emulator::here->block_dim)
#define gridDim (::cuda_emulator::here->grid_dim)

#define clock() static_cast<clock_t>(__rdtsc())  // the C library's asks the system
inline long long clock64() { return static_cast<long long>(__rdtsc()); }

#ifndef cudaStreamTailLaunch
#define cudaStreamTailLaunch (::cuda_emulator::kTailLaunch)
#define cudaStreamFireAndForget (::cuda_emulator::kFireAndForget)
#endif

// ---- Arithmetic

template <class T>
requires std::is_arithmetic_v<T> T min(T a, std::type_identity_t<T> b) { return b < a ? b : a; }
template <class T>
requires std::is_arithmetic_v<T> T max(T a, std::type_identity_t<T> b) { return a < b ? b : a; }
inline int __popc(uint32_t v) { return std::popcount(v); }
inline int __ffs(int v) { return v == 0 ? 0 : std::countr_zero(static_cast<uint32_t>(v)) + 1; }
inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i) out |= static_cast<uint32_t>(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return out;
}
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (shift & 31));
}
inline uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t shift) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> std::min(shift, 32u));
}
inline double __longlong_as_double(long long v) { return std::bit_cast<double>(v); }
inline long long __double_as_longlong(double v) { return std::bit_cast<long long>(v); }

// ---- Memory

template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T __ldcv(const T* p) {
  return *p;
}
template <class T>
T __ldca(const T* p) {
  return *p;
}
/// Past L1, where what other blocks write is seen.
template <class T>
T __ldcg(const T* p) {
  if constexpr (std::is_arithmetic_v<T>) {
    return __atomic_load_n(p, __ATOMIC_RELAXED);
  } else {
    return *p;
  }
}
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

/// Replaces *p by f(*p) and returns what was there.
template <class T, class F>
T AtomicUpdate(T* p, F f) {
  std::atomic_ref<T> at(*p);
  T old = at.load(std::memory_order_relaxed);
  while (!at.compare_exchange_weak(old, f(old), std::memory_order_relaxed)) {
  }
  return old;
}
template <class T>
T atomicAdd(T* p, std::type_identity_t<T> v) {
  return AtomicUpdate(p, [v](T old) { return old + v; });
}
template <class T>
T atomicSub(T* p, std::type_identity_t<T> v) {
  return AtomicUpdate(p, [v](T old) { return old - v; });
}
template <class T>
T atomicMin(T* p, std::type_identity_t<T> v) {
  return AtomicUpdate(p, [v](T old) { return min(old, v); });
}
template <class T>
T atomicMax(T* p, std::type_identity_t<T> v) {
  return AtomicUpdate(p, [v](T old) { return max(old, v); });
}
template <class T>
T atomicOr(T* p, std::type_identity_t<T> v) {
  return AtomicUpdate(p, [v](T old) { return old | v; });
}
template <class T>
T atomicExch(T* p, std::type_identity_t<T> v) {
  return AtomicUpdate(p, [v](T) { return v; });
}
template <class T>
T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
  return AtomicUpdate(p, [expected, v](T old) { return old == expected ? v : old; });
}

// ---- What threads do together

inline void __syncthreads(cuda_emulator::Where where = cuda_emulator::Where::current()) {
  cuda_emulator::Sync(0, 0, where);
}
inline void __syncwarp(uint32_t mask = ~0u, cuda_emulator::Where where = cuda_emulator::Where::current()) {
  cuda_emulator::Meet(mask, 0, where);
}
inline void __nanosleep(uint32_t) { cuda_emulator::Poll(); }

/// Lanes that happen to be together need not be more than one.
inline uint32_t __activemask() { return 1u << (threadIdx.x & 31); }
/// Lanes of `mask`, which are the active ones, with the same value: this one.
template <class T>
uint32_t __match_any_sync(uint32_t mask, T) {
  return mask & __activemask();
}

/// Values of at most 64 bits as what lanes exchange.
template <class T>
uint64_t ToLaneValue(T v) {
  uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof(T));
  return bits;
}
template <class T>
T FromLaneValue(uint64_t bits) {
  T v;
  std::memcpy(&v, &bits, sizeof(T));
  return v;
}
template <class T>
T __shfl_sync(uint32_t mask, T v, int lane, cuda_emulator::Where where = cuda_emulator::Where::current()) {
  if ((mask >> (lane & 31) & 1) == 0) cuda_emulator::Fail("a shuffle from a lane that is not in the mask", where);
  if (mask == __activemask()) return v;
  return FromLaneValue<T>(cuda_emulator::Meet(mask, ToLaneValue(v), where)[lane & 31]);
}
template <class T>
T __shfl_xor_sync(uint32_t mask, T v, int lanes, cuda_emulator::Where where = cuda_emulator::Where::current()) {
  return __shfl_sync(mask, v, static_cast<int>(threadIdx.x & 31) ^ lanes, where);
}
template <class T>
T __shfl_up_sync(uint32_t mask, T v, uint32_t lanes, cuda_emulator::Where where = cuda_emulator::Where::current()) {
  const uint32_t own = threadIdx.x & 31;
  return __shfl_sync(mask, v, static_cast<int>(own < lanes ? own : own - lanes), where);
}
/// f over the values of the mask's lanes.
template <class T, class F>
T ReduceLanes(uint32_t mask, T v, F f, cuda_emulator::Where where) {
  const uint64_t* values = cuda_emulator::Meet(mask, ToLaneValue(v), where);
  bool first = true;
  T all = v;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const T other = FromLaneValue<T>(values[std::countr_zero(rest)]);
    all = first ? other : f(all, other);
    first = false;
  }
  return all;
}
template <class T>
T __reduce_add_sync(uint32_t mask, T v, cuda_emulator::Where where = cuda_emulator::Where::current()) {
  return ReduceLanes(
      mask, v, [](T a, T b) { return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }, where);
}
inline uint32_t __reduce_min_sync(uint32_t mask, uint32_t v,
                                  cuda_emulator::Where where = cuda_emulator::Where::current()) {
  return ReduceLanes(
      mask, v, [](uint32_t a, uint32_t b) { return min(a, b); }, where);
}
inline uint32_t __reduce_or_sync(uint32_t mask, uint32_t v,
                                 cuda_emulator::Where where = cuda_emulator::Where::current()) {
  return static_cast<uint32_t>(cuda_emulator::MeetOr(mask, v, where));
}
inline uint32_t __ballot_sync(uint32_t mask, int predicate,
                              cuda_emulator::Where where = cuda_emulator::Where::current()) {
  const uint32_t bit = predicate != 0 ? 1u << (threadIdx.x & 31) : 0;
  return static_cast<uint32_t>(cuda_emulator::MeetOr(mask, bit, where));
}
inline bool __any_sync(uint32_t mask, int predicate, cuda_emulator::Where where = cuda_emulator::Where::current()) {
  return __ballot_sync(mask, predicate, where) != 0;
}
