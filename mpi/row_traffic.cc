#include "mpi/row_traffic.h"

#include <algorithm>

#include "base/phase_clock.h"
#include "mpi/messages.h"
#include "vm/rows/row_set.h"

namespace tessera {
namespace {

/// The units of rows [first, end) among `units`, of which one may go on in the next piece. `*unit` and `*begin`: where the
/// first of them is, and its first row; of the next piece afterwards.
std::vector<vm::UnitRows> UnitsOf(const std::vector<vm::UnitRows>& units, size_t first, size_t end, size_t* unit,
                                  size_t* begin) {
  std::vector<vm::UnitRows> part;
  while (*unit < units.size() && *begin < end) {
    const vm::UnitRows& u = units[*unit];
    const size_t behind = *begin + u.rows;
    part.push_back({u.unit, std::min(behind, end) - std::max(*begin, first)});
    if (behind > end) break;
    *begin = behind;
    ++*unit;
  }
  return part;
}

}  // namespace

RowTraffic::RowTraffic(int rank, std::vector<vm::RowPieces> mine, const std::vector<SqlType>& types,
                       vm::StringPool* strings)
    : types_(types), strings_(*strings), came_(mine.size()) {
  const size_t ranks = mine.size(), own = static_cast<size_t>(rank);
  for (vm::RowPieces& pieces : mine) std::erase_if(pieces, [](const vm::RowSet& piece) { return piece.rows == 0; });
  // A piece for each rank, one rank after the other, so that every link is busy; at least one message, which says that
  // nothing follows.
  for (size_t i = 0, left = ranks - 1; left > 0; ++i) {
    for (size_t k = 1; k < ranks; ++k) {
      const size_t to = (own + k) % ranks, messages = std::max<size_t>(1, mine[to].size());
      if (i >= messages) continue;
      Piece& piece = pieces_.emplace_back();
      piece.receivers = 1;
      piece.last = i + 1 == messages;
      piece.shipment.rows = mine[to].empty() ? vm::MakeRowSet(types) : std::move(mine[to][i]);
      rows_sent_ += piece.shipment.rows.rows;
      outgoing_.push_back({static_cast<int>(to), pieces_.size() - 1});
      if (piece.last) --left;
    }
  }
}

RowTraffic::RowTraffic(int rank, int ranks, const vm::Shipment& mine, const std::vector<SqlType>& types,
                       vm::StringPool* strings)
    : types_(types), strings_(*strings), rows_sent_(mine.rows.rows), came_(static_cast<size_t>(ranks)) {
  const size_t rows = mine.rows.rows, most = vm::RowsTogether(types, rows, kManyRows);
  size_t unit = 0, begin = 0;
  for (size_t first = 0; first < rows || pieces_.empty(); first += most) {
    Piece& piece = pieces_.emplace_back();
    piece.part_of = &mine.rows;
    piece.first = first;
    piece.count = std::min(most, rows - first);
    piece.last = first + piece.count == rows;
    piece.receivers = static_cast<size_t>(ranks) - 1;
    piece.shipment.units = UnitsOf(mine.units, first, first + piece.count, &unit, &begin);
    piece.shipment.through = mine.through;
    piece.shipment.last = mine.last;
    for (int k = 1; k < ranks; ++k) outgoing_.push_back({(rank + k) % ranks, pieces_.size() - 1});
  }
}

void RowTraffic::Pack(Piece* piece) {
  vm::Shipment shipment = std::move(piece->shipment);
  if (piece->part_of != nullptr) {
    shipment.rows = vm::MakeRowSet(types_);
    vm::AppendRange(&shipment.rows, *piece->part_of, piece->first, piece->count);
  }
  WireWriter writer(true);
  writer.Number(piece->last);
  WriteShipment(shipment, strings_, &writer);
  piece->message = std::make_shared<const std::string>(writer.Take());
}

void RowTraffic::Unpack(const Incoming& in) {
  Result<vm::Shipment> shipment = ReadShipment(in.message.view().substr(1), types_, &strings_, nullptr);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (shipment.ok()) {
    came_[in.from][in.place] = std::move(*shipment);
  } else if (error_.ok()) {
    error_ = shipment.status();
  }
}

bool RowTraffic::WorkOnce(std::unique_lock<std::mutex>* lock) {
  const size_t sent = next_sent_ < outgoing_.size() ? outgoing_[next_sent_].piece : pieces_.size();
  if (!incoming_.empty()) {
    const Incoming in = std::move(incoming_.front());
    incoming_.pop_front();
    ++working_;
    lock->unlock();
    Unpack(in);
    lock->lock();
  } else if (next_packed_ < pieces_.size() && next_packed_ < sent + kAhead + working_) {
    Piece* const piece = &pieces_[next_packed_++];
    ++working_;
    lock->unlock();
    Pack(piece);
    lock->lock();
    piece->is_packed = true;
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

std::optional<OutgoingMessage> RowTraffic::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (next_sent_ == outgoing_.size()) return std::nullopt;
  const Outgoing& out = outgoing_[next_sent_];
  Piece& piece = pieces_[out.piece];
  if (is_alone_ && !piece.is_packed) {
    const PhaseScope phase(Phase::kExchange);  // (perhaps no other rank is there yet)
    while (!piece.is_packed && WorkOnce(&lock)) {
    }
  }
  if (!piece.is_packed) return std::nullopt;
  ++next_sent_;
  more_.notify_one();
  OutgoingMessage message{out.to, piece.message};
  if (--piece.receivers == 0) piece.message = nullptr;
  return message;
}

bool RowTraffic::IsSent() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_sent_ == outgoing_.size();
}

std::optional<bool> RowTraffic::Came(int from, Bytes message) {
  if (message.size == 0 || static_cast<uint8_t>(message.data[0]) > 1) return std::nullopt;
  const bool last = message.data[0] != 0;
  std::unique_lock<std::mutex> lock(mutex_);
  std::vector<vm::Shipment>& shipments = came_[static_cast<size_t>(from)];
  shipments.emplace_back();
  incoming_.push_back({static_cast<size_t>(from), shipments.size() - 1, std::move(message)});
  more_.notify_one();
  while (is_alone_ && !incoming_.empty() && WorkOnce(&lock)) {
  }
  return !last;
}

Result<std::vector<std::vector<vm::Shipment>>> RowTraffic::Finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (WorkOnce(&lock)) {
  }
  done_.wait(lock, [&] { return working_ == 0 && incoming_.empty(); });
  is_over_ = true;
  more_.notify_all();
  if (!error_.ok()) return error_;
  return std::move(came_);
}

}  // namespace tessera
