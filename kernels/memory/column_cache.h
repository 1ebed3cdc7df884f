// Encoded columns on the device: the streams of chunks, copied once and kept until the budget needs their place.
// Private to kernels/.
//
// A piece is one stream of one column of one tablet. Those that came first go first, but one that another launch has used
// since is passed over once. A piece is pinned while a launch reads it. The cache does not keep tablets alive: pieces of
// tablets that are gone are dropped at the next sweep.
//
// Copies go through pinned buffers, which threads of the cache fill. Twelve threads move 5 GB a second each while
// copies from the buffers go on, which is what the link takes. What had to be dropped and comes again is pinned where it is
// mapped (PinnedPages), by a thread of its own: then it is copied from there, or kernels read it there (ReadInPlace). Other
// ways (Transfer) are there to be compared with that.
//
// Start at: Fetch, StartCopies, Finish. One owner at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/memory/arrivals.h"
#include "kernels/memory/cached_pieces.h"
#include "kernels/memory/copy_engine.h"
#include "kernels/memory/copy_parts.h"
#include "kernels/memory/copy_streams.h"
#include "kernels/memory/device_budget.h"
#include "kernels/memory/page_pinner.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/tablet.h"

namespace tessera::kernels {

class ColumnCache {
 public:
  ColumnCache() = default;
  ~ColumnCache();
  ColumnCache(const ColumnCache&) = delete;
  ColumnCache& operator=(const ColumnCache&) = delete;

  /// Makes streams and staging buffers. REQUIRES: the device is current, as for all functions below but Report.
  Status Open(uint64_t budget_bytes);
  /// How columns come, and bytes of a piece. true: that has changed, and the caller should clear the cache. May be called
  /// before Open. Nothing more is pinned that was to be. REQUIRES: no copies are under way.
  bool SetTransfer(Transfer transfer, uint64_t piece_bytes);
  CacheReport Report() const { return pieces_.Report(bytes_in_, pinner_.pinned_bytes()); }

  /// Where Fetch looks for the tablet's pieces. Valid as long as the tablet.
  Result<TabletPieces*> Find(const std::shared_ptr<const Tablet>& tablet) { return pieces_.Find(tablet); }
  /// The device address of a stream of `bytes` bytes at `data`, which StartCopies will copy there if it is not there
  /// yet. The piece is pinned. `*copied` grows by the bytes that will travel.
  Result<const uint8_t*> Fetch(TabletPieces* of, int column, PieceStream stream, const uint8_t* data, uint64_t bytes,
                               std::vector<CachedPiece*>* pinned, uint64_t* copied);
  /// The same for the codes of a chunk that are stored packed: they travel as they are and are unpacked on the device.
  Result<const uint8_t*> FetchPacked(TabletPieces* of, int column, const Chunk& chunk,
                                     std::vector<CachedPiece*>* pinned, uint64_t* copied);
  /// Whether a kernel that reads little of a column's codes should read them where they are mapped, `bytes` bytes at `codes`:
  /// they are pinned, and not on the device. `may_stay`: a copy would stay there, so one is made the second time.
  bool ReadInPlace(TabletPieces* of, int column, const uint8_t* codes, uint64_t bytes, bool may_stay);
  /// Whether ReadInPlace may find any.
  bool has_pinned_pages() const { return pinner_.pinned_bytes() > 0; }
  /// A run begins or ends: pages are pinned between runs. Any thread.
  void BeginRun() { pinner_.BeginRun(); }
  void EndRun() { pinner_.EndRun(); }
  /// Whether so much memory is in use for unpacking that copies should be finished before others are started. This
  /// memory is soon given back, so it does not push columns out: it comes on top of the budget.
  bool IsUnpackingMuch() const { return arrivals_.IsUnpackingMuch(); }
  /// Packed codes that arrive, or have arrived and are not known to be unpacked; and how much of that one launch takes, so
  /// that copies for others go on while it is waited for.
  uint64_t arriving_bytes() const { return arrivals_.bytes(); }
  uint64_t ArrivingShare() const { return arrivals_.ShareOfLaunch(); }
  /// Whether so much has been fetched since the last StartCopies that it should be copied now, while the caller fetches
  /// more. `threads`: as of StartCopies.
  bool HasEnoughToStart(int threads);
  /// Starts the copies of all pieces fetched since the last call: if there is much to do, on up to `threads` threads,
  /// after those that were started before. The streams have to stay until Finish or Abandon. Adds to `*started`.
  Status StartCopies(int threads, CopiesList* started);
  /// Whether Finish would return at once.
  bool AreIssued(const CopiesList& copies) { return copier_.AreIssued(copies); }
  /// Makes `stream` wait for these copies, once all of them are on their way. `*milliseconds` grows by the time until
  /// then, without what the copies before them took. Waits until they have come if codes among them are unpacked for the
  /// first time, which are checked on the device. After an error the pieces are gone.
  Status Finish(CopiesList* copies, cudaStream_t stream, double* milliseconds);
  /// Forgets pieces that were fetched and not copied, those of `copies` among them.
  void Abandon(CopiesList* copies);
  void Unpin(std::vector<CachedPiece*>* pinned);
  /// Forgets what is not pinned. Its memory stays with the pool, for the next columns.
  Status Clear();
  /// The same, and gives the memory back to CUDA.
  Status Trim();

  /// Counts `bytes` of a run's own memory against the budget; makes room for them. Errors: kResource, what is pinned or
  /// claimed leaves too little.
  Status Claim(uint64_t bytes);
  /// The same if no column has to make room. false: it does not fit so.
  bool ClaimFree(uint64_t bytes) { return budget_.ClaimFree(bytes); }
  void Release(uint64_t bytes) { budget_.Release(bytes); }
  /// Memory that an earlier run has put here is claimed and taken; nullptr if there is none. It is free until then: what is
  /// claimed, and columns, make it go, but for what lies beside a piece that is taken. REQUIRES: as SpareMemory::Take.
  void* TakeSpare(uint64_t bytes) { return budget_.TakeSpare(bytes); }
  /// The piece was claimed, and work on `stream` used it.
  void PutSpare(void* data, uint64_t bytes, cudaStream_t stream) { budget_.PutSpare(data, bytes, stream); }
  void FreeSpare() { budget_.FreeSpare(); }
  /// CUDA had no memory although the budget had room, because others use the device as well: what there is now becomes
  /// the budget, until Renew.
  void LiveWithLess() { budget_.LiveWithLess(); }
  /// The budget that Open gave.
  void Renew() { budget_.Renew(); }
  cudaMemPool_t pool() const { return budget_.pool(); }

  uint64_t bytes() const { return budget_.columns(); }
  /// What runs have, and what only they can take, because it lies beside that.
  uint64_t claimed() const { return budget_.claimed(); }
  uint64_t budget() const { return budget_.bytes(); }

 private:
  /// A piece that was fetched and whose copy has not begun.
  struct Pending {
    PieceIterator piece;
    const uint8_t* from;
    uint64_t bytes;
    CopyRoute route;
    std::shared_ptr<const PinnedPages> pages;        ///< that copies must not cross; nullptr: there are none
    std::span<const uint8_t> mapping;                ///< kDirect: of the file
    std::unique_ptr<Unpacking> unpacking = nullptr;  ///< nullptr: copied to the piece itself
  };

  /// How a stream travels. Pages of what comes for the second time are pinned soon.
  Pending MakePending(TabletPieces* of, size_t place, const uint8_t* at, uint64_t bytes);
  /// Room in pending_ for one more, so that a piece that is there has its copy.
  void ReservePending();
  /// The same as FetchPacked, for codes that are not here.
  Status BringPacked(TabletPieces* of, int column, const Chunk& chunk);
  const uint8_t* Pin(CachedPiece* piece, std::vector<CachedPiece*>* pinned);
  /// What was fetched becomes that of `copies`.
  std::vector<Pending> TakePending(Copies* copies);
  /// The parts of that, and of the steps that unpack it.
  Status MakeParts(std::vector<Pending> taken, const std::shared_ptr<Copies>& copies, std::vector<CopyPart>* parts);
  /// The parts of one stream.
  static void AddPartsOf(const Pending& pending, uint8_t* to, uint64_t padded, const std::shared_ptr<Copies>& copies,
                         std::vector<CopyPart>* parts);
  /// Nothing is copied while the kernels that read these columns run.
  Status WaitForReaders();
  Status FinishOne(Copies* copies, cudaStream_t stream, double* milliseconds);

  // The parts. They refer to those before them: the budget, which has the pool, goes before the streams.
  CopyStreams streams_;
  DeviceBudget budget_;
  CachedPieces pieces_{streams_, &budget_};
  Arrivals arrivals_{streams_, budget_, &pieces_};
  CopyEngine copier_{streams_};
  PagePinner pinner_;

  std::vector<Pending> pending_;
  uint64_t pending_bytes_ = 0;      ///< of their pieces, as they travel
  uint64_t bytes_in_ = 0;           ///< of all that was copied
  cudaStream_t readers_ = nullptr;  ///< the stream of the kernels that read what was copied; nullptr: none has
};

}  // namespace tessera::kernels
