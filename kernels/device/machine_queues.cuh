// Queues of the star and the queue kernel: rows that filters have left wait here, with their cursors, until they make a batch.
// Members of Machine (machine.cuh).
//
// Apart because a batch runs on a machine of its own, with 4 rows a thread that lie anywhere in a tablet instead of 16
// of a tile.
//
// Start at: RunQueues.
#pragma once

#include "kernels/device/machine.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

/// A few rows cost nearly as much as 512. So where filters leave few, the warp collects the rows of many slices in a
/// queue and runs the rest of the program over batches of 128.
///
/// Adds the live rows of a slice that paused (WarpState says where it lies), then runs full batches. Before rows of another
/// tablet, and at the end, it also runs the last, shorter batch. Batches come from the ends of the queues. REQUIRES: of
/// what the program has set before it pauses, only cursors are read later.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::RunQueues() {
  WarpState* warp = Warp();
  if (warp->slice_rows == 0 || !paused) live = 0;
  Machine<kVariant, kQueuedRows> few{launch, shared, thread};
  few.tile = tile;
  few.full = few.reserve = false;
  few.null = few.null_w = 0;
#pragma unroll
  for (uint32_t k = 0; k < kQueuedRows; ++k) few.a[k] = 0;
#pragma unroll 1
  for (;;) {
    uint32_t count, resume;
    const bool flush = warp->slice_rows == 0 || warp->tablet != warp->slice_tablet;
    if (queued1 >= kBatchRows || (flush && queued0 == 0 && queued1 != 0)) {
      count = min(queued1, kBatchRows);
      queued1 -= count;
      few.entry = kQueueRows + queued1;
      resume = launch.queues.resume[1];
    } else if (queued0 >= kBatchRows || (flush && queued0 != 0)) {
      count = min(queued0, kBatchRows);
      queued0 -= count;
      few.entry = queued0;
      resume = launch.queues.resume[0];
    } else {
      if (!__any_sync(kAllLanes, live != 0)) return;
      __syncwarp();
      if (Lane32() == 0) warp->tablet = warp->slice_tablet;
      __syncwarp();
      AddSlice();
      continue;
    }
    few.entry += Lane32();
    const uint32_t mine = count > Lane32() ? (count - Lane32() + 31) / 32 : 0;
    few.live = (1u << mine) - 1;
    few.record = launch.input.records + static_cast<uint64_t>(warp->tablet) * launch.input.record_bytes;
    few.RunFrom(resume);
    if (few.entry < kQueueRows && few.paused) AddBatch(few);
  }
}

/// Moves the live rows of a slice, with their cursors, to the first queue: all of them, or those of a quarter if all are too
/// many. They are no longer live. REQUIRES: less than a batch waits there.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::AddSlice() {
  constexpr uint32_t kQuarter = (1u << R / 4) - 1, kLast = 1u << (R - 1);
  uint32_t adding = live;
  if (queued0 + __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(adding))) > kQueueRows)
    adding &= kQuarter << (__ffs(static_cast<int>(__reduce_or_sync(kAllLanes, live))) - 1);
  live &= ~adding;
  const uint32_t mine = static_cast<uint32_t>(__popc(adding));
  uint32_t through = mine;
#pragma unroll
  for (uint32_t d = 1; d < 32; d <<= 1) {
    const uint32_t before = __shfl_up_sync(kAllLanes, through, d);
    if (Lane32() >= d) through += before;
  }
  const uint32_t position = queued0 + through - mine, first = Warp()->slice_first;
  uint32_t* to = QueuedRows() + position;
  // Two rows at a time, so that the second one need not wait for the first one.
#pragma unroll 1
  for (uint32_t left = adding; left != 0; left &= left - 1) {
    *to++ = first + RowOf(static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1);
    left &= left - 1;
    if (left == 0) break;
    *to++ = first + RowOf(static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1);
  }
#pragma unroll 1
  for (uint32_t j = 0; j < launch.queues.carried[0]; ++j) {
    const uint32_t from = launch.queues.carried_from[j], array = launch.queues.carried_to[0][j];
    uint32_t at = QueueAt() + position;
#pragma unroll 1
    for (uint32_t left = adding; left != 0; left &= left - 1) {
      const uint32_t one = LoadCursor(from, RowOf(static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1));
      left &= left - 1;
      const uint32_t other = LoadCursor(from, RowOf(static_cast<uint32_t>(__ffs(static_cast<int>(left | kLast))) - 1));
      StoreCursor(array, at++, one);
      if (left == 0) break;
      StoreCursor(array, at++, other);
    }
  }
  queued0 += __shfl_sync(kAllLanes, through, 31);
  __syncwarp();
}

/// Copies the live rows of a batch, with their cursors, to the second queue.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::AddBatch(const Machine<kVariant, kQueuedRows>& few) {
  uint32_t to[kQueuedRows], moved[kQueuedRows];
  uint32_t* const rows = QueuedRows();
#pragma unroll
  for (uint32_t i = 0; i < kQueuedRows; ++i) {
    const uint32_t keeping = __ballot_sync(kAllLanes, (few.live >> i & 1) != 0);
    to[i] = kQueueRows + queued1 + static_cast<uint32_t>(__popc(keeping & ((1u << Lane32()) - 1)));
    queued1 += static_cast<uint32_t>(__popc(keeping));
    moved[i] = rows[few.entry + 32 * i];
  }
#pragma unroll
  for (uint32_t i = 0; i < kQueuedRows; ++i) {
    if ((few.live >> i & 1) != 0) rows[to[i]] = moved[i];
  }
#pragma unroll 1
  for (uint32_t j = 0; j < launch.queues.carried[1]; ++j) {
    const uint32_t array = launch.queues.carried_to[1][j];
    LoadCursors(array, QueueAt() + few.entry, moved);
#pragma unroll
    for (uint32_t i = 0; i < kQueuedRows; ++i) {
      if ((few.live >> i & 1) != 0) StoreCursor(array, QueueAt() + to[i], moved[i]);
    }
  }
  __syncwarp();
}

}  // namespace tessera::kernels
