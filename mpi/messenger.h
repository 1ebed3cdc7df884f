// Messages of any size between ranks, and waits that do not use up a core. Private to mpi/.
//
// Start at: Send, Receive, BroadcastBytes. One thread.
#pragma once

#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "mpi/transport.h"

namespace tessera {

enum MessageTag : int { kTagRows = 1, kTagStop, kTagStatistics, kTagWanted, kTagTablet };

/// Bytes that were received.
struct Bytes {
  std::unique_ptr<char[]> data;
  size_t size = 0;
  std::string_view view() const { return {data.get(), size}; }
};

class Messenger {
 public:
  explicit Messenger(Transport* transport);

  Transport& transport() { return *transport_; }
  int rank() const { return transport_->rank(); }
  int ranks() const { return transport_->ranks(); }

  /// Waits until `done()`. Spins for some microseconds, then sleeps, each time longer: ranks may share cores, and an
  /// idle rank must not take any. `greatest` bounds one sleep.
  template <class F>
  void WaitUntil(F done, std::chrono::microseconds greatest = std::chrono::microseconds(200)) {
    for (int i = 0; i < kSpins; ++i) {
      if (done()) return;
    }
    Sleep(done, greatest);
  }
  void Wait(Transport::Request request) {
    WaitUntil([&] { return transport_->Done(&request); });
  }

  /// Sends a message (of a framed WireWriter), in pieces of kGreatestMessage. Returns when few pieces are under way; if
  /// `wait`, when none is.
  void Send(int to, int tag, std::string message, bool wait);
  Bytes Receive(int from, int tag);
  /// From `root` to all: `message` is read on `root` and set on the others.
  void BroadcastBytes(int root, std::string* message);
  /// The same, for a wait that may be long: for the next command.
  void AwaitBytes(int root, std::string* message, const std::function<void()>& idle);
  std::vector<Bytes> AllGatherBytes(const std::string& mine);
  int64_t Minimum(int64_t value);
  int64_t Sum(int64_t value);

  /// `f` is called from time to time in every wait.
  void SetWhileWaiting(std::function<void()> f) { while_waiting_ = std::move(f); }

  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t bytes_received() const { return bytes_received_; }

 private:
  static constexpr int kSpins = 200;
  /// Pieces under way from this rank: enough to keep a link busy, few enough to need little memory.
  static constexpr size_t kPiecesUnderWay = 4;
  /// Broadcasts and gathers count their bytes in an int.
  static constexpr size_t kGreatestCollective = size_t{256} << 20;

  struct Piece {
    Transport::Request request;
    std::shared_ptr<const std::string> message;  ///< kept until the piece is gone
  };

  void Sleep(const std::function<bool()>& done, std::chrono::microseconds greatest);
  void BroadcastPieces(int root, char* data, size_t bytes);
  void Retire(size_t most);

  Transport* transport_;
  std::deque<Piece> under_way_;
  std::function<void()> while_waiting_;
  uint64_t bytes_sent_ = 0, bytes_received_ = 0;
};

}  // namespace tessera
