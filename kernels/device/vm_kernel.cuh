// The VM kernel: a producer warp feeds tiles into the ring, interpreter warps run the program over their slices of each
// tile. kernels/README.md describes the machine. Instantiated in the vm_kernel*.cu beside this and in dp_kernel.cu.
//
// Start at: VmKernel.
#pragma once

#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/interpreter.cuh"
#include "kernels/device/producer.cuh"
#include "kernels/device/ptx.cuh"
#include "kernels/device/ring.cuh"
#include "kernels/device/ring_position.cuh"

namespace tessera::kernels {

/// Blocks per multiprocessor for which ptxas assigns the kernel's registers. Before sm_90 it needs more registers where
/// kernels are linked on the device.
template <Variant kVariant>
inline constexpr uint32_t kBlocks =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    IsDp(kVariant) ? BlocksOf(kVariant) - 1 : BlocksOf(kVariant);
#else
    BlocksOf(kVariant);
#endif

/// Of a tile whose place in the ring is about to be filled again.
__device__ __forceinline__ void NoteSlice(const TileHeader& tile, WarpState* warp) {
  warp->slice_rows = tile.rows;
  warp->slice_tablet = tile.tablet;
  warp->slice_first = tile.first;
}

/// Launched with blocks of kThreads + 32 threads, as many as fit on the device at once. At the end each warp's cursor
/// is the first of its block's tiles that the warp has not applied.
template <Variant kVariant>
__global__ void __launch_bounds__(kThreads + 32, kBlocks<kVariant>) VmKernel(const __grid_constant__ Launch launch) {
  constexpr bool kFull = HasAll(kVariant);
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
    Producer<kVariant>(launch, shared).Run();
    return;
  }
  Machine<kVariant> machine{launch, shared, threadIdx.x};
  machine.full = false;
  machine.queued0 = machine.queued1 = 0;
#pragma unroll
  for (uint32_t i = 0; i < kRows; ++i) machine.a[i] = 0;
  uint32_t* cursor = launch.state.cursors + blockIdx.x * kWarps + threadIdx.x / 32;
  WarpState* warp = machine.Warp();
  if ((threadIdx.x & 31) == 0) {
    *warp = WarpState();
    if (launch.joins.marks != nullptr) warp->marked_at = clock64();
    warp->next = max(*cursor, FirstTileOf(blockIdx.x, gridDim.x, TilesOf<kVariant>(launch)));
  }
  __syncwarp();
  for (RingPosition ring;; ring.GoOn(layout.stages)) {
    const uint32_t stage = ring.stage();
    BarrierWait(filled + stage, ring.parity());
    machine.tile = headers + stage;
    if (!HasQueues(kVariant) && machine.tile->rows == 0) break;
    // A suspended warp skips the tiles that the producer had already fetched.
    const bool applies = machine.tile->rows != 0 && !machine.IsFull() && machine.tile->index >= warp->next;
    if (applies) {
      machine.stage = shared + layout.ring + stage * layout.stage_bytes;
      if constexpr (kFull) {
        machine.record = launch.input.record_staged
                             ? machine.stage
                             : launch.input.records + uint64_t{machine.tile->tablet} * launch.input.record_bytes;
      }
      machine.Run();
      __syncwarp();
      if ((threadIdx.x & 31) == 0) {
        uint32_t applied = 1;
        if constexpr (HasNestedLoops(kVariant)) {
          if (launch.grid.join != kNowhere) applied = machine.Unit().count;
        }
        warp->next = machine.tile->index + (machine.IsFull() ? 0 : applied);
      }
    }
    if constexpr (HasQueues(kVariant)) {
      // Queued rows need nothing of the stage, which can be filled again while they run.
      __syncwarp();
      if ((threadIdx.x & 31) == 0) {
        NoteSlice(*machine.tile, warp);
        if (warp->slice_rows != 0) BarrierArrive(emptied + ring.stage());
      }
      __syncwarp();
      if (layout.queues != kNowhere && (applies || warp->slice_rows == 0)) machine.RunQueues();
      if constexpr (HasAllQueued(kVariant) || Selects(kVariant)) {
        // All of its rows wait in queues, so nothing reads A. Said here, it takes no registers beside those of a batch.
#pragma unroll
        for (uint32_t i = 0; i < kRows; ++i) machine.a[i] = 0;
      }
      if (warp->slice_rows == 0) break;
    } else {
      __syncwarp();
      if ((threadIdx.x & 31) == 0) BarrierArrive(emptied + ring.stage());
    }
  }
  if ((threadIdx.x & 31) == 0) *cursor = warp->next;
  SyncFirstThreads<kThreads>();
  TearDownBlock<kVariant>(launch, shared);
  if constexpr (IsDp(kVariant)) {
    if (threadIdx.x == 0) atomicSub(launch.running, 1u);
  }
}

}  // namespace tessera::kernels
