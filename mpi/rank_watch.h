// Says from time to time that this rank is alive, and ends the job when another one has said nothing for too long: a
// process that is stopped, or a node that is gone without a word. Private to mpi/.
//
// The master watches all ranks, the others watch the master. A thread of its own does it, so a rank is alive however
// long its work takes between two messages: a few bytes twice a second, whatever the ranks do.
//
// Start at: RankWatch. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/background_thread.h"
#include "mpi/messenger.h"

namespace tessera {

class RankWatch {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// Starts to say so and to watch, if the transport takes calls from any thread. If there is no thread, ends the job.
  /// `signal`: once it is not 0, the job ends after a while if this object is still there; may be nullptr.
  RankWatch(Messenger* messenger, Milliseconds timeout, const std::atomic<int>* signal);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// How long a rank may give no sign of life.
  void SetTimeout(Milliseconds timeout) { timeout_ = timeout.count(); }

 private:
  /// A message that this rank is alive, to one rank.
  struct Sign {
    Transport::Request request = -1;
    Milliseconds silent{0};  ///< since that rank's last one
  };

  Status Work();
  void SayAlive();
  /// Adds `passed` to the silence of ranks from which nothing came.
  void Listen(Milliseconds passed);

  Messenger& messenger_;
  Transport& transport_;
  std::atomic<int64_t> timeout_;
  const std::atomic<int>* const signal_;
  std::vector<Sign> signs_;  ///< by rank; of this one, and of those that it does not watch, unused
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  BackgroundThread thread_;
};

}  // namespace tessera
