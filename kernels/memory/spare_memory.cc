#include "kernels/memory/spare_memory.h"

#include <algorithm>
#include <utility>

#include "kernels/memory/cuda_memory.h"

namespace tessera::kernels {
namespace {

/// How many pieces are kept, and the part of the budget that one and all of them may have.
constexpr size_t kMostPieces = 64;
constexpr uint64_t kPieceShare = 16, kShare = 8;
/// A piece up to this size may be four times as large as what is asked for; a larger one a quarter larger.
constexpr uint64_t kSmall = uint64_t{16} << 20;

bool Fits(uint64_t piece, uint64_t bytes) {
  return piece >= bytes && (piece <= kSmall ? piece / 4 <= bytes : piece - bytes <= bytes / 4);
}

}  // namespace

SpareMemory::SpareMemory() { pieces_.reserve(kMostPieces + 1); }

SpareMemory::Piece SpareMemory::Take(uint64_t bytes) {
  auto best = pieces_.end();
  for (auto p = pieces_.begin(); p != pieces_.end(); ++p) {
    if (Fits(p->bytes, bytes) && (best == pieces_.end() || p->bytes < best->bytes)) best = p;
  }
  if (best == pieces_.end()) return {};
  const Piece piece = *best;
  bytes_ -= piece.bytes;
  pieces_.erase(best);
  return piece;
}

std::vector<SpareMemory::Piece>::iterator SpareMemory::GiveBack(std::vector<Piece>::iterator piece) {
  IgnoreError(cudaFreeAsync(piece->data, piece->stream));
  bytes_ -= piece->bytes;
  return pieces_.erase(piece);
}

void SpareMemory::Put(const Piece& piece, uint64_t budget) {
  pieces_.push_back(piece);
  bytes_ += piece.bytes;
  if (piece.bytes > budget / kPieceShare) GiveBack(std::prev(pieces_.end()));
  while (pieces_.size() > kMostPieces || bytes_ > budget / kShare) GiveBack(pieces_.begin());
}

void SpareMemory::Free(uint64_t bytes) {
  const uint64_t kept = bytes_ - std::min(bytes_, bytes);
  while (bytes_ > kept) {
    const uint64_t needed = bytes_ - kept;
    GiveBack(std::ranges::min_element(pieces_, [needed](const Piece& a, const Piece& b) {
      const bool a_does = a.bytes >= needed, b_does = b.bytes >= needed;
      return a_does != b_does ? a_does : a_does ? a.bytes < b.bytes : a.bytes > b.bytes;
    }));
  }
}

cudaError_t SpareMemory::FreeAndWait() {
  std::vector<cudaStream_t> streams;
  for (const Piece& p : pieces_) {
    if (std::ranges::find(streams, p.stream) == streams.end()) streams.push_back(p.stream);
  }
  Free(UINT64_MAX);
  for (const cudaStream_t s : streams) {
    if (const cudaError_t error = cudaStreamSynchronize(s); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace tessera::kernels
