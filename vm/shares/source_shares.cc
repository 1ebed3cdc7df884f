#include "vm/shares/source_shares.h"

#include <algorithm>
#include <bit>

namespace tessera::vm {
namespace {

constexpr uint64_t kLeastPieceRows = 64, kMostPieceRows = 2048;
/// Pieces that a rank gets, unless they would become too small or too large.
constexpr uint64_t kWantedPieces = 16;

}  // namespace

SourceShare KeepShare(uint64_t rows, int rank, int ranks) {
  SourceShare share;
  share.rank = static_cast<uint32_t>(rank);
  share.ranks = static_cast<uint32_t>(ranks);
  const uint64_t piece =
      std::clamp(std::bit_floor(rows / share.ranks / kWantedPieces), kLeastPieceRows, kMostPieceRows);
  share.piece_rows = static_cast<uint32_t>(piece);
  // A turn is a piece for each rank; the last turn may end in any of them.
  const uint64_t turns = rows / (piece * share.ranks);
  share.rows = turns * piece;
  const uint64_t first = share.At(share.rows);
  if (first < rows) share.rows += std::min(piece, rows - first);
  return share;
}

}  // namespace tessera::vm
