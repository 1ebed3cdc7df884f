// vm::Exchange over messages between ranks. Private to mpi/.
//
// Start at: Begin, at the start of every program, with the same number on all ranks.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "base/status.h"
#include "mpi/messenger.h"
#include "mpi/row_traffic.h"
#include "tablet/values/types.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"
#include "vm/shares/exchange.h"

namespace tessera {

/// What decides how rows travel, see vm::Exchange.
struct ExchangeLimits {
  uint64_t replicate_below = 0, broadcast_limit = 0, exchange_above = 0;
};

class MpiExchange final : public vm::Exchange {
 public:
  explicit MpiExchange(Messenger* messenger) : messenger_(*messenger) {}

  /// A program starts. `cancel` may be nullptr. Every wait watches it, and it stops the other ranks, too.
  void Begin(uint64_t number, const ExchangeLimits& limits, const std::atomic<bool>* cancel);
  /// Until End, these threads pack and unpack rows. They are idle when rows are sent or received.
  void UsePool(ThreadPool* pool) { pool_ = pool; }
  void End();

  int rank() const override { return messenger_.rank(); }
  int ranks() const override { return messenger_.ranks(); }
  uint64_t replicate_below() const override { return limits_.replicate_below; }
  uint64_t broadcast_limit() const override { return limits_.broadcast_limit; }
  uint64_t exchange_above() const override { return limits_.exchange_above; }
  Status Agree(const Status& mine) override;
  Result<uint64_t> Sum(uint64_t mine) override;
  Result<int64_t> Minimum(int64_t mine) override;
  Result<std::vector<vm::Shipment>> AllGather(vm::Shipment mine, const std::vector<SqlType>& types,
                                              vm::StringPool* strings) override;
  Result<std::vector<vm::RowPieces>> AllToAll(std::vector<vm::RowPieces> mine, const std::vector<SqlType>& types,
                                              vm::StringPool* strings) override;
  Result<std::vector<std::string>> AllGatherBytes(const std::string& mine) override;
  Result<std::vector<std::string>> AllGatherBytes(const std::string& mine, const std::vector<uint64_t>& sizes) override;
  void MoveBytes(const std::vector<uint64_t>& outgoing, const std::vector<uint64_t>& incoming,
                 vm::ByteMover* mover) override;
  Result<vm::RowSet> Broadcast(vm::RowSet mine, const std::vector<SqlType>& types, vm::StringPool* strings) override;
  Status Send(int to, Result<vm::Shipment> shipment, const vm::StringPool& strings, bool wait) override;
  Result<vm::Shipment> Receive(int from, const std::vector<SqlType>& types, vm::StringPool* strings) override;
  void Stop() override;
  bool Stopped() override;
  /// For an error after which only the ranks after this one need not go on: an earlier rank's would come first.
  void StopLater() { SendStop(rank() + 1); }

 private:
  void SendStop(int first);
  /// An error that is thrown between messages ends the job: the other ranks wait for the rest.
  template <class F>
  auto OrDie(F f);
  /// What came, of each rank in the order in which it was sent. `is_much`: worth the threads' waking.
  Result<std::vector<std::vector<vm::Shipment>>> Run(RowTraffic* traffic, bool is_much);
  Result<std::vector<vm::Shipment>> AllGatherPieces(vm::Shipment mine, const std::vector<SqlType>& types,
                                                    vm::StringPool* strings);

  Messenger& messenger_;
  uint64_t number_ = 0;
  ExchangeLimits limits_;
  const std::atomic<bool>* cancel_ = nullptr;
  ThreadPool* pool_ = nullptr;
  uint64_t latest_stop_ = 0;  ///< the greatest number of a program that another rank has stopped
  bool stop_sent_ = false;
  Status agreed_;  ///< the error that all ranks have agreed on; then the program is over, and it is not sent again
  struct StopMessage {
    uint64_t number;
    std::vector<Transport::Request> requests;
  };
  std::deque<StopMessage> stops_;
};

}  // namespace tessera
