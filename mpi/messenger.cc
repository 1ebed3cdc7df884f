#include "mpi/messenger.h"

#include <algorithm>
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
    std::this_thread::sleep_for(pause);
    pause = std::min(pause + pause / 4 + std::chrono::microseconds(1), greatest);
  }
}

void Messenger::Retire(size_t most) {
  while (under_way_.size() > most) {
    Wait(under_way_.front().request);
    under_way_.pop_front();
  }
}

void Messenger::Send(int to, int tag, std::string message, bool wait) {
  bytes_sent_ += message.size();
  const auto kept = std::make_shared<const std::string>(std::move(message));
  for (size_t at = 0; at < kept->size(); at += kGreatestMessage) {
    Retire(kPiecesUnderWay - 1);
    const size_t bytes = std::min(kGreatestMessage, kept->size() - at);
    under_way_.push_back({transport_->Send(to, tag, kept->data() + at, bytes, !wait), kept});
  }
  if (wait) Retire(0);
}

Bytes Messenger::Receive(int from, int tag) {
  size_t first = 0;
  int source = from;
  WaitUntil([&] { return transport_->Probe(from, tag, &first, &source); });
  auto piece = std::make_unique_for_overwrite<char[]>(first);
  Wait(transport_->Receive(source, tag, piece.get(), first));
  uint64_t size = 0;
  memcpy(&size, piece.get(), sizeof size);
  Bytes out{std::make_unique_for_overwrite<char[]>(size), size};
  size_t at = first - sizeof size;
  memcpy(out.data.get(), piece.get() + sizeof size, at);
  std::deque<Transport::Request> requests;
  while (at < size || !requests.empty()) {
    while (at < size && requests.size() < kPiecesUnderWay) {
      const size_t bytes = std::min<size_t>(kGreatestMessage, size - at);
      requests.push_back(transport_->Receive(source, tag, out.data.get() + at, bytes));
      at += bytes;
    }
    Wait(requests.front());
    requests.pop_front();
  }
  bytes_received_ += size;
  return out;
}

void Messenger::BroadcastPieces(int root, char* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kGreatestCollective) {
    Wait(transport_->Broadcast(root, data + at, std::min(kGreatestCollective, bytes - at)));
  }
  (rank() == root ? bytes_sent_ : bytes_received_) += bytes;
}

void Messenger::BroadcastBytes(int root, std::string* message) {
  uint64_t size = message->size();
  Wait(transport_->Broadcast(root, &size, sizeof size));
  message->resize(size);
  BroadcastPieces(root, message->data(), size);
}

void Messenger::AwaitBytes(int root, std::string* message, const std::function<void()>& idle) {
  uint64_t size = 0;
  Transport::Request request = transport_->Broadcast(root, &size, sizeof size);
  WaitUntil(
      [&] {
        idle();
        return transport_->Done(&request);
      },
      std::chrono::microseconds(1000));
  message->resize(size);
  BroadcastPieces(root, message->data(), size);
}

std::vector<Bytes> Messenger::AllGatherBytes(const std::string& mine) {
  const size_t n = static_cast<size_t>(ranks());
  std::vector<uint64_t> sizes(n);
  const uint64_t size = mine.size();
  Wait(transport_->AllGather(&size, sizeof size, sizes.data()));
  std::vector<Bytes> out(n);
  uint64_t total = 0;
  for (uint64_t s : sizes) total += s;
  bytes_sent_ += size;
  bytes_received_ += total - size;
  if (total <= kGreatestCollective) {
    std::vector<int> counts(n), starts(n);
    int at = 0;
    for (size_t r = 0; r < n; ++r) {
      counts[r] = static_cast<int>(sizes[r]);
      starts[r] = at;
      at += counts[r];
    }
    const auto all = std::make_unique_for_overwrite<char[]>(total + 1);
    Wait(transport_->AllGather(mine.data(), counts.data(), starts.data(), all.get()));
    for (size_t r = 0; r < n; ++r) {
      out[r] = {std::make_unique_for_overwrite<char[]>(sizes[r]), sizes[r]};
      memcpy(out[r].data.get(), all.get() + starts[r], sizes[r]);
    }
    return out;
  }
  for (size_t r = 0; r < n; ++r) {
    out[r] = {std::make_unique_for_overwrite<char[]>(sizes[r]), sizes[r]};
    if (static_cast<int>(r) == rank()) memcpy(out[r].data.get(), mine.data(), size);
    BroadcastPieces(static_cast<int>(r), out[r].data.get(), sizes[r]);
  }
  return out;
}

int64_t Messenger::Minimum(int64_t value) {
  Wait(transport_->Minimum(&value));
  return value;
}

int64_t Messenger::Sum(int64_t value) {
  Wait(transport_->Sum(&value));
  return value;
}

}  // namespace tessera
