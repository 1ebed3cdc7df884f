// Many rows between ranks: one piece is packed and another unpacked while others move. Private to mpi/.
//
// Start at: RowTraffic. The thread of the ranks' messages calls what is of MessageTraffic, others Help.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "mpi/messenger.h"
#include "tablet/values/types.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"
#include "vm/shares/exchange.h"

namespace tessera {

class RowTraffic final : public MessageTraffic {
 public:
  /// Fewer rows are not worth the threads' waking.
  static constexpr uint64_t kManyRows = 1 << 16;

  /// mine[r] goes to rank r. `types` as for vm::Exchange.
  RowTraffic(int rank, std::vector<vm::RowPieces> mine, const std::vector<SqlType>& types, vm::StringPool* strings);
  /// `mine`, which outlives this, goes to all of `ranks`, in pieces.
  RowTraffic(int rank, int ranks, const vm::Shipment& mine, const std::vector<SqlType>& types, vm::StringPool* strings);

  uint64_t rows_sent() const { return rows_sent_; }
  /// Packs and unpacks until all is done. Until Finish, the thread of the messages leaves both to those that are here.
  void Help();
  /// No other thread will help.
  void WorkAlone() { is_alone_ = true; }

  std::optional<OutgoingMessage> Next() override;
  bool IsSent() override;
  std::optional<bool> Came(int from, Bytes message) override;
  /// Waits until what came is unpacked; of each rank a shipment for each piece, none of this one. Errors: kCorrupt.
  Result<std::vector<std::vector<vm::Shipment>>> Finish();

 private:
  /// Packed pieces that wait until they are sent, beside one for each thread that packs.
  static constexpr size_t kAhead = 8;

  /// What is in one message.
  struct Piece {
    vm::Shipment shipment;                ///< its rows, unless they are a part of others
    const vm::RowSet* part_of = nullptr;  ///< these, from `first` on as many as `count`; nullptr: of none
    size_t first = 0, count = 0;
    bool last = true;      ///< for the ranks that get it
    size_t receivers = 0;  ///< that have not got it
    bool is_packed = false;
    std::shared_ptr<const std::string> message = nullptr;
  };
  struct Outgoing {
    int to;
    size_t piece;
  };
  struct Incoming {
    size_t from, place;
    Bytes message;
  };

  void Pack(Piece* piece);
  void Unpack(const Incoming& in);
  /// Does something that is to be done. REQUIRES: `lock` holds mutex_. Returns false if there is nothing.
  bool WorkOnce(std::unique_lock<std::mutex>* lock);

  const std::vector<SqlType>& types_;
  vm::StringPool& strings_;
  uint64_t rows_sent_ = 0;
  bool is_alone_ = false;
  std::mutex mutex_;  // of what follows
  std::condition_variable more_, done_;
  std::vector<Piece> pieces_;       ///< in the order of packing
  std::vector<Outgoing> outgoing_;  ///< in the order of sending, which does not go back to an earlier piece
  size_t next_packed_ = 0, next_sent_ = 0;
  std::deque<Incoming> incoming_;
  std::vector<std::vector<vm::Shipment>> came_;  ///< by rank
  size_t working_ = 0;                           ///< threads that pack or unpack
  bool is_over_ = false;
  Status error_;
};

}  // namespace tessera
