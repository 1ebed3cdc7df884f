#include "mpi/messenger.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace tessera {

Messenger::Messenger(Transport* transport) : transport_(transport) {
  // By default the kernel may make a sleep 50 us longer; messages take 1 to 5 us.
  prctl(PR_SET_TIMERSLACK, 1000);
}

void Messenger::Sleep(const std::function<bool()>& done, std::chrono::microseconds greatest) {
  std::chrono::microseconds pause(5);
  while (!done()) {
    if (while_waiting_) while_waiting_();
    if (!posted_.empty()) SendPosted();
    std::this_thread::sleep_for(pause);
    pause = std::min(pause + pause / 4 + std::chrono::microseconds(1), greatest);
  }
}

Status Messenger::Damaged(int from) {
  return {ErrorCode::kCorrupt,
          "a message of " + (from < 0 ? "another rank" : "rank " + std::to_string(from)) + " is damaged"};
}

void Messenger::SayFarewell() noexcept {
  has_said_farewell_ = true;
  try {
    for (int r = 0; r < ranks(); ++r) {
      if (r != rank()) (void)transport_->Send(r, kTagFarewell, nullptr, 0, false);
    }
  } catch (...) {  // no memory for a request: then there is one message more
  }
}

void Messenger::Die(const Status& reason) {
  // (There may be no memory to put a string together.)
  fprintf(stderr, "tessera: rank %d: %s\n%s%s", rank(), reason.message().c_str(), reason.hint().c_str(),
          reason.hint().empty() ? "" : "\n");
  SayFarewell();
  transport_->Abort(1);
  _exit(1);
}

void Messenger::Retire(size_t most) {
  while (under_way_.size() > most) {
    if (under_way_.front().is_first) {
      WaitForRanks(under_way_.front().request);
    } else {
      Wait(under_way_.front().request);
    }
    under_way_.pop_front();
  }
}

void Messenger::Send(int to, int tag, std::string message, bool wait) {
  if (tag != kTagStatistics) CountSent(to, message.size());
  const auto kept = std::make_shared<const std::string>(std::move(message));
  for (size_t at = 0; at < kept->size(); at += PieceBytes(kept->size(), at)) {
    Retire(kPiecesUnderWay - 1);
    SendPiece(to, tag, kept, at, !wait);
  }
  if (wait) Retire(0);
}

/// A first piece of more is sent synchronously, because it says when the receiver is there.
void Messenger::SendPiece(int to, int tag, const std::shared_ptr<const std::string>& message, size_t at,
                          bool synchronous) {
  const size_t bytes = PieceBytes(message->size(), at);
  const bool is_first = at == 0;
  synchronous |= is_first && bytes < message->size();
  under_way_.push_back({transport_->Send(to, tag, message->data() + at, bytes, synchronous), message, is_first});
}

void Messenger::SendPosted() {
  std::erase_if(under_way_, [&](Piece& piece) { return transport_->Done(&piece.request); });
  while (!posted_.empty() && under_way_.size() < kPiecesUnderWay) {
    Posted& next = posted_.front();
    SendPiece(next.to, next.tag, next.message, next.at, false);
    next.at += PieceBytes(next.message->size(), next.at);
    if (next.at == next.message->size()) posted_.pop_front();
  }
}

/// A rank that takes a message takes nothing else until it has all of it. None waits in a circle: the message that is being
/// cut into pieces is the first of `posted_`, so each piece of it that has been taken makes room for its next one, even if
/// all other pieces under way are for ranks that take none now.
void Messenger::ExchangeMessages(int tag, MessageTraffic* traffic) {
  const auto post = [&] {
    while (posted_.size() < kPiecesUnderWay) {
      const std::optional<OutgoingMessage> next = traffic->Next();
      if (!next.has_value()) return;
      CountSent(next->to, next->bytes->size());
      posted_.push_back({next->to, tag, next->bytes, 0});
      SendPosted();
    }
  };
  struct Sender {
    int rank;
    bool has_begun;
  };
  std::vector<Sender> senders;  // of which more is due
  for (int k = 1; k < ranks(); ++k) senders.push_back({(rank() + ranks() - k) % ranks(), false});
  while (!senders.empty()) {
    size_t bytes = 0, at = 0;
    int source = 0;
    {
      const bool waits = std::ranges::none_of(senders, &Sender::has_begun);
      const PhaseScope phase(waits ? Phase::kWait : Phase::kExchange);
      WaitUntil([&] {
        post();
        for (at = 0; at < senders.size(); ++at) {
          if (transport_->Probe(senders[at].rank, tag, &bytes, &source)) return true;
        }
        return false;
      });
    }
    senders[at].has_begun = true;
    const std::optional<bool> more = traffic->Came(source, Receive(source, tag));
    if (!more.has_value()) Die(Damaged(source));
    if (!*more) senders.erase(senders.begin() + static_cast<ptrdiff_t>(at));
  }
  WaitUntil([&] {
    post();
    return posted_.empty() && traffic->IsSent();
  });
  Retire(0);
}

namespace {

/// The bytes between this rank and another, in one direction.
struct Stream {
  int rank = 0;
  uint64_t bytes = 0, at = 0;  ///< all of them; those that are under way or gone
  struct Piece {
    Transport::Request request;
    uint64_t at;
    size_t bytes;
  };
  std::deque<Piece> under_way = {};

  bool IsDone() const { return at == bytes && under_way.empty(); }
  bool MayStart() const { return at < bytes && under_way.size() < vm::ByteMover::kUnderWay; }
};

}  // namespace

void Messenger::MoveBytes(int tag, const std::vector<uint64_t>& outgoing, const std::vector<uint64_t>& incoming,
                          vm::ByteMover* mover) {
  static_assert(vm::ByteMover::kPieceBytes <= kGreatestMessage);
  std::vector<Stream> out, in;
  const int n = ranks();
  for (int k = 1; k < n; ++k) {
    const int to = (rank() + k) % n, from = (rank() + n - k) % n;
    out.push_back({to, outgoing[static_cast<size_t>(to)]});
    in.push_back({from, incoming[static_cast<size_t>(from)]});
    CountSent(to, out.back().bytes);
    CountReceived(from, in.back().bytes);
  }
  const auto start = [&](Stream* s, const auto& request) {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(vm::ByteMover::kPieceBytes, s->bytes - s->at));
    s->under_way.push_back({request(s->at, bytes), s->at, bytes});
    s->at += bytes;
  };
  // true: something has moved on, or nothing is left.
  const auto step = [&] {
    bool moved = false, done = true;
    for (Stream& s : in) {
      for (; s.MayStart(); moved = true)
        start(&s, [&](uint64_t at, size_t bytes) {
          return transport_->Receive(s.rank, tag, mover->Room(s.rank, at, bytes), bytes);
        });
      size_t came = 0;
      for (; !s.under_way.empty() && transport_->Done(&s.under_way.front().request, &came); moved = true) {
        const Stream::Piece piece = s.under_way.front();
        if (came != piece.bytes) Die(Damaged(s.rank));
        s.under_way.pop_front();
        mover->Arrived(s.rank, piece.at, piece.bytes);
      }
      done = done && s.IsDone();
    }
    for (Stream& s : out) {
      for (; !s.under_way.empty() && transport_->Done(&s.under_way.front().request); moved = true)
        s.under_way.pop_front();
      for (; s.MayStart(); moved = true)
        start(&s, [&](uint64_t at, size_t bytes) {
          return transport_->Send(s.rank, tag, mover->Outgoing(s.rank, at, bytes), bytes, false);
        });
      done = done && s.IsDone();
    }
    return moved || done;
  };
  const auto is_done = [](const Stream& s) { return s.IsDone(); };
  while (!std::all_of(in.begin(), in.end(), is_done) || !std::all_of(out.begin(), out.end(), is_done)) WaitUntil(step);
}

Bytes Messenger::Receive(int from, int tag) {
  size_t first = 0;
  int source = from;
  {
    const PhaseScope phase(Phase::kWait);
    WaitUntil([&] { return transport_->Probe(from, tag, &first, &source); });
  }
  uint64_t size = 0;
  if (first < sizeof size || first > kFirstPiece) Die(Damaged(source));
  auto piece = std::make_unique_for_overwrite<char[]>(first);
  Wait(transport_->Receive(source, tag, piece.get(), first));
  memcpy(&size, piece.get(), sizeof size);
  CheckSize(source, size);
  const uint64_t framed = size + sizeof size;
  if (first != PieceBytes(framed, 0)) Die(Damaged(source));
  Bytes out{{}, size};
  size_t at = first - sizeof size, room = 0;
  MakeRoom(&out, &room, at);
  if (at > 0) memcpy(out.data.get(), piece.get() + sizeof size, at);
  struct Incoming {
    Transport::Request request;
    size_t bytes;
  };
  std::deque<Incoming> pieces;
  while (at < size || !pieces.empty()) {
    while (at < size && pieces.size() < kPiecesUnderWay) {
      const size_t bytes = std::min<size_t>(kGreatestMessage, size - at);
      if (at + bytes > room) {
        if (!pieces.empty()) break;  // they go to where the room is now
        MakeRoom(&out, &room, at + bytes);
      }
      pieces.push_back({transport_->Receive(source, tag, out.data.get() + at, bytes), bytes});
      at += bytes;
    }
    if (Wait(pieces.front().request) != pieces.front().bytes) Die(Damaged(source));
    pieces.pop_front();
  }
  if (tag != kTagStatistics) CountReceived(source, framed);
  return out;
}

void Messenger::MakeRoom(Bytes* out, size_t* room, size_t needed) {
  if (needed <= *room) return;
  const size_t more = std::min(out->size, std::max({needed, 2 * *room, kRoomAtOnce}));
  auto data = std::make_unique_for_overwrite<char[]>(more);
  if (*room > 0) memcpy(data.get(), out->data.get(), *room);
  out->data = std::move(data);
  *room = more;
}

void Messenger::BroadcastPieces(int root, size_t bytes, const std::function<char*(size_t)>& room) {
  for (size_t at = 0; at < bytes; at += kGreatestCollective) {
    const size_t piece = std::min(kGreatestCollective, bytes - at);
    WaitForAll(transport_->Broadcast(root, room(at + piece) + at, piece));
  }
}

void Messenger::CountBroadcast(int root, uint64_t bytes) const {
  if (rank() != root) return CountReceived(root, bytes);
  for (int r = 0; r < ranks(); ++r) {
    if (r != root) CountSent(r, bytes);
  }
}

void Messenger::BroadcastBytes(int root, std::string* message) {
  uint64_t size = message->size();
  WaitForRanks(transport_->Broadcast(root, &size, sizeof size));
  BroadcastText(root, size, message);
}

void Messenger::BroadcastText(int root, uint64_t size, std::string* message) {
  CheckSize(root, size);
  CountBroadcast(root, size);
  BroadcastPieces(root, size, [&](size_t bytes) {
    message->resize(std::max(bytes, message->size()));
    return message->data();
  });
  message->resize(size);
}

void Messenger::AwaitBytes(int root, std::string* message) {
  uint64_t size = 0;
  Transport::Request request = transport_->Broadcast(root, &size, sizeof size);
  WaitUntil([&] { return transport_->Done(&request); }, std::chrono::microseconds(1000));
  message->clear();
  BroadcastText(root, size, message);
}

std::vector<Bytes> Messenger::AllGatherBytes(const std::string& mine) {
  return AllGatherBytes(mine, AllGatherNumber(mine.size()));
}

std::vector<uint64_t> Messenger::AllGatherNumber(uint64_t mine) {
  std::vector<uint64_t> all(static_cast<size_t>(ranks()));
  WaitForRanks(transport_->AllGather(&mine, sizeof mine, all.data()));
  return all;
}

std::vector<Bytes> Messenger::AllGatherBytes(const std::string& mine, const std::vector<uint64_t>& sizes) {
  const size_t n = static_cast<size_t>(ranks());
  const uint64_t size = mine.size();
  std::vector<Bytes> out(n);
  uint64_t total = 0;
  if (sizes[static_cast<size_t>(rank())] != size) Die(Damaged(rank()));
  for (size_t r = 0; r < n; ++r) {
    CheckSize(static_cast<int>(r), sizes[r]);
    total += sizes[r];
    if (static_cast<int>(r) == rank()) continue;
    CountSent(static_cast<int>(r), size);
    CountReceived(static_cast<int>(r), sizes[r]);
  }
  if (total <= kGreatestCollective) {
    std::vector<int> counts(n), starts(n);
    int at = 0;
    for (size_t r = 0; r < n; ++r) {
      counts[r] = static_cast<int>(sizes[r]);
      starts[r] = at;
      at += counts[r];
    }
    const auto all = std::make_unique_for_overwrite<char[]>(total + 1);
    const bool equal = std::ranges::all_of(sizes, [&](uint64_t s) { return s == size; });
    WaitForAll(equal ? transport_->AllGather(mine.data(), size, all.get())
                     : transport_->AllGather(mine.data(), counts.data(), starts.data(), all.get()));
    for (size_t r = 0; r < n; ++r) {
      out[r] = {std::make_unique_for_overwrite<char[]>(sizes[r]), sizes[r]};
      memcpy(out[r].data.get(), all.get() + starts[r], sizes[r]);
    }
    return out;
  }
  for (size_t r = 0; r < n; ++r) {
    const bool is_mine = static_cast<int>(r) == rank();
    size_t room = 0;
    out[r].size = sizes[r];
    BroadcastPieces(static_cast<int>(r), sizes[r], [&](size_t bytes) {
      MakeRoom(&out[r], &room, is_mine ? sizes[r] : bytes);
      if (is_mine) memcpy(out[r].data.get(), mine.data(), size);
      return out[r].data.get();
    });
  }
  return out;
}

int64_t Messenger::Minimum(int64_t value) {
  int64_t least = value;
  WaitForRanks(transport_->Minimum(&least));
  if (least > value) Die(Damaged(-1));
  return least;
}

int64_t Messenger::Sum(int64_t value) {
  WaitForRanks(transport_->Sum(&value));
  return value;
}

}  // namespace tessera
