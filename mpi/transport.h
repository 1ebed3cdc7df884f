// What the cluster needs of MPI, and nothing else: ranks, messages of bytes, four collectives. None of the calls waits.
// Private to mpi/.
//
// The one implementation lives in a shared object of its own (transport_mpi.cc, tessera_mpi.so beside the program),
// loaded only under a launcher: a program on a machine without MPI starts, and starts without MPI's 20 ms of dynamic
// linking. So this interface is pure and passes only plain bytes between the two.
//
// An MPI error ends the job with MPI's own message (its default error handler): a rank that cannot talk cannot agree on
// anything. Start at: OpenTransport. Any thread, if any_thread(); otherwise the one that opened it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace tessera {

class Transport {
 public:
  /// A message or collective that is under way; -1: none, or it is done.
  using Request = int;

  /// Ends MPI; every rank must get there.
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual int local_rank() const = 0;  ///< among the ranks of this node
  virtual int local_ranks() const = 0;
  /// Whether other threads than the one that opened it may call it.
  virtual bool any_thread() const = 0;

  /// `data` must stay as it is until the request is done. A synchronous send is done when the receiver has begun to
  /// take it.
  virtual Request Send(int to, int tag, const void* data, size_t bytes, bool synchronous) = 0;
  virtual Request Receive(int from, int tag, void* data, size_t bytes) = 0;
  /// Whether a message has come, and its size. from < 0: from any rank.
  virtual bool Probe(int from, int tag, size_t* bytes, int* source) = 0;
  virtual Request Broadcast(int root, void* data, size_t bytes) = 0;
  virtual Request Minimum(int64_t* value) = 0;  ///< in place, on all ranks
  virtual Request Sum(int64_t* value) = 0;
  virtual Request AllGather(const void* mine, size_t bytes, void* all) = 0;
  /// `all` takes sizes[r] bytes of rank r at starts[r]. REQUIRES: together below 2^31.
  virtual Request AllGather(const void* mine, const int* sizes, const int* starts, void* all) = 0;

  /// Whether the request is done; if so, sets it to -1, and `received` to the bytes that came, of a receive. Also moves
  /// other messages on.
  virtual bool Done(Request* request, size_t* received = nullptr) = 0;
  /// Ends all processes of the job at once.
  virtual void Abort(int status) = 0;
};

/// The greatest size of one message, in bytes.
inline constexpr size_t kGreatestMessage = size_t{4} << 20;

/// nullptr without a launcher. Errors: kUnsupported, there is a launcher and tessera_mpi.so cannot be loaded.
Result<std::unique_ptr<Transport>> OpenTransport();

/// The name under which tessera_mpi.so has its one function: Transport* (void).
inline constexpr char kTransportFunction[] = "TesseraOpenMpiTransport";

}  // namespace tessera
