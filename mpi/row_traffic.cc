#include "mpi/row_traffic.h"

#include <algorithm>

#include "base/phase_clock.h"
#include "mpi/messages.h"

namespace tessera {

RowTraffic::RowTraffic(int rank, std::vector<vm::RowPieces> mine, const std::vector<SqlType>& types,
                       vm::StringPool* strings)
    : types_(types), strings_(*strings), rows_(mine.size()), mine_(std::move(mine)) {
  const size_t ranks = mine_.size(), own = static_cast<size_t>(rank);
  rows_[own] = std::move(mine_[own]);
  mine_[own].clear();
  for (vm::RowPieces& pieces : mine_) {
    std::erase_if(pieces, [](const vm::RowSet& piece) { return piece.rows == 0; });
    for (const vm::RowSet& piece : pieces) rows_sent_ += piece.rows;
  }
  // A piece for each rank in turn, so that every link is busy; at least one message, which says that nothing follows.
  for (size_t i = 0, left = ranks - 1; left > 0; ++i) {
    for (size_t k = 1; k < ranks; ++k) {
      const size_t to = (own + k) % ranks, messages = std::max<size_t>(1, mine_[to].size());
      if (i >= messages) continue;
      const bool last = i + 1 == messages;
      outgoing_.push_back({static_cast<int>(to), mine_[to].empty() ? nullptr : &mine_[to][i], last});
      if (last) --left;
    }
  }
}

void RowTraffic::Pack(Outgoing* out) {
  vm::Shipment shipment;
  shipment.last = out->last;
  if (out->piece != nullptr) {
    shipment.rows = std::move(*out->piece);
  } else {
    for (const SqlType& type : types_) shipment.rows.columns.push_back({type, {}, {}, {}});
  }
  WireWriter writer(true);
  writer.Number(out->last);
  WriteShipment(shipment, strings_, &writer);
  out->message = writer.Take();
}

void RowTraffic::Unpack(const Incoming& in) {
  Result<vm::Shipment> shipment = ReadShipment(in.message.view().substr(1), types_, &strings_, nullptr);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (shipment.ok()) {
    rows_[in.from][in.place] = std::move(shipment->rows);
  } else if (error_.ok()) {
    error_ = shipment.status();
  }
}

bool RowTraffic::WorkOnce(std::unique_lock<std::mutex>* lock) {
  if (!incoming_.empty()) {
    const Incoming in = std::move(incoming_.front());
    incoming_.pop_front();
    ++working_;
    lock->unlock();
    Unpack(in);
    lock->lock();
  } else if (next_packed_ < outgoing_.size() && next_packed_ - next_sent_ < kAhead + working_) {
    Outgoing* const out = &outgoing_[next_packed_++];
    ++working_;
    lock->unlock();
    Pack(out);
    lock->lock();
    out->is_packed = true;
  } else {
    return false;
  }
  --working_;
  done_.notify_one();
  return true;
}

void RowTraffic::Help() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!is_over_) {
    if (!WorkOnce(&lock)) more_.wait(lock);
  }
}

std::optional<std::pair<int, std::string>> RowTraffic::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (next_sent_ == outgoing_.size()) return std::nullopt;
  Outgoing& out = outgoing_[next_sent_];
  if (is_alone_ && !out.is_packed) {
    const PhaseScope phase(Phase::kExchange);  // (perhaps no other rank is there yet)
    while (!out.is_packed && WorkOnce(&lock)) {
    }
  }
  if (!out.is_packed) return std::nullopt;
  ++next_sent_;
  more_.notify_one();
  return std::pair(out.to, std::move(out.message));
}

bool RowTraffic::IsSent() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_sent_ == outgoing_.size();
}

std::optional<bool> RowTraffic::Came(int from, Bytes message) {
  if (message.size == 0 || static_cast<uint8_t>(message.data[0]) > 1) return std::nullopt;
  const bool last = message.data[0] != 0;
  std::unique_lock<std::mutex> lock(mutex_);
  vm::RowPieces& pieces = rows_[static_cast<size_t>(from)];
  pieces.emplace_back();
  incoming_.push_back({static_cast<size_t>(from), pieces.size() - 1, std::move(message)});
  more_.notify_one();
  while (is_alone_ && !incoming_.empty() && WorkOnce(&lock)) {
  }
  return !last;
}

Result<std::vector<vm::RowPieces>> RowTraffic::Finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (WorkOnce(&lock)) {
  }
  done_.wait(lock, [&] { return working_ == 0 && incoming_.empty(); });
  is_over_ = true;
  more_.notify_all();
  if (!error_.ok()) return error_;
  return std::move(rows_);
}

}  // namespace tessera
