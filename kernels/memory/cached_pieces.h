// The pieces of columns that are on the device, and which of them go when others need their place. Private to kernels/; the
// class itself to kernels/memory/.
//
// Start at: CachedPieces::Find, Add, MakeRoom. One thread at a time. REQUIRES, of all functions but Report: the device is
// current.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/memory/copy_streams.h"
#include "kernels/memory/device_budget.h"
#include "kernels/memory/pinned_pages.h"
#include "tablet/files/tablet.h"

namespace tessera::kernels {

/// The streams of a column of a tablet, each a piece.
enum class PieceStream : uint8_t { kCodes, kNulls, kOffsets, kTexts };
inline constexpr size_t kPieceStreams = 4;
/// Where a piece is in TabletPieces.
inline size_t PlaceOf(int column, PieceStream stream) {
  return kPieceStreams * static_cast<size_t>(column) + static_cast<size_t>(stream);
}

struct CachedPiece;
using PieceIterator = std::list<CachedPiece>::iterator;

/// The pieces of a tablet that are here.
struct TabletPieces {
  std::weak_ptr<const Tablet> tablet;  ///< an expired one's address may have been given to another tablet
  std::vector<CachedPiece*> pieces;    ///< [column][stream]; nullptr, or after the end: not here
  std::vector<bool> was_here;          ///< the same, or longer
  std::vector<bool> was_in_place;      ///< the same: has been read in place since it was here
  std::weak_ptr<PinnedPages> pages;    ///< the tablet holds them; expired: none

  /// Whether a piece is on the device, or on its way there.
  bool Has(size_t place) const { return place < pieces.size() && pieces[place] != nullptr; }
  bool HasCodes(int column) const { return Has(PlaceOf(column, PieceStream::kCodes)); }
};

struct CachedPiece {
  TabletPieces* of;  ///< nullptr: abandoned, nothing was copied there
  size_t place;      ///< in of->pieces
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  bool on_host = false;  ///< `data` is pinned memory, which kernels can read at the same address
  /// Since it came, or was passed over. (To move it in the list each time would read its neighbours as well.)
  bool was_used = false;
  uint64_t hits = 0;
  int pins = 0;
  PieceIterator self = {};
};

class CachedPieces {
 public:
  CachedPieces(const CopyStreams& streams, DeviceBudget* budget) : streams_(streams), budget_(*budget) {}
  CachedPieces(const CachedPieces&) = delete;
  CachedPieces& operator=(const CachedPieces&) = delete;

  /// Valid as long as the tablet.
  Result<TabletPieces*> Find(const std::shared_ptr<const Tablet>& tablet);
  /// Makes a piece that is not pinned; false: it was there, and is used. `on_host`: in pinned memory.
  Result<bool> Add(TabletPieces* of, size_t place, uint64_t bytes, bool on_host);
  Status Drop(PieceIterator piece);
  /// The pieces' bytes never came.
  static void Forget(std::vector<PieceIterator>* pieces);
  /// Frees pieces until `bytes` more fit, or nothing unpinned is left.
  Status MakeRoom(uint64_t bytes);
  /// Memory of the pool, for work on the stream of copies; not counted. Pieces may go for it.
  Result<uint8_t*> Allocate(uint64_t bytes);

  /// Forgets what is not pinned. Its memory stays with the pool.
  Status Clear();
  void FreeSpareOnHost();
  /// All pieces, and pages that are pinned for them. REQUIRES: nothing else is called afterwards.
  void FreeAll();
  /// `bytes_in`: that were copied; `pinned`: bytes of pinned pages.
  CacheReport Report(uint64_t bytes_in, uint64_t pinned) const;

 private:
  Status DropAll(TabletPieces* of);
  /// Of tablets that are gone.
  Status DropExpired();
  Result<uint8_t*> AllocateOnHost(uint64_t bytes);

  const CopyStreams& streams_;
  DeviceBudget& budget_;
  std::list<CachedPiece> pieces_;                    // those that came, or were passed over, last are first
  std::multimap<uint64_t, uint8_t*> spare_on_host_;  // by bytes: pinned memory takes CUDA a millisecond
  std::unordered_map<const Tablet*, TabletPieces> tablets_;
  uint64_t hits_ = 0, misses_ = 0, evictions_ = 0;
};

}  // namespace tessera::kernels
