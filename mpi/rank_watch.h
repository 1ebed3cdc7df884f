// Says from time to time that this rank is alive, and ends the job when another one has said nothing for too long: a
// process that is stopped, or a node that is gone without a word. Of the ranks on its own node it also sees when their
// processes are gone, which ends the job by the launcher, and says so. Private to mpi/.
//
// The master watches all ranks, the others watch the master. A thread of its own does it, so a rank is alive however
// long its work takes between two messages: a few bytes twice a second, whatever the ranks do.
//
// Start at: RankWatch. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/background_thread.h"
#include "mpi/messenger.h"

namespace tessera {

/// A rank on the same node.
struct NeighbourRank {
  int rank;
  int process;  ///< its number
};

class RankWatch {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// Starts to say so and to watch, if the transport takes calls from any thread. If there is no thread, ends the job.
  /// `signal`: once it is not 0, the job ends after a while if this object is still there; may be nullptr. `node`: the
  /// name of this one.
  RankWatch(Messenger* messenger, Milliseconds timeout, const std::atomic<int>* signal, std::string node,
            const std::vector<NeighbourRank>& neighbours);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// Names the ranks of this node whose processes are gone, once. For a rank that is about to leave; otherwise the thread
  /// of this object does it.
  void SayWhoDied();
  /// How long a rank may give no sign of life.
  void SetTimeout(Milliseconds timeout) { timeout_ = timeout.count(); }

 private:
  /// A message that this rank is alive, to one rank.
  struct Sign {
    Transport::Request request = -1;
    Milliseconds silent{0};  ///< since that rank's last one
  };

  /// The process of a rank on this node, as a descriptor that can be read once it is gone.
  struct Neighbour {
    int rank;
    int descriptor;
    bool is_gone;
  };

  Status Work();
  /// Waits for the time between two signs of life, for the end, or until a neighbour's process is gone.
  void Wait(bool* ends);
  bool HasSaidFarewell(int rank);
  void SayAlive();
  /// Adds `passed` to the silence of ranks from which nothing came.
  void Listen(Milliseconds passed);

  Messenger& messenger_;
  Transport& transport_;
  std::atomic<int64_t> timeout_;
  const std::atomic<int>* const signal_;
  std::vector<Sign> signs_;  ///< by rank; of this one, and of those that it does not watch, unused
  const std::string node_;
  std::mutex mutex_;                          ///< guards neighbours_
  std::vector<Neighbour> neighbours_;         ///< by rank
  std::atomic<bool> is_told_to_end_ = false;  ///< by a signal, before the neighbours were last looked at
  int end_ = -1;                              ///< an eventfd that can be read once this object is about to go
  BackgroundThread thread_;
};

}  // namespace tessera
