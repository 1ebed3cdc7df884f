#include "kernels/run/block_turns.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/cuda_memory.h"

namespace tessera::kernels {
namespace {

/// A cursor of a block that rests. (No launch has that many tiles, and what is added to it does not wrap around.)
constexpr uint32_t kBehindAllTiles = 1u << 31;

}  // namespace

Status BlockTurns::Begin(const Launch& launch, uint32_t blocks, uint32_t turn, cudaStream_t stream) {
  turn_ = turn;
  blocks_ = blocks;
  cursors_.assign(uint64_t{blocks} * kWarps, 0);
  running_.assign(blocks, true);
  next_ = 0;
  TESSERA_TRY(FetchCursors(launch, stream));
  moved_ = false;
  return Status::Ok();
}

Status BlockTurns::FetchCursors(const Launch& launch, cudaStream_t stream) {
  std::vector<uint32_t> now(cursors_.size());
  CUDA_TRY(
      cudaMemcpyAsync(now.data(), launch.state.cursors, now.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost, stream));
  CUDA_TRY(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < now.size(); ++i) {
    if (!running_[i / kWarps]) continue;
    moved_ |= now[i] != cursors_[i];
    cursors_[i] = now[i];
  }
  return Status::Ok();
}

bool BlockTurns::IsUnfinished(uint32_t block, uint32_t tiles) const {
  const uint32_t* at = cursors_.data() + uint64_t{block} * kWarps;
  return *std::min_element(at, at + kWarps) < FirstTileOf(block + 1, blocks_, tiles);
}

bool BlockTurns::HasUnfinished(uint32_t tiles) const {
  for (uint32_t b = 0; active() && b < blocks_; ++b) {
    if (IsUnfinished(b, tiles)) return true;
  }
  return false;
}

Status BlockTurns::SendTurn(const Launch& launch, uint32_t tiles, cudaStream_t stream) {
  running_.assign(blocks_, false);
  std::vector<uint32_t> cursors(cursors_.size(), kBehindAllTiles);
  uint32_t chosen = 0;
  for (uint32_t n = 0; n < blocks_ && chosen < turn_; ++n) {
    const uint32_t b = (next_ + n) % blocks_;
    if (!IsUnfinished(b, tiles)) continue;
    running_[b] = true;
    std::copy_n(cursors_.begin() + b * kWarps, kWarps, cursors.begin() + b * kWarps);
    // Those that do not finish come again first: what they have begun is in the table.
    if (chosen++ == 0) next_ = b;
  }
  // (Pageable memory: the copy is done when the call returns.)
  CUDA_TRY(cudaMemcpyAsync(launch.state.cursors, cursors.data(), cursors.size() * sizeof(uint32_t),
                           cudaMemcpyHostToDevice, stream));
  return Status::Ok();
}

bool BlockTurns::Shrink() {
  if (std::exchange(moved_, false)) return true;
  // The matches of a slice may make more groups than it has rows.
  if (turn_ == 1) return false;
  turn_ = std::max(1u, turn_ / 4);
  return true;
}

}  // namespace tessera::kernels
