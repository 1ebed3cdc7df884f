#include "mpi/mpi_exchange.h"

#include <algorithm>
#include <utility>

#include "base/exception_status.h"
#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "mpi/messages.h"
#include "mpi/row_traffic.h"
#include "vm/rows/row_set.h"

namespace tessera {
namespace {

/// The error if a shipment did not come. The sender's own error is reported when the ranks agree.
Status OtherRankFailed() { return {ErrorCode::kCancelled, "another rank failed"}; }

constexpr size_t kFewBytes = 4096;

/// From here to its end, messages are packed, moved and unpacked.
class MessageScope {
 public:
  explicit MessageScope(Phase phase) : phase_(phase) {}
  MessageScope(const MessageScope&) = delete;
  MessageScope& operator=(const MessageScope&) = delete;

 private:
  // A message that is half written or half read would be the end of the job: what it takes is counted, and the next
  // step that needs memory has the error.
  const WithoutMemoryLimit without_limit_;
  const InterruptScope without_interrupts_{nullptr};
  const PhaseScope phase_;
};

/// The pieces of one rank as the shipment that they were cut from. Errors: kCorrupt; kResource.
Result<vm::Shipment> JoinPieces(std::vector<vm::Shipment> pieces, const std::vector<SqlType>& types, ThreadPool* pool) {
  vm::Shipment all;
  all.rows = vm::MakeRowSet(types);
  vm::RowPieces rows;
  uint64_t of_units = 0;
  for (vm::Shipment& piece : pieces) {
    for (const vm::UnitRows& u : piece.units) {
      of_units += u.rows;
      if (all.units.empty() || u.unit > all.units.back().unit) {
        all.units.push_back(u);
      } else if (u.unit == all.units.back().unit) {  // it was cut
        all.units.back().rows += u.rows;
      } else {
        return DamagedRows();
      }
    }
    all.through = piece.through;
    all.last = piece.last;
    rows.push_back(std::move(piece.rows));
  }
  TESSERA_TRY(vm::AppendAll(&all.rows, std::move(rows), pool));
  if (!all.units.empty() && of_units != all.rows.rows) return DamagedRows();
  return all;
}

}  // namespace

void MpiExchange::Begin(uint64_t number, const ExchangeLimits& limits, const std::atomic<bool>* cancel) {
  number_ = number;
  limits_ = limits;
  cancel_ = cancel;
  stop_sent_ = false;
  agreed_ = Status::Ok();
  messenger_.SetWhileWaiting([this] {
    if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) Stop();
  });
}

void MpiExchange::End() {
  messenger_.SetWhileWaiting({});
  pool_ = nullptr;
}

Status MpiExchange::Agree(const Status& mine) {
  if (!agreed_.ok()) return agreed_;
  const MessageScope scope(Phase::kWait);
  // The least number wins: errors before cancellations, because errors on other ranks cause those, and lower ranks
  // before higher ones.
  int64_t vote = INT64_MAX;
  constexpr int64_t kCancelledVotes = int64_t{1} << 32;
  if (!mine.ok()) vote = (mine.code() == ErrorCode::kCancelled ? kCancelledVotes : 0) + rank();
  const int64_t least = messenger_.Minimum(vote);
  if (least == INT64_MAX) return Status::Ok();
  const int64_t owner_vote = least % kCancelledVotes;
  if (owner_vote < 0 || owner_vote >= ranks() || least / kCancelledVotes > 1) messenger_.Die(messenger_.Damaged(-1));
  const int owner = static_cast<int>(owner_vote);
  if (owner == rank() && mine.ok()) messenger_.Die(messenger_.Damaged(-1));  // a vote that it did not cast
  std::string message;
  if (owner == rank()) {
    const bool named = mine.code() != ErrorCode::kCancelled;
    message = WriteMessage(named ? Status(mine.kind(), "rank " + std::to_string(rank()) + ": " + mine.message(),
                                          mine.hint(), mine.position())
                                 : mine);
  }
  messenger_.BroadcastBytes(owner, &message);
  // The next call would take "no error" for an invitation to go on.
  if (!ReadMessage(message, &agreed_).ok() || agreed_.ok()) messenger_.Die(messenger_.Damaged(owner));
  return agreed_;
}

Result<uint64_t> MpiExchange::Sum(uint64_t mine) {
  const MessageScope scope(Phase::kWait);
  return static_cast<uint64_t>(messenger_.Sum(static_cast<int64_t>(mine)));
}

Result<int64_t> MpiExchange::Minimum(int64_t mine) {
  const MessageScope scope(Phase::kWait);
  return messenger_.Minimum(mine);
}

template <class F>
auto MpiExchange::OrDie(F f) {
  try {
    return f();
  } catch (...) {
    messenger_.Die(StatusOfException());
  }
}

Result<std::vector<vm::Shipment>> MpiExchange::AllGather(vm::Shipment mine, const std::vector<SqlType>& types,
                                                         vm::StringPool* strings) {
  const MessageScope scope(Phase::kExchange);
  constexpr uint64_t kInPieces = UINT64_MAX;  // no message is so long
  const bool is_much = mine.rows.rows >= RowTraffic::kManyRows && mine.rows.columns.size() == types.size();
  std::string message;
  if (!is_much) {
    WireWriter out;
    WriteShipment(mine, *strings, &out);
    message = out.Take();
  }
  const std::vector<uint64_t> sizes = messenger_.AllGatherNumber(is_much ? kInPieces : message.size());
  if (std::ranges::find(sizes, kInPieces) != sizes.end()) return AllGatherPieces(std::move(mine), types, strings);
  const std::vector<Bytes> messages = messenger_.AllGatherBytes(message, sizes);
  std::vector<vm::Shipment> all(messages.size());
  for (size_t r = 0; r < messages.size(); ++r) {
    if (static_cast<int>(r) == rank()) {
      all[r] = std::move(mine);
    } else {
      TESSERA_ASSIGN(all[r], ReadShipment(messages[r].view(), types, strings, nullptr));
    }
  }
  return all;
}

Result<std::vector<vm::Shipment>> MpiExchange::AllGatherPieces(vm::Shipment mine, const std::vector<SqlType>& types,
                                                               vm::StringPool* strings) {
  Result<std::vector<std::vector<vm::Shipment>>> came = OrDie([&] {
    RowTraffic traffic(rank(), ranks(), mine, types, strings);
    return Run(&traffic, true);
  });
  const PhaseScope phase(Phase::kMerge);
  return Caught([&]() -> Result<std::vector<vm::Shipment>> {
    TESSERA_TRY(came.status());
    std::vector<vm::Shipment> all(came->size());
    for (size_t r = 0; r < came->size(); ++r) {
      if (static_cast<int>(r) == rank()) {
        all[r] = std::move(mine);
      } else {
        TESSERA_ASSIGN(all[r], JoinPieces(std::move((*came)[r]), types, pool_));
      }
    }
    return all;
  });
}

Result<std::vector<vm::RowPieces>> MpiExchange::AllToAll(std::vector<vm::RowPieces> mine,
                                                         const std::vector<SqlType>& types, vm::StringPool* strings) {
  const MessageScope scope(Phase::kExchange);
  return OrDie([&]() -> Result<std::vector<vm::RowPieces>> {
    vm::RowPieces own = std::exchange(mine[static_cast<size_t>(rank())], {});
    RowTraffic traffic(rank(), std::move(mine), types, strings);
    // (A rank that sends few rows may get many.)
    const bool is_much = messenger_.Sum(static_cast<int64_t>(traffic.rows_sent())) >= int64_t{RowTraffic::kManyRows};
    TESSERA_ASSIGN(std::vector<std::vector<vm::Shipment>> came, Run(&traffic, is_much));
    std::vector<vm::RowPieces> all(came.size());
    for (size_t r = 0; r < came.size(); ++r) {
      for (vm::Shipment& piece : came[r]) all[r].push_back(std::move(piece.rows));
    }
    all[static_cast<size_t>(rank())] = std::move(own);
    return all;
  });
}

Result<std::vector<std::vector<vm::Shipment>>> MpiExchange::Run(RowTraffic* traffic, bool is_much) {
  Result<std::vector<std::vector<vm::Shipment>>> all(std::vector<std::vector<vm::Shipment>>{});
  bool exchanged = false;
  const auto work = [&](int worker) {
    return OrDie([&] {  // (the other threads wait, too)
      if (worker > 0) {
        traffic->Help();
      } else {
        exchanged = true;
        messenger_.ExchangeMessages(kTagRows, traffic);
        all = traffic->Finish();
      }
      return Status::Ok();
    });
  };
  const bool alone = pool_ == nullptr || pool_->threads() == 1 || !is_much;
  if (!alone) (void)pool_->Run(pool_->threads(), work);  // (fails only if it cannot start a thread)
  if (exchanged) return all;
  traffic->WorkAlone();
  (void)work(0);
  return all;
}

Result<std::vector<std::string>> MpiExchange::AllGatherBytes(const std::string& mine) {
  const MessageScope scope(Phase::kExchange);
  std::vector<std::string> all;
  for (const Bytes& bytes : messenger_.AllGatherBytes(mine)) all.emplace_back(bytes.view());
  return all;
}

Result<std::vector<std::string>> MpiExchange::AllGatherBytes(const std::string& mine,
                                                             const std::vector<uint64_t>& sizes) {
  // (Few bytes take as long as the last rank.)
  const MessageScope scope(mine.size() <= kFewBytes ? Phase::kWait : Phase::kExchange);
  std::vector<std::string> all;
  for (const Bytes& bytes : messenger_.AllGatherBytes(mine, sizes)) all.emplace_back(bytes.view());
  return all;
}

void MpiExchange::MoveBytes(const std::vector<uint64_t>& outgoing, const std::vector<uint64_t>& incoming,
                            vm::ByteMover* mover) {
  const MessageScope scope(Phase::kExchange);
  messenger_.MoveBytes(kTagBytes, outgoing, incoming, mover);
}

Result<vm::RowSet> MpiExchange::Broadcast(vm::RowSet mine, const std::vector<SqlType>& types, vm::StringPool* strings) {
  const MessageScope scope(Phase::kExchange);
  std::string message;
  vm::Shipment shipment;
  if (rank() == 0) {
    shipment.rows = std::move(mine);
    WireWriter out(false, pool_);
    WriteShipment(shipment, *strings, &out);
    message = out.Take();
  }
  messenger_.BroadcastBytes(0, &message);
  if (rank() == 0) return std::move(shipment.rows);
  TESSERA_ASSIGN(shipment, ReadShipment(message, types, strings, pool_));
  return std::move(shipment.rows);
}

Status MpiExchange::Send(int to, Result<vm::Shipment> shipment, const vm::StringPool& strings, bool wait) {
  const MessageScope scope(Phase::kGather);
  WireWriter out(true, pool_);
  out.Number(shipment.ok());
  if (shipment.ok()) WriteShipment(*shipment, strings, &out);
  messenger_.Send(to, kTagRows, out.Take(), wait);
  return Status::Ok();
}

Result<vm::Shipment> MpiExchange::Receive(int from, const std::vector<SqlType>& types, vm::StringPool* strings) {
  const MessageScope scope(Phase::kGather);
  const Bytes message = messenger_.Receive(from, kTagRows);
  if (message.size == 1 && message.data[0] == 0) return OtherRankFailed();
  if (message.size == 0 || message.data[0] != 1) messenger_.Die(messenger_.Damaged(from));
  Result<vm::Shipment> rows = ReadShipment(message.view().substr(1), types, strings, pool_);
  // Its sender, who knows of no error, may wait for more of its rows to be taken.
  if (!rows.ok()) messenger_.Die(messenger_.Damaged(from));
  return rows;
}

void MpiExchange::Stop() {
  if (stop_sent_) return;
  stop_sent_ = true;
  SendStop(0);
}

void MpiExchange::SendStop(int first) {
  // Earlier stops have been received long ago, or are in the receivers' buffers: eight bytes each.
  while (!stops_.empty()) {
    bool done = true;
    for (Transport::Request& r : stops_.front().requests) done &= messenger_.transport().Done(&r);
    if (!done) break;
    stops_.pop_front();
  }
  StopMessage& message = stops_.emplace_back();
  message.number = number_;
  for (int r = first; r < ranks(); ++r) {
    if (r != rank())
      message.requests.push_back(
          messenger_.transport().Send(r, kTagStop, &message.number, sizeof message.number, false));
  }
}

bool MpiExchange::Stopped() {
  size_t bytes = 0;
  int source = 0;
  // A rank that is done with an earlier program may receive the stop of a later one, and the other way round.
  while (messenger_.transport().Probe(-1, kTagStop, &bytes, &source)) {
    uint64_t number = 0;
    if (bytes != sizeof number) messenger_.Die(messenger_.Damaged(source));
    messenger_.Wait(messenger_.transport().Receive(source, kTagStop, &number, sizeof number));
    latest_stop_ = std::max(latest_stop_, number);
  }
  return latest_stop_ >= number_;
}

}  // namespace tessera
