// Ranks that are threads of this process: a Transport over queues in memory, with MPI's rules about order. What goes
// from rank to rank can be changed on the way.
//
// Start at: ThreadRanks::Open. Each transport is used by one thread; any number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mpi/transport.h"

namespace tessera::test {

class ThreadRanks {
 public:
  /// `change` gets what a rank sends before the others do, one message or contribution to a collective after the other;
  /// may be empty. `abort` is called for Transport::Abort and must not return.
  ThreadRanks(int ranks, std::function<void(std::string*)> change, std::function<void(int)> abort);
  ~ThreadRanks();

  /// Rank `rank`'s side, valid as long as this object.
  std::unique_ptr<Transport> Open(int rank);
  /// Grows with everything that is sent or received: if it does not, all wait for each other, or work.
  uint64_t steps() const { return steps_; }

 private:
  class Side;
  struct Message {
    int from, tag;
    std::string bytes;
    std::shared_ptr<bool> taken;
  };
  /// One collective operation, in the order in which each rank comes to it.
  struct Collective {
    std::vector<std::string> of;  ///< by rank: what it brings
    std::vector<char> here;       ///< by rank: whether it has come
  };

  std::string Changed(const void* data, size_t bytes);

  const int ranks_;
  const std::function<void(std::string*)> change_;
  const std::function<void(int)> abort_;
  std::atomic<uint64_t> steps_{0};
  std::mutex mutex_;
  std::vector<std::deque<Message>> inbox_;  ///< by rank
  std::deque<Collective> collectives_;
};

}  // namespace tessera::test
