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

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/memory/cuda_memory.h"
#include "kernels/memory/pinned_pages.h"
#include "kernels/memory/spare_memory.h"
#include "kernels/unpack/unpack.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/tablet.h"

namespace tessera::kernels {

class ColumnCache {
 public:
  enum class Stream : uint8_t { kCodes, kNulls, kOffsets, kTexts };
  static constexpr size_t kStreams = 4;
  /// A piece in use. Held until Unpin.
  struct Piece;
  /// The pieces of a tablet that are here.
  struct TabletPieces {
    std::weak_ptr<const Tablet> tablet;  ///< an expired one's address may have been given to another tablet
    std::vector<Piece*> pieces;          ///< [column][stream]; nullptr, or after the end: not here
    std::vector<bool> was_here;          ///< the same, or longer
    std::vector<bool> was_in_place;      ///< the same: has been read in place since it was here
    std::weak_ptr<PinnedPages> pages;    ///< the tablet holds them; expired: none
  };
  /// Copies that were started together.
  struct Copies;
  using CopiesList = std::vector<std::shared_ptr<Copies>>;

  ColumnCache() = default;
  ~ColumnCache();
  ColumnCache(const ColumnCache&) = delete;
  ColumnCache& operator=(const ColumnCache&) = delete;

  /// Makes streams and staging buffers. REQUIRES: the device is current, as for all functions below but Report.
  Status Open(uint64_t budget_bytes);
  /// How columns come, and bytes of a piece. true: that has changed, and the caller should clear the cache. May be called
  /// before Open. Nothing more is pinned that was to be. REQUIRES: no copies are under way.
  bool SetTransfer(Transfer transfer, uint64_t piece_bytes);
  CacheReport Report() const;

  /// Where Fetch looks for the tablet's pieces. Valid as long as the tablet.
  Result<TabletPieces*> Find(const std::shared_ptr<const Tablet>& tablet);
  /// The device address of a stream of `bytes` bytes at `data`, which StartCopies will copy there if it is not there
  /// yet. The piece is pinned. `*copied` grows by the bytes that will travel.
  Result<const uint8_t*> Fetch(TabletPieces* of, int column, Stream stream, const uint8_t* data, uint64_t bytes,
                               std::vector<Piece*>* pinned, uint64_t* copied);
  /// The same for the codes of a chunk that are stored packed: they travel as they are and are unpacked on the device.
  Result<const uint8_t*> FetchPacked(TabletPieces* of, int column, const Chunk& chunk, std::vector<Piece*>* pinned,
                                     uint64_t* copied);
  /// Whether a kernel that reads little of a column's codes should read them where they are mapped, `bytes` bytes at `codes`:
  /// they are pinned, and not on the device. `may_stay`: a copy would stay there, so one is made the second time.
  bool ReadInPlace(TabletPieces* of, int column, const uint8_t* codes, uint64_t bytes, bool may_stay);
  /// Whether the codes of a column are on the device, or on their way there.
  static bool HasCodes(const TabletPieces& of, int column) {
    const size_t place = kStreams * static_cast<size_t>(column) + static_cast<size_t>(Stream::kCodes);
    return place < of.pieces.size() && of.pieces[place] != nullptr;
  }
  /// Whether ReadInPlace may find any.
  bool has_pinned_pages() const { return *pinned_pages_ > 0; }
  /// A run begins or ends. CUDA lets nothing else happen while it pins pages, so they are pinned between runs, and during one
  /// in a twentieth of the time. Any thread.
  void BeginRun();
  void EndRun();
  /// Whether so much memory is in use for unpacking that copies should be finished before others are started. This
  /// memory is soon given back, so it does not push columns out: it comes on top of the budget.
  bool IsUnpackingMuch() const { return arriving_bytes_ + scratch_bytes_ > budget_ / kUnpackingShare; }
  /// Packed codes that arrive, or have arrived and are not known to be unpacked; and how much of that one launch takes, so
  /// that copies for others go on while it is waited for.
  uint64_t arriving_bytes() const { return arriving_bytes_; }
  uint64_t ArrivingShare() const { return budget_ / kUnpackingShare / kUnpackingLaunches; }
  /// Whether so much has been fetched since the last StartCopies that it should be copied now, while the caller fetches
  /// more. `threads`: as of StartCopies.
  bool HasEnoughToStart(int threads);
  /// Starts the copies of all pieces fetched since the last call: if there is much to do, on up to `threads` threads,
  /// after those that were started before. The streams have to stay until Finish or Abandon. Adds to `*started`.
  Status StartCopies(int threads, CopiesList* started);
  /// Whether Finish would return at once.
  bool AreIssued(const CopiesList& copies);
  /// Makes `stream` wait for these copies, once all of them are on their way. `*milliseconds` grows by the time until
  /// then, without what the copies before them took. Waits until they have come if codes among them are unpacked for the
  /// first time, which are checked on the device. After an error the pieces are gone.
  Status Finish(CopiesList* copies, cudaStream_t stream, double* milliseconds);
  /// Forgets pieces that were fetched and not copied, those of `copies` among them.
  void Abandon(CopiesList* copies);
  void Unpin(std::vector<Piece*>* pinned);
  /// Forgets what is not pinned. Its memory stays with the pool, for the next columns.
  Status Clear();
  /// The same, and gives the memory back to CUDA.
  Status Trim();

  /// Counts `bytes` of a run's own memory against the budget; makes room for them. Errors: kResource, what is pinned or
  /// claimed leaves too little.
  Status Claim(uint64_t bytes);
  /// The same if no column has to make room. false: it does not fit so.
  bool ClaimFree(uint64_t bytes);
  void Release(uint64_t bytes) { claimed_ -= bytes; }
  /// Memory that an earlier run has put here is claimed and taken; nullptr if there is none. It is free until then: what is
  /// claimed, and columns, make it go, but for what lies beside a piece that is taken. REQUIRES: as SpareMemory::Take.
  void* TakeSpare(uint64_t bytes) {
    void* const data = spare_.Take(bytes);
    if (data != nullptr) claimed_ += bytes;
    return data;
  }
  /// The piece was claimed, and work on `stream` used it.
  void PutSpare(void* data, uint64_t bytes, cudaStream_t stream) {
    Release(bytes);
    spare_.Put(data, bytes, stream, budget_);
  }
  void FreeSpare() { spare_.Free(UINT64_MAX); }
  /// CUDA had no memory although the budget had room, because others use the device as well: what there is now becomes
  /// the budget, until Renew.
  void LiveWithLess() { budget_ = taken() + spare_.bytes(); }
  /// The budget that Open gave.
  void Renew() { budget_ = whole_budget_; }
  cudaMemPool_t pool() const { return pool_; }

  uint64_t bytes() const { return bytes_; }
  /// What runs have, and what only they can take, because it lies beside that.
  uint64_t claimed() const { return claimed_ + spare_.held_bytes(); }
  uint64_t budget() const { return budget_; }

 private:
  static constexpr size_t kMostThreads = 12, kBuffersEach = 2;
  /// Several threads copy from this many bytes on. That many take a thread a millisecond, and the link a tenth of that.
  static constexpr uint64_t kSharedCopy = uint64_t{4} << 20;
  /// Copies after others that still wait: enough chunks to be unpacked in few kernels.
  static constexpr uint64_t kCopiedTogether = uint64_t{32} << 20;
  /// See IsUnpackingMuch and ArrivingShare.
  static constexpr uint64_t kUnpackingShare = 4, kUnpackingLaunches = 4;
  /// Bytes of a part of pinned pages, if it was not said how large pieces shall be.
  static constexpr uint64_t kDirectPart = uint64_t{16} << 20;
  /// The part of the host's memory limit, a rank's if there are several, that may be pinned.
  static constexpr uint64_t kPinnedShare = 8;
  /// Bytes of a stream for which that is worth a call of CUDA, and most of one call, during which nothing else happens.
  static constexpr uint64_t kLeastPinned = 64 << 10, kPinnedTogether = uint64_t{16} << 20;
  static constexpr size_t kMostRequests = 4096;
  /// The part of the time of a run in which pages may be pinned, if there was no time between runs for so long.
  static constexpr int kPinningShare = 20;
  static constexpr std::chrono::seconds kPinningWait{1};
  /// Most bytes of a slab with several chunks, and of the scratch memory of a batch with several tablets.
  static constexpr uint64_t kSlab = uint64_t{16} << 20, kScratch = uint64_t{64} << 20;

  /// Memory where packed codes arrive, one chunk after the other; given back to the pool after the kernels of a batch.
  struct Slab {
    uint8_t* memory;
    uint64_t bytes, used;
  };
  struct Unpacking {
    UnpackPlan plan;
    uint8_t* packed = nullptr;  ///< in a slab, after the chunk that was fetched before
    bool begins_slab = false;
    uint64_t scratch_at = 0;  ///< in the scratch memory of the batch
    uint8_t* out = nullptr;
    std::weak_ptr<const Tablet> unchecked;  ///< the codes of this tablet's column have not been unpacked before
    int column = 0;
    FoundCodes* found = nullptr;  ///< on the device, of Copies::found; nullptr: is not checked
  };
  enum class Route : uint8_t {
    kStaged,  ///< through a buffer
    kDirect,  ///< from pinned pages
    kToHost,  ///< to pinned memory
  };
  struct Pending {
    std::list<Piece>::iterator piece;
    const uint8_t* from;
    uint64_t bytes;
    Route route;
    std::shared_ptr<const PinnedPages> pages;        ///< that copies must not cross; nullptr: there are none
    std::span<const uint8_t> mapping;                ///< kDirect: of the file
    std::unique_ptr<Unpacking> unpacking = nullptr;  ///< nullptr: copied to the piece itself
  };
  /// Bytes on their way: `padded` of them, zeros after the first `bytes`.
  struct Way {
    const uint8_t* from;
    uint8_t* to;
    uint64_t bytes, padded;
    bool joins = false;  ///< follows the one before it in one allocation
  };
  /// What is copied by one call: a piece of a stream, or several streams.
  struct Part {
    std::vector<Way> ways;
    uint64_t bytes;  ///< of all, padded
    Route route;
    std::shared_ptr<Copies> copies;
  };
  /// What is to be pinned.
  struct PinRequest {
    std::weak_ptr<const Tablet> tablet;
    std::weak_ptr<PinnedPages> pages;
    const uint8_t* at;
    uint64_t bytes;
  };
  bool IsLinkIdle();
  /// Bytes of a part: a piece, or less while nothing waits to be copied. The link idles until the first one is in pinned
  /// memory, which takes a thread a millisecond for 4 MiB.
  uint64_t PartBytes(int threads);
  /// What was fetched becomes that of `copies`.
  std::vector<Pending> TakePending(Copies* copies);
  /// The parts of that, and of the steps that unpack it.
  Status MakeParts(std::vector<Pending> taken, const std::shared_ptr<Copies>& copies, std::vector<Part>* parts);
  /// Fills the last part up, and cuts what is left into others.
  static void AddParts(Way way, Route route, const std::shared_ptr<Copies>& copies, std::vector<Part>* parts);
  /// The same for what was fetched, whichever way it takes.
  static void AddParts(const Pending& pending, uint8_t* to, uint64_t padded, const std::shared_ptr<Copies>& copies,
                       std::vector<Part>* parts);
  /// How a stream travels. Pages of what comes for the second time are pinned soon.
  Pending MakePending(TabletPieces* of, size_t place, const uint8_t* at, uint64_t bytes);
  /// Room in pending_ for one more, so that a piece that is there has its copy.
  void ReservePending();
  uint64_t MostPinned() const;
  /// Has pages pinned, if they are a file's and there may be more.
  void PinSoon(TabletPieces* of, const uint8_t* at, uint64_t bytes);
  /// What the thread that pins does until the end.
  void PinPages();
  Status Pin(const PinRequest& request);
  /// Whether the tablet's file has its end, as far as anybody knows.
  static bool IsWhole(const Tablet& tablet);
  /// Pinned memory of a thread that copies, used one after the other; `free` comes when a copy has left the buffer.
  struct Staging {
    Staging() = default;
    ~Staging() {
      for (cudaEvent_t e : free) {
        if (e != nullptr) IgnoreError(cudaEventDestroy(e));
      }
    }
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    std::array<PinnedBuffer, kBuffersEach> buffers;
    std::array<cudaEvent_t, kBuffersEach> free = {};
    size_t next = 0;
  };

  Status Drop(std::list<Piece>::iterator piece);
  Status DropAll(TabletPieces* of);
  /// Frees pieces until `bytes` more fit, or nothing unpinned is left.
  Status MakeRoom(uint64_t bytes);
  /// Makes a piece that is not pinned; false: it was there, and is used. `on_host`: in pinned memory.
  Result<bool> AddPiece(TabletPieces* of, size_t place, uint64_t bytes, bool on_host);
  Result<uint8_t*> Allocate(uint64_t bytes);
  Result<uint8_t*> AllocateOnHost(uint64_t bytes);
  void FreeSpareOnHost();
  /// Gives spare memory back where columns, what is claimed and `bytes` more leave it no room.
  void MakeSpareRoom(uint64_t bytes);
  /// Whether `bytes` fit beside all that is there.
  bool Fits(uint64_t bytes) const { return taken() + spare_.bytes() + bytes <= budget_; }
  /// By columns and runs.
  uint64_t taken() const { return bytes_ + claimed_; }
  /// Nothing is copied while the kernels that read these columns run.
  Status WaitForReaders();
  static void Gather(const Way& way, uint8_t* to);
  /// Starts the copies. `buffer`: in which they lie one after the other; nullptr: where they come from is pinned.
  Status CopyOut(const std::vector<Way>& ways, const uint8_t* buffer);
  Status Copy(const Part& part, Staging* staging);
  Status Unpack(Copies* copies);
  Status FinishOne(Copies* copies, cudaStream_t stream, double* milliseconds);
  /// Whether copies are made by up to `threads` threads of the cache, in any order.
  bool MaySpread(int threads) const {
    return threads > 1 && transfer_ != Transfer::kSync && transfer_ != Transfer::kPageable;
  }
  /// Makes room for what is found in codes that are unpacked for the first time.
  Status PrepareChecks(Copies* copies);
  /// Makes the steps of unpacking, and room for them.
  Status PrepareSteps(Copies* copies);
  /// Waits for what was found, and tells the tablets. `stream`: waits with the caller. Errors: kCorrupt.
  Status Check(const Copies& copies, cudaStream_t stream);
  /// What was not unpacked, and the memory that unpacking took.
  void GiveBack(Copies* copies);
  /// Until nothing writes to memory of copies: what is dropped or given back then may be another's at once.
  void WaitForCopies();
  /// `behind`: the stream of what uses the memory last.
  void Free(std::vector<Slab>* slabs, cudaStream_t behind);
  /// Room for packed codes that arrive, and for what unpacking them needs.
  Result<uint8_t*> AllocateArrival(uint64_t bytes);
  Status ReserveScratch(uint64_t bytes);
  void FreeUnusedScratch();
  uint64_t MostScratch() const { return std::min(kScratch, budget_ / 16); }
  /// What a thread of the cache does until the end.
  void CopyParts(Staging* staging);
  void StartThreads(size_t wanted);
  /// One of the copies is on its way, or has failed. REQUIRES: `lock` holds mutex_.
  void NoteIssued(std::unique_lock<std::mutex>* lock, Copies* copies, const Status& status);
  /// The pieces' bytes never came.
  static void Forget(std::vector<std::list<Piece>::iterator>* pieces);

  Transfer transfer_ = Transfer::kStream;
  uint64_t piece_bytes_ = kTransferPiece;
  uint64_t whole_budget_ = 0, budget_ = 0, bytes_ = 0, claimed_ = 0, arriving_bytes_ = 0;
  uint64_t hits_ = 0, misses_ = 0, evictions_ = 0, bytes_in_ = 0;
  cudaStream_t readers_ = nullptr;        ///< the stream of the kernels that read what was copied; nullptr: none has
  cudaStream_t stream_ = nullptr;         ///< of copies
  cudaStream_t unpack_stream_ = nullptr;  ///< of the kernels that unpack what came
  cudaMemPool_t pool_ = nullptr;
  SpareMemory spare_;  ///< empty when the pool goes: of GpuDevice's stream, which empties it
  int device_ = 0;
  Staging own_;  // of the caller
  std::vector<Pending> pending_;
  uint64_t pending_bytes_ = 0;  ///< of their pieces, as they travel
  std::vector<Slab> pending_slabs_;
  uint64_t pending_scratch_ = 0;
  std::shared_ptr<uint8_t> scratch_;  ///< of the next batch; those under way use it one by one, or an earlier one
  uint64_t scratch_bytes_ = 0;
  std::vector<std::thread> threads_;
  std::deque<Staging> staging_;  // of the threads
  std::mutex unpacking_;         // held while the kernels of a batch are put on unpack_stream_
  std::mutex mutex_;             // of what follows, and of all Copies
  std::condition_variable more_, issued_;
  std::deque<Part> parts_;  // to be copied
  std::chrono::steady_clock::time_point last_issued_ = {};
  bool stop_ = false;
  std::deque<PinRequest> to_pin_;
  bool is_pinning_ = false;
  std::condition_variable more_to_pin_, pinned_;
  std::thread pin_thread_;
  int runs_ = 0;  ///< that have begun
  std::shared_ptr<std::atomic<uint64_t>> pinned_pages_ = std::make_shared<std::atomic<uint64_t>>(0);  ///< bytes
  uint64_t usable_memory_ = 0;  ///< of the host; 0: the device cannot read pinned pages
  // Of the owner again.
  std::list<Piece> pieces_;                          // those that came, or were passed over, last are first
  std::multimap<uint64_t, uint8_t*> spare_on_host_;  // by bytes: pinned memory takes CUDA a millisecond
  std::unordered_map<const Tablet*, TabletPieces> tablets_;
};

struct ColumnCache::Piece {
  TabletPieces* of;  ///< nullptr: abandoned, nothing was copied there
  size_t place;      ///< in of->pieces
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  bool on_host = false;  ///< `data` is pinned memory, which kernels can read at the same address
  /// Since it came, or was passed over. (To move it in the list each time would read its neighbours as well.)
  bool was_used = false;
  uint64_t hits = 0;
  int pins = 0;
  std::list<Piece>::iterator self = {};
};

struct ColumnCache::Copies {
  Copies() = default;
  ~Copies() {
    if (done != nullptr) IgnoreError(cudaEventDestroy(done));
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  std::vector<std::list<Piece>::iterator> pieces;
  std::vector<std::unique_ptr<Unpacking>> unpackings;
  std::vector<std::span<const uint8_t>> mappings;  ///< of tablets from whose pinned pages there are copies
  uint64_t part_bytes = 0, direct_part_bytes = 0;  ///< at most
  std::vector<Slab> slabs;
  uint64_t arriving_bytes = 0;  ///< of the slabs
  std::shared_ptr<uint8_t> scratch;
  UnpackBatch batch;
  UnpackStep* steps = nullptr;  ///< of the batch, on the device
  FoundCodes* found = nullptr;  ///< on the device, of those that are unchecked; nullptr: none is
  size_t left = 0;              ///< parts that are not yet on their way
  Status error;                 ///< the first one
  cudaEvent_t done = nullptr;
  std::chrono::steady_clock::time_point started = {};
  double milliseconds = 0;  ///< until the last was on its way, beside what other copies took
};

}  // namespace tessera::kernels
