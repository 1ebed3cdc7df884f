// kernels/device/ring.cuh for the emulator: mbarriers as PTX defines them, and bulk copies that land some time later.
#pragma once

#include "cuda_cpp.h"
#include "kernels/device/ptx.cuh"

#define TESSERA_BULK_COPY 1

namespace tessera::kernels {

inline constexpr uint32_t kFullArrivals = 1;

/// The 64 bits of an mbarrier.
struct MBarrier {
  uint8_t arrivals, pending;  ///< of a phase; that are still awaited in this one
  uint16_t phase;
  int32_t bytes;  ///< that are still to come in this phase

  void TryComplete() {
    if (pending != 0 || bytes != 0) return;
    ++phase;
    pending = arrivals;
  }
  static MBarrier& At(uint64_t* barrier) { return *reinterpret_cast<MBarrier*>(barrier); }
};
static_assert(sizeof(MBarrier) == sizeof(uint64_t));

inline void BarrierInit(uint64_t* barrier, uint32_t arrivals) {
  MBarrier::At(barrier) = {static_cast<uint8_t>(arrivals), static_cast<uint8_t>(arrivals), 0, 0};
}
inline void BarrierInitDone() {}

inline void BarrierArrive(uint64_t* barrier, cuda_emulator::Where where = cuda_emulator::Where::current()) {
  MBarrier& b = MBarrier::At(barrier);
  if (b.pending == 0) cuda_emulator::Fail("one arrival more at a barrier than it awaits", where);
  --b.pending;
  b.TryComplete();
}

/// Returns at once if the phase of that parity is complete; otherwise others run first.
inline bool BarrierTryWait(uint64_t* barrier, uint32_t parity) {
  cuda_emulator::LandCopies([](const cuda_emulator::Copy& copy) {
    MBarrier& b = MBarrier::At(copy.barrier);
    b.bytes -= static_cast<int32_t>(copy.bytes);
    b.TryComplete();
  });
  if (MBarrier::At(barrier).phase % 2 != parity) return true;
  cuda_emulator::Poll();
  return MBarrier::At(barrier).phase % 2 != parity;
}
inline void BarrierWait(uint64_t* barrier, uint32_t parity) {
  while (!BarrierTryWait(barrier, parity)) {
  }
}

inline void BarrierExpect(uint64_t* barrier, uint32_t bytes,
                          cuda_emulator::Where where = cuda_emulator::Where::current()) {
  MBarrier::At(barrier).bytes += static_cast<int32_t>(bytes);
  BarrierArrive(barrier, where);
}

inline void CopyBulk(void* to, const void* from, uint32_t bytes, uint64_t* barrier,
                     cuda_emulator::Where where = cuda_emulator::Where::current()) {
  if (bytes % 16 != 0 || reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0)
    cuda_emulator::Fail("a bulk copy of bytes or addresses that are no multiples of 16", where);
  cuda_emulator::StartCopy({to, from, bytes, barrier});
}
inline void PrefetchBulk(const void* from, uint32_t bytes,
                         cuda_emulator::Where where = cuda_emulator::Where::current()) {
  if (bytes % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0)
    cuda_emulator::Fail("a bulk prefetch of bytes or an address that is no multiple of 16", where);
  for (uint32_t i = 0; i < bytes; i += 16) (void)static_cast<const volatile uint8_t*>(from)[i];
}
inline void CopyByLanes(uint8_t*, const uint8_t*, uint32_t, uint32_t) {}
inline void ArriveAfterCopies(uint64_t*) {}

}  // namespace tessera::kernels
