// What ranks that run one program send each other: rows, groups, bytes, and whether all are well.
//
// Start at: Exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// Rows between two ranks, in their order, cut into pieces that travel one by one.
using RowPieces = std::vector<RowSet>;

/// Bytes on their way between ranks: where this rank's are, and where those of others go. They travel in pieces, in order,
/// kUnderWay of them at a time between two ranks. Nothing fails on the way, because the other ranks wait: a rank that has no
/// bytes sends others, and says so afterwards.
class ByteMover {
 public:
  static constexpr size_t kPieceBytes = size_t{4} << 20;
  static constexpr int kUnderWay = 2;
  virtual ~ByteMover() = default;
  /// The bytes from `at` on of those for rank `to`, which stay until the piece kUnderWay after it is asked for.
  virtual const void* Outgoing(int to, uint64_t at, size_t bytes) = 0;
  /// Room for the bytes from `at` on of those from rank `from`.
  virtual void* Room(int from, uint64_t at, size_t bytes) = 0;
  /// They are there, and their room may be used again.
  virtual void Arrived(int from, uint64_t at, size_t bytes) = 0;
};

/// The messages between ranks that run one program together (mpi/PROTOCOL.md). All ranks run the same sections in the
/// same order. So a call that involves all ranks is made by all of them, in the same order, even by those that have
/// failed. Called from the thread of Executor::Run.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;   ///< 0: the master
  virtual int ranks() const = 0;  ///< at least 2
  /// A table with fewer encoded bytes than this is replicated: every rank has all its tablets.
  virtual uint64_t replicate_below() const = 0;
  /// The greatest size of a join's build side that a rank has room for, in bytes.
  virtual uint64_t broadcast_limit() const = 0;
  /// Intermediate results of more rows than this stay distributed over the ranks; smaller ones go to the master.
  virtual uint64_t exchange_above() const = 0;

  /// All ranks. OK if all are OK; else the same error everywhere, naming the lowest rank that failed by itself.
  virtual Status Agree(const Status& mine) = 0;
  /// All ranks: the sum of all ranks' values.
  virtual Result<uint64_t> Sum(uint64_t mine) = 0;
  /// All ranks: the least of all ranks' values.
  virtual Result<int64_t> Minimum(int64_t mine) = 0;
  /// All ranks: everybody's shipment, by rank. Text is interned into `strings`. Here and below, `types` are those of the
  /// columns: rows of others are refused. Errors: kCorrupt.
  virtual Result<std::vector<Shipment>> AllGather(Shipment mine, const std::vector<SqlType>& types,
                                                  StringPool* strings) = 0;
  /// All ranks: mine[r] goes to rank r, a piece while others are packed and unpacked. Returns what came, by rank; this
  /// rank's own stays as it is. Errors: kCorrupt.
  virtual Result<std::vector<RowPieces>> AllToAll(std::vector<RowPieces> mine, const std::vector<SqlType>& types,
                                                  StringPool* strings) = 0;
  /// All ranks: everybody's bytes, by rank.
  virtual Result<std::vector<std::string>> AllGatherBytes(const std::string& mine) = 0;
  /// The same if all ranks know how many bytes come of each: in one step.
  virtual Result<std::vector<std::string>> AllGatherBytes(const std::string& mine,
                                                          const std::vector<uint64_t>& sizes) = 0;
  /// All ranks: outgoing[r] bytes go to rank r and incoming[r] come from there, as both ranks know.
  virtual void MoveBytes(const std::vector<uint64_t>& outgoing, const std::vector<uint64_t>& incoming,
                         ByteMover* mover) = 0;
  /// All ranks: the master's rows become everybody's.
  virtual Result<RowSet> Broadcast(RowSet mine, const std::vector<SqlType>& types, StringPool* strings) = 0;
  /// One shipment, or the reason why there is none, from one rank to another. Send may return before the shipment has
  /// arrived, but only a few messages are ever on the way. `wait`: return only when everything that was sent has been
  /// received.
  virtual Status Send(int to, Result<Shipment> shipment, const StringPool& strings, bool wait) = 0;
  virtual Result<Shipment> Receive(int from, const std::vector<SqlType>& types, StringPool* strings) = 0;
  /// Tells the other ranks to stop their work: this rank has failed, or has all the rows that it needs.
  virtual void Stop() = 0;
  /// Whether another rank has called Stop. Cheap; called often while a section runs, because it also keeps messages
  /// moving.
  virtual bool Stopped() = 0;
};

}  // namespace tessera::vm
