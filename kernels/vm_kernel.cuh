// The VM kernel: a producer warp feeds tiles into the ring, interpreter warps run the program over their slices of each
// tile. README.md beside this describes the machine. Instantiated in vm_kernel.cu and vm_kernel_lean.cu.
#pragma once

#include "kernels/aggregate_state.cuh"
#include "kernels/interpreter.cuh"
#include "kernels/producer.cuh"
#include "kernels/ring.cuh"

namespace tessera::kernels {

/// Three blocks of 5 warps put 4 warps on each quarter of a multiprocessor and leave 128 registers a thread, just
/// enough for all opcodes. Four put 5 there and leave 96.
inline constexpr uint32_t kFullBlocks = 3;
inline constexpr uint32_t kLeanBlocks = 4;

/// Blocks of kThreads + 32 threads, as many as fit on the device at once: a block takes every gridDim.x-th tile. At the
/// end each warp's cursor is the first of its block's tiles that it has not applied.
template <bool kFull>
__global__ void __launch_bounds__(kThreads + 32, kFull ? kFullBlocks : kLeanBlocks)
    VmKernel(const __grid_constant__ Launch launch) {
  extern __shared__ __align__(128) uint8_t shared[];
  const Layout& layout = launch.layout;
  uint64_t* filled = reinterpret_cast<uint64_t*>(shared + layout.barriers);
  uint64_t* emptied = filled + layout.stages;
  TileHeader* headers = reinterpret_cast<TileHeader*>(shared + layout.headers);
  if (threadIdx.x == 0) {
    for (uint32_t s = 0; s < layout.stages; ++s) {
      BarrierInit(filled + s, kFullArrivals);
      BarrierInit(emptied + s, kWarps);
    }
    BarrierInitDone();
  }
  SetUpBlock(launch, shared);
  __syncthreads();
  if (threadIdx.x >= kThreads) {
    Producer(launch, shared).Run();
    return;
  }
  Machine<kFull> machine{launch, shared, threadIdx.x};
  machine.full = false;
#pragma unroll
  for (uint32_t i = 0; i < kRows; ++i) machine.a[i] = 0;
  uint32_t* cursor = launch.cursors + blockIdx.x * kWarps + threadIdx.x / 32;
  WarpState* warp = machine.Warp();
  if ((threadIdx.x & 31) == 0) *warp = WarpState{0, 0, *cursor};
  __syncwarp();
  for (uint32_t stage = 0, parity = 0;;) {
    BarrierWait(filled + stage, parity);
    machine.tile = headers + stage;
    if (machine.tile->rows == 0) break;
    // A warp that was suspended lets the tiles pass that the producer had already fetched.
    if (!machine.IsFull() && machine.tile->index >= warp->next) {
      machine.stage = shared + layout.ring + stage * layout.stage_bytes;
      if constexpr (kFull) {
        machine.record = launch.record_staged
                             ? machine.stage
                             : launch.records + static_cast<uint64_t>(machine.tile->tablet) * launch.record_bytes;
      }
      machine.Run();
      __syncwarp();
      if ((threadIdx.x & 31) == 0) warp->next = machine.tile->index + (machine.IsFull() ? 0 : gridDim.x);
    }
    __syncwarp();
    if ((threadIdx.x & 31) == 0) BarrierArrive(emptied + stage);
    if (++stage == layout.stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  if ((threadIdx.x & 31) == 0) *cursor = warp->next;
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
  TearDownBlock(launch, shared);
}

}  // namespace tessera::kernels
