// The Transport interface over MPI. The only file that knows MPI; becomes tessera_mpi.so.
#include <mpi.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "mpi/transport.h"

namespace tessera {
namespace {

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int provided = 0;
    // One thread at a time calls MPI: mutex_ sees to that. It costs 20 ns a call, and MPI_THREAD_MULTIPLE more.
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    any_thread_ = provided >= MPI_THREAD_SERIALIZED;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank_);
    MPI_Comm_size(node, &local_ranks_);
    MPI_Comm_free(&node);
  }
  ~MpiTransport() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  int local_rank() const override { return local_rank_; }
  int local_ranks() const override { return local_ranks_; }
  bool any_thread() const override { return any_thread_; }

  Request Send(int to, int tag, const void* data, size_t bytes, bool synchronous) override {
    return Start([&](MPI_Request* r) {
      if (synchronous) {
        MPI_Issend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
      } else {
        MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
      }
    });
  }
  Request Receive(int from, int tag, void* data, size_t bytes) override {
    return Start(
        [&](MPI_Request* r) { MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD, r); });
  }
  bool Probe(int from, int tag, size_t* bytes, int* source) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    int there = 0, count = 0;
    MPI_Status status;
    MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, tag, MPI_COMM_WORLD, &there, &status);
    if (there == 0) return false;
    MPI_Get_count(&status, MPI_BYTE, &count);
    *bytes = count < 0 ? SIZE_MAX : static_cast<size_t>(count);
    *source = status.MPI_SOURCE;
    return true;
  }
  Request Broadcast(int root, void* data, size_t bytes) override {
    return Start([&](MPI_Request* r) { MPI_Ibcast(data, static_cast<int>(bytes), MPI_BYTE, root, MPI_COMM_WORLD, r); });
  }
  Request Minimum(int64_t* value) override {
    return Start(
        [&](MPI_Request* r) { MPI_Iallreduce(MPI_IN_PLACE, value, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD, r); });
  }
  Request Sum(int64_t* value) override {
    return Start(
        [&](MPI_Request* r) { MPI_Iallreduce(MPI_IN_PLACE, value, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, r); });
  }
  Request AllGather(const void* mine, size_t bytes, void* all) override {
    const int n = static_cast<int>(bytes);
    return Start([&](MPI_Request* r) { MPI_Iallgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, MPI_COMM_WORLD, r); });
  }
  Request AllGather(const void* mine, const int* sizes, const int* starts, void* all) override {
    return Start([&](MPI_Request* r) {
      MPI_Iallgatherv(mine, sizes[rank_], MPI_BYTE, all, sizes, starts, MPI_BYTE, MPI_COMM_WORLD, r);
    });
  }

  bool Done(Request* request, size_t* received) override {
    if (*request < 0) return true;
    const std::lock_guard<std::mutex> lock(mutex_);
    int done = 0;
    MPI_Status status;
    MPI_Test(&requests_[static_cast<size_t>(*request)], &done, &status);
    if (done == 0) return false;
    if (received != nullptr) {
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      *received = count < 0 ? SIZE_MAX : static_cast<size_t>(count);
    }
    free_.push_back(*request);
    *request = -1;
    return true;
  }
  void Abort(int status) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    MPI_Abort(MPI_COMM_WORLD, status);
  }

 private:
  template <class F>
  Request Start(F f) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
      free_.push_back(static_cast<Request>(requests_.size()));
      requests_.push_back(MPI_REQUEST_NULL);
    }
    const Request r = free_.back();
    free_.pop_back();
    f(&requests_[static_cast<size_t>(r)]);
    return r;
  }

  int rank_ = 0, ranks_ = 1, local_rank_ = 0, local_ranks_ = 1;
  bool any_thread_ = false;
  std::mutex mutex_;
  std::vector<MPI_Request> requests_;
  std::vector<Request> free_;
};

}  // namespace
}  // namespace tessera

extern "C" __attribute__((visibility("default"))) tessera::Transport* TesseraOpenMpiTransport() {
  return new tessera::MpiTransport();
}
