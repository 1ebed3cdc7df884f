#include "tests/mpi/thread_ranks.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tessera::test {

class ThreadRanks::Side final : public Transport {
 public:
  Side(ThreadRanks* all, int rank) : all_(*all), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return all_.ranks_; }
  int local_rank() const override { return rank_; }
  int local_ranks() const override { return all_.ranks_; }
  bool any_thread() const override { return false; }

  Request Send(int to, int tag, const void* data, size_t bytes, bool synchronous) override {
    const std::lock_guard<std::mutex> lock(all_.mutex_);
    auto taken = std::make_shared<bool>(!synchronous);
    all_.inbox_[static_cast<size_t>(to)].push_back({rank_, tag, all_.Changed(data, bytes), taken});
    return Add([taken](size_t*) { return *taken; });
  }
  Request Receive(int from, int tag, void* data, size_t bytes) override {
    const std::lock_guard<std::mutex> lock(all_.mutex_);
    auto receive = std::make_shared<Posted>(Posted{from, tag, data, bytes, SIZE_MAX});
    posted_.push_back(receive);
    return Add([this, receive](size_t* received) {
      Match();
      if (receive->received == SIZE_MAX) return false;
      if (received != nullptr) *received = receive->received;
      return true;
    });
  }
  bool Probe(int from, int tag, size_t* bytes, int* source) override {
    const std::lock_guard<std::mutex> lock(all_.mutex_);
    for (const Message& m : Inbox()) {
      if ((from >= 0 && m.from != from) || m.tag != tag) continue;
      *bytes = m.bytes.size();
      *source = m.from;
      return true;
    }
    return false;
  }
  Request Broadcast(int root, void* data, size_t bytes) override {
    const auto r = static_cast<size_t>(root);
    return Join(root == rank_ ? data : nullptr, bytes, [this, r, data, bytes](const Collective& c) {
      if (c.here[r] == 0) return false;
      if (static_cast<int>(r) != rank_) Copy(data, bytes, c.of[r]);
      return true;
    });
  }
  Request Minimum(int64_t* value) override {
    return Reduce(value, [](int64_t a, int64_t b) { return std::min(a, b); });
  }
  Request Sum(int64_t* value) override {
    return Reduce(value, [](int64_t a, int64_t b) {
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    });
  }
  Request AllGather(const void* mine, size_t bytes, void* all) override {
    return Join(mine, bytes, [this, bytes, all](const Collective& c) {
      if (!AllHere(c)) return false;
      for (size_t r = 0; r < c.of.size(); ++r) Copy(static_cast<char*>(all) + r * bytes, bytes, c.of[r]);
      return true;
    });
  }
  Request AllGather(const void* mine, const int* sizes, const int* starts, void* all) override {
    const auto n = static_cast<size_t>(all_.ranks_);
    const std::vector<int> size(sizes, sizes + n), start(starts, starts + n);
    return Join(mine, static_cast<size_t>(size[static_cast<size_t>(rank_)]),
                [this, size, start, all](const Collective& c) {
                  if (!AllHere(c)) return false;
                  for (size_t r = 0; r < c.of.size(); ++r)
                    Copy(static_cast<char*>(all) + start[r], static_cast<size_t>(size[r]), c.of[r]);
                  return true;
                });
  }

  bool Done(Request* request, size_t* received) override {
    if (*request < 0) return true;
    const std::lock_guard<std::mutex> lock(all_.mutex_);
    if (!requests_[static_cast<size_t>(*request)](received)) return false;
    requests_[static_cast<size_t>(*request)] = nullptr;
    *request = -1;
    ++all_.steps_;
    return true;
  }
  void Abort(int status) override { all_.abort_(status); }

 private:
  struct Posted {
    int from, tag;
    void* data;
    size_t bytes, received;
  };
  using Test = std::function<bool(size_t*)>;

  std::deque<Message>& Inbox() { return all_.inbox_[static_cast<size_t>(rank_)]; }
  Request Add(Test done) {
    ++all_.steps_;
    requests_.push_back(std::move(done));
    return static_cast<Request>(requests_.size() - 1);
  }
  /// Gives messages to the receives that wait for them, in the order of both.
  void Match() {
    for (auto p = posted_.begin(); p != posted_.end();) {
      Posted& want = **p;
      const auto m = std::find_if(Inbox().begin(), Inbox().end(), [&](const Message& message) {
        return (want.from < 0 || message.from == want.from) && message.tag == want.tag;
      });
      if (m == Inbox().end()) {
        ++p;
        continue;
      }
      if (m->bytes.size() > want.bytes) all_.abort_(1);  // as MPI does
      memcpy(want.data, m->bytes.data(), m->bytes.size());
      want.received = m->bytes.size();
      *m->taken = true;
      Inbox().erase(m);
      p = posted_.erase(p);
    }
  }
  template <class F>
  Request Join(const void* mine, size_t bytes, F done) {
    const std::lock_guard<std::mutex> lock(all_.mutex_);
    const size_t number = next_++;
    while (all_.collectives_.size() <= number) {
      Collective& c = all_.collectives_.emplace_back();
      c.of.resize(static_cast<size_t>(all_.ranks_));
      c.here.resize(static_cast<size_t>(all_.ranks_));
    }
    Collective& c = all_.collectives_[number];
    if (mine != nullptr) c.of[static_cast<size_t>(rank_)] = all_.Changed(mine, bytes);
    c.here[static_cast<size_t>(rank_)] = 1;
    return Add([this, number, done](size_t*) { return done(all_.collectives_[number]); });
  }
  template <class F>
  Request Reduce(int64_t* value, F f) {
    return Join(value, sizeof *value, [this, value, f](const Collective& c) {
      if (!AllHere(c)) return false;
      Copy(value, sizeof *value, c.of[0]);
      for (size_t r = 1; r < c.of.size(); ++r) {
        int64_t other = 0;
        Copy(&other, sizeof other, c.of[r]);
        *value = f(*value, other);
      }
      return true;
    });
  }
  static bool AllHere(const Collective& c) {
    return std::all_of(c.here.begin(), c.here.end(), [](char here) { return here != 0; });
  }
  /// MPI refuses what is too long; what is too short leaves the rest as it was.
  void Copy(void* to, size_t bytes, const std::string& from) {
    if (from.size() > bytes) all_.abort_(1);
    if (!from.empty()) memcpy(to, from.data(), from.size());
  }

  ThreadRanks& all_;
  const int rank_;
  size_t next_ = 0;  ///< collective
  std::deque<std::shared_ptr<Posted>> posted_;
  std::vector<Test> requests_;
};

ThreadRanks::ThreadRanks(int ranks, std::function<void(std::string*)> change, std::function<void(int)> abort)
    : ranks_(ranks), change_(std::move(change)), abort_(std::move(abort)), inbox_(static_cast<size_t>(ranks)) {}
ThreadRanks::~ThreadRanks() = default;

std::unique_ptr<Transport> ThreadRanks::Open(int rank) { return std::make_unique<Side>(this, rank); }

std::string ThreadRanks::Changed(const void* data, size_t bytes) {
  std::string out(static_cast<const char*>(data), bytes);
  if (change_) change_(&out);
  return out;
}

}  // namespace tessera::test
