// Encoded columns on the device: the streams of chunks, copied once and kept until the budget needs their place.
// Private to kernels/.
//
// Least recently used pieces go first; a piece is pinned while a launch reads it. A piece is one stream of one column
// of one tablet. The cache does not keep tablets alive: pieces of tablets that are gone are dropped at the next sweep.
//
// Start at: Fetch, Finish. One owner at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "kernels/device.h"
#include "tablet/tablet.h"
#include "vm/thread_pool.h"

namespace tessera::kernels {

class ColumnCache {
 public:
  enum class Stream : uint8_t { kCodes, kNulls };
  /// A piece in use. Held until Unpin.
  struct Piece;
  /// The pieces of a tablet that are here.
  struct TabletPieces {
    std::weak_ptr<const Tablet> tablet;  ///< an expired one's address may have been given to another tablet
    std::vector<Piece*> pieces;          ///< [column][stream]; nullptr, or behind the end: not here
  };

  ColumnCache() = default;
  ~ColumnCache();
  ColumnCache(const ColumnCache&) = delete;
  ColumnCache& operator=(const ColumnCache&) = delete;

  /// Makes streams and staging buffers. REQUIRES: the device is current, as for all functions below.
  Status Open(uint64_t budget_bytes);

  /// Where Fetch looks for the tablet's pieces. Valid as long as the tablet.
  Result<TabletPieces*> Find(const std::shared_ptr<const Tablet>& tablet);
  /// The device address of a stream of `bytes` bytes at `data`, which CopyPending will copy there if it is not there
  /// yet. The piece is pinned. `*copied` grows by the bytes that will travel.
  Result<const uint8_t*> Fetch(TabletPieces* of, int column, Stream stream, const uint8_t* data, uint64_t bytes,
                               std::vector<Piece*>* pinned, uint64_t* copied);
  /// Starts the copies of all pieces fetched since the last call, from several threads if `pool` is given and there is
  /// much to do: one of them moves 14 GB a second into pinned memory, the link 55. Work that reads the pieces waits for
  /// Finish's event. After an error the pieces are gone.
  Status CopyPending(vm::ThreadPool* pool);
  /// Forgets pieces that were fetched and not copied.
  void AbandonPending();
  /// Makes `stream` wait for all copies so far.
  Status Finish(cudaStream_t stream);
  void Unpin(std::vector<Piece*>* pinned);
  /// Frees what is not pinned.
  Status Clear();

  /// Counts `bytes` of a run's own memory against the budget; makes room for them. Errors: kResource, what is pinned
  /// leaves too little.
  Status Claim(uint64_t bytes);
  void Release(uint64_t bytes) { claimed_ -= bytes; }
  /// CUDA had no memory although the budget had room: others use the device as well. What is held now is the budget,
  /// until Renew.
  void LiveWithLess() { budget_ = bytes_ + claimed_; }
  /// The budget that Open gave.
  void Renew() { budget_ = whole_budget_; }
  cudaMemPool_t pool() const { return pool_; }

  uint64_t bytes() const { return bytes_; }
  uint64_t claimed() const { return claimed_; }
  uint64_t budget() const { return budget_; }

 private:
  /// Copies go through these: 4 MiB is where a pinned copy reaches 96 % of the link's rate.
  static constexpr uint64_t kStagingBytes = uint64_t{4} << 20;
  static constexpr size_t kCopiers = 8, kBuffersEach = 2, kBuffers = kCopiers * kBuffersEach;
  /// From so many bytes on several threads copy.
  static constexpr uint64_t kSharedCopy = uint64_t{16} << 20;

  struct Pending {
    std::list<Piece>::iterator piece;
    const uint8_t* from;
    uint64_t bytes;
  };

  Status Drop(std::list<Piece>::iterator piece);
  Status DropAll(TabletPieces* of);
  /// Frees pieces until `bytes` more fit, or nothing unpinned is left.
  Status MakeRoom(uint64_t bytes);
  /// Part of a stream through staging buffer `s`; `padded` bytes on the device, zeros behind the first `bytes`.
  Status Copy(size_t s, uint8_t* to, const uint8_t* from, uint64_t bytes, uint64_t padded);

  uint64_t whole_budget_ = 0, budget_ = 0, bytes_ = 0, claimed_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
  cudaEvent_t done_ = nullptr;
  int device_ = 0;
  std::array<PinnedBuffer, kBuffers> staging_;
  std::array<cudaEvent_t, kBuffers> staging_free_ = {};
  std::vector<Pending> pending_;
  bool copying_ = false;     // since the last Finish
  std::list<Piece> pieces_;  // most recently used first
  std::unordered_map<const Tablet*, TabletPieces> tablets_;
};

struct ColumnCache::Piece {
  TabletPieces* of;  ///< nullptr: abandoned, nothing was copied there
  size_t place;      ///< in of->pieces
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  int pins = 0;
  std::list<Piece>::iterator self = {};
};

}  // namespace tessera::kernels
