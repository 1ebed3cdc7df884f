// Messages of any size between ranks, and waits that do not use up a core. Private to mpi/.
//
// Start at: Send, Receive, BroadcastBytes. One thread.
#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/phase_clock.h"
#include "base/status.h"
#include "mpi/transport.h"
#include "vm/shares/exchange.h"

namespace tessera {

enum MessageTag : int {
  kTagRows = 1,
  kTagStop,
  kTagStatistics,
  kTagWanted,
  kTagTablet,
  kTagAlive,
  kTagLoaded,
  kTagBytes,
  kTagFarewell
};

/// Bytes that were received.
struct Bytes {
  std::unique_ptr<char[]> data;
  size_t size = 0;
  std::string_view view() const { return {data.get(), size}; }
};

struct OutgoingMessage {
  int to;
  std::shared_ptr<const std::string> bytes;  ///< of a framed WireWriter
};

/// Messages from this rank to the others, and what becomes of theirs.
class MessageTraffic {
 public:
  virtual ~MessageTraffic() = default;
  /// The next message. nullopt: it is not ready, or there is no more.
  virtual std::optional<OutgoingMessage> Next() = 0;
  /// Whether there is no more.
  virtual bool IsSent() = 0;
  /// Takes a message. Those of a rank come in the order in which it sent them. Returns whether more of them follow; nullopt:
  /// it is damaged, which ends the job.
  virtual std::optional<bool> Came(int from, Bytes message) = 0;
};

class Messenger {
 public:
  explicit Messenger(Transport* transport);

  Transport& transport() { return *transport_; }
  int rank() const { return transport_->rank(); }
  int ranks() const { return transport_->ranks(); }

  /// Whether this rank has a core to itself while it waits, or has to leave it to others soon.
  void SetOwnCore(bool own) { spin_ = own ? kSpinAlone : kSpin; }
  /// Waits until `done()`. Spins for some microseconds, or milliseconds if the rank has a core to itself, and then sleeps,
  /// each time longer: an idle rank must not take a core for good. `greatest` bounds one sleep.
  template <class F>
  void WaitUntil(F done, std::chrono::microseconds greatest = std::chrono::microseconds(200)) {
    for (Clock::time_point start = Clock::now(), now = start; now - start < spin_; now = Clock::now()) {
      for (int i = 0; i < kSpins; ++i) {
        if (done()) return;
        if (!posted_.empty()) SendPosted();
      }
      if (while_waiting_) while_waiting_();
    }
    Sleep(done, greatest);
  }
  /// Returns the bytes that came, of a receive.
  size_t Wait(Transport::Request request) {
    size_t bytes = 0;
    WaitUntil([&] { return transport_->Done(&request, &bytes); });
    return bytes;
  }
  /// For an operation of few bytes on all ranks: it takes as long as the last of them.
  void WaitForRanks(Transport::Request request) {
    const PhaseScope phase(Phase::kWait);
    WaitForAll(request);
  }
  /// For any operation on all ranks.
  void WaitForAll(Transport::Request request) {
    CountCollective();
    Wait(request);
  }

  // Until another rank is there, the thread is in Phase::kWait; while bytes move, in the phase of the caller.

  /// Sends a message (of a framed WireWriter), in pieces. Returns when few pieces are under way; if
  /// `wait`, when none is.
  void Send(int to, int tag, std::string message, bool wait);
  /// A message of such a Send. One whose length is wrong ends the job, here and below.
  Bytes Receive(int from, int tag);
  /// From every rank to every other, at least one message each. All ranks send and receive at the same time.
  void ExchangeMessages(int tag, MessageTraffic* traffic);
  /// outgoing[r] bytes to rank r and incoming[r] from there, piece by piece, with all ranks at the same time.
  void MoveBytes(int tag, const std::vector<uint64_t>& outgoing, const std::vector<uint64_t>& incoming,
                 vm::ByteMover* mover);
  /// From `root` to all: `message` is read on `root` and set on the others.
  void BroadcastBytes(int root, std::string* message);
  /// The same, for a wait that may be long: for the next command.
  void AwaitBytes(int root, std::string* message);
  std::vector<Bytes> AllGatherBytes(const std::string& mine);
  /// Everybody's value, by rank.
  std::vector<uint64_t> AllGatherNumber(uint64_t mine);
  /// The same if all ranks know the sizes.
  std::vector<Bytes> AllGatherBytes(const std::string& mine, const std::vector<uint64_t>& sizes);
  int64_t Minimum(int64_t value);
  int64_t Sum(int64_t value);

  /// `f` is called from time to time in every wait.
  void SetWhileWaiting(std::function<void()> f) { while_waiting_ = std::move(f); }

  /// Tells the other ranks that this one ends and that it is known why: they need not say that it has died.
  void SayFarewell() noexcept;
  bool has_said_farewell() const { return has_said_farewell_; }
  /// Ends the job with a message: between two messages it is not known where the other ranks are, so there is nothing that
  /// all could agree on. From any thread.
  [[noreturn]] void Die(const Status& reason);
  /// kCorrupt: what rank `from` sent is no message, or none that was due; from < 0: one of the ranks.
  static Status Damaged(int from);

 private:
  static constexpr int kSpins = 50;  ///< between two looks at the clock
  static constexpr std::chrono::microseconds kSpin{50};
  /// Most sections on a GPU take less. To wake up from a sleep takes a core 50 us and more.
  static constexpr std::chrono::microseconds kSpinAlone{3000};
  /// What is longer has a damaged length.
  static constexpr uint64_t kGreatestSize = uint64_t{1} << 40;
  /// Memory for more is taken as the bytes come.
  static constexpr size_t kRoomAtOnce = size_t{1} << 30;
  /// The first piece of a message: as soon as it has gone, the receiver is there.
  static constexpr size_t kFirstPiece = size_t{64} << 10;
  /// Pieces under way from this rank: enough to keep a link busy, few enough to need little memory.
  static constexpr size_t kPiecesUnderWay = 4;
  /// Broadcasts and gathers count their bytes in an int.
  static constexpr size_t kGreatestCollective = size_t{256} << 20;

  struct Piece {
    Transport::Request request;
    std::shared_ptr<const std::string> message;  ///< kept until the piece is gone
    bool is_first = false;                       ///< of its message
  };
  /// A message whose pieces from `at` on have not been sent. They are while this rank waits for something else.
  struct Posted {
    int to, tag;
    std::shared_ptr<const std::string> message;
    size_t at;
  };

  /// Bytes of the piece at `at` of a message of `size` bytes, its frame included.
  static size_t PieceBytes(uint64_t size, uint64_t at) {
    return static_cast<size_t>(std::min<uint64_t>(at == 0 ? kFirstPiece : kGreatestMessage, size - at));
  }
  void SendPiece(int to, int tag, const std::shared_ptr<const std::string>& message, size_t at, bool synchronous);
  void CountBroadcast(int root, uint64_t bytes) const;
  void Sleep(const std::function<bool()>& done, std::chrono::microseconds greatest);
  void CheckSize(int from, uint64_t size) {
    if (size > kGreatestSize) Die(Damaged(from));
  }
  void BroadcastText(int root, uint64_t size, std::string* message);
  /// `room` makes room for that many bytes of the message, and returns where it begins.
  void BroadcastPieces(int root, size_t bytes, const std::function<char*(size_t)>& room);
  /// Room for the first `needed` bytes of the message, which is out->size long, or says so.
  static void MakeRoom(Bytes* out, size_t* room, size_t needed);
  void Retire(size_t most);
  void SendPosted();

  Transport* transport_;
  std::deque<Piece> under_way_;
  std::deque<Posted> posted_;
  std::function<void()> while_waiting_;
  std::chrono::microseconds spin_ = kSpin;
  std::atomic<bool> has_said_farewell_ = false;
};

}  // namespace tessera
