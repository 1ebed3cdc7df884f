// Rows by key between ranks: one piece is packed and another unpacked while others move. Private to mpi/.
//
// Start at: RowTraffic. The thread of the ranks' messages calls what is of MessageTraffic, others Help.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "mpi/messenger.h"
#include "vm/string_pool.h"
#include "vm/vm.h"

namespace tessera {

class RowTraffic final : public MessageTraffic {
 public:
  /// mine[r] goes to rank r, and comes back from this one. `types` as for vm::Exchange.
  RowTraffic(int rank, std::vector<vm::RowPieces> mine, const std::vector<SqlType>& types, vm::StringPool* strings);

  /// Whether there is so much to pack that threads are worth waking.
  bool is_much() const { return rows_sent_ >= kManyRows; }
  /// Packs and unpacks until all is done. Until Finish, the thread of the messages leaves both to those that are here.
  void Help();
  /// No other thread will help.
  void WorkAlone() { is_alone_ = true; }

  std::optional<std::pair<int, std::string>> Next() override;
  bool IsSent() override;
  std::optional<bool> Came(int from, Bytes message) override;
  /// Waits until what came is unpacked. Errors: kCorrupt.
  Result<std::vector<vm::RowPieces>> Finish();

 private:
  /// Packed pieces that wait until they are sent, beside one for each thread that packs.
  static constexpr size_t kAhead = 8;
  static constexpr uint64_t kManyRows = 1 << 16;

  /// A message: one piece, or none if there is nothing for that rank.
  struct Outgoing {
    int to;
    vm::RowSet* piece;  ///< in mine_; nullptr: none
    bool last;          ///< for that rank
    bool is_packed = false;
    std::string message = {};
  };
  struct Incoming {
    size_t from, place;
    Bytes message;
  };

  void Pack(Outgoing* out);
  void Unpack(const Incoming& in);
  /// Does something that is to be done. REQUIRES: `lock` holds mutex_. Returns false if there is nothing.
  bool WorkOnce(std::unique_lock<std::mutex>* lock);

  const std::vector<SqlType>& types_;
  vm::StringPool& strings_;
  uint64_t rows_sent_ = 0;
  bool is_alone_ = false;
  std::mutex mutex_;  // of what follows
  std::condition_variable more_, done_;
  std::vector<vm::RowPieces> rows_;  ///< by rank: of this one; of the others what came
  std::vector<vm::RowPieces> mine_;  ///< for the others
  std::vector<Outgoing> outgoing_;   ///< in the order of sending
  size_t next_packed_ = 0, next_sent_ = 0;
  std::deque<Incoming> incoming_;
  size_t working_ = 0;  ///< threads that pack or unpack
  bool is_over_ = false;
  Status error_;
};

}  // namespace tessera
