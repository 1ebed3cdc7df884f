// Rows that a section emits: into the output, or into the rows of a join table that is built. Members of Machine
// (machine.cuh).
//
// Apart because this sink alone can run full in the middle of a launch: a warp takes room for its slice before it
// writes.
//
// Start at: DoEmit.
#pragma once

#include "kernels/device/machine.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

/// The warp takes `n` rows of the output, or finds that there is no room.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ bool Machine<kVariant, R>::ReserveRows(unsigned long long n, unsigned long long* at) {
  unsigned long long base = 0;
  if (Lane32() == 0) {
    base = atomicAdd(&launch.state.control->rows, n);
    if (base + n > launch.output.capacity) {
      // The counter only grows, so later ones are refused as well: rows below the least refused base are
      // written.
      atomicMin(&launch.state.control->rows_valid, base);
      atomicMax(&launch.state.control->rows_wanted, n);
      Stop(kQueued ? kFailed : kOutputFull);  // (rows that are queued have room: launch.spare)
    } else if (base + n >= launch.enough) {
      Stop(kEnough);
    }
  }
  base = __shfl_sync(kAllLanes, base, 0);
  *at = base;
  return base + n <= launch.output.capacity;
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoEmit(const DeviceInstruction&, OperandRows<R>&) {
  const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(live)));
  if (IsReserving()) {
    if (Lane32() == 0) Warp()->rows_counted += n;
    __syncwarp();
    return;
  }
  if (n == 0) return;
  unsigned long long at;
  if (launch.input.two_passes) {
    at = Warp()->rows_at;
    __syncwarp();
    if (Lane32() == 0) Warp()->rows_at = at + n;
    __syncwarp();
  } else if (!ReserveRows(n, &at)) {
    full = true;
    return;
  }
  const Output& out = launch.output;
  const uint32_t below = (1u << Lane32()) - 1;
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) {
    const bool mine = (live >> i & 1) != 0;
    const uint32_t lanes = __ballot_sync(kAllLanes, mine);
    if (mine) {
      const unsigned long long row = at + static_cast<uint32_t>(__popc(lanes & below));
#pragma unroll 1
      for (uint32_t c = 0; c < out.columns; ++c) {
        const uint32_t register_at = __ldg(out.registers + c);
        uint8_t* r = Register(register_at);
        const unsigned long long to = static_cast<unsigned long long>(c) * out.capacity + row;
        if ((register_at & kWideRegister) != 0) {
          const longlong2 v = RegisterValues<longlong2>(r, thread)[i * kThreads];
          out.low[to] = static_cast<uint64_t>(v.x);
          out.high[static_cast<unsigned long long>(__ldg(out.highs + c)) * out.capacity + row] =
              static_cast<uint64_t>(v.y);
        } else {
          out.low[to] = static_cast<uint64_t>(RegisterValues<int64_t>(r, thread)[i * kThreads]);
        }
        out.null[to] = static_cast<uint8_t>(*RegisterNulls(r, thread) >> i & 1);
      }
    }
    at += static_cast<uint32_t>(__popc(lanes));
  }
}

/// A row of a join table: as Emit, without the rows that have a NULL key.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoBuild(const DeviceInstruction& in, OperandRows<R>& b) {
#pragma unroll 1
  for (uint32_t k = 0; k < launch.keys.of_build; ++k)
    live &= ~*RegisterNulls(Register(launch.keys.registers[k]), thread);
  DoEmit<M>(in, b);
}

}  // namespace tessera::kernels
