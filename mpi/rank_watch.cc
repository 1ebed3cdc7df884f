#include "mpi/rank_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace tessera {
namespace {

/// Between two signs of life. A timeout is at least four of these (session/settings.def).
constexpr auto kInterval = std::chrono::milliseconds(500);
/// After a signal from the launcher, which goes to all ranks, the master says when to leave. If a signal was meant for
/// one rank alone none does.
constexpr auto kGraceAfterSignal = std::chrono::milliseconds(1500);
/// If the master is silent, rank 1 ends the job; the others wait this much longer, because rank 1 may be silent, too.
constexpr auto kSecondVoice = std::chrono::milliseconds(2000);

}  // namespace

RankWatch::RankWatch(Messenger* messenger, Milliseconds timeout, const std::atomic<int>* signal, std::string node,
                     const std::vector<NeighbourRank>& neighbours)
    : messenger_(*messenger),
      transport_(messenger->transport()),
      timeout_(timeout.count()),
      signal_(signal),
      signs_(messenger->rank() == 0 ? static_cast<size_t>(messenger->ranks()) : 1),
      node_(std::move(node)) {
  if (!transport_.any_thread() || messenger->ranks() < 2) return;
  end_ = eventfd(0, EFD_CLOEXEC);
  if (end_ < 0) messenger_.Die({ErrorCode::kResource, std::string("no more files can be open: ") + strerror(errno)});
  for (const NeighbourRank& n : neighbours) {
    // (Kernels before 5.3 have no such descriptors; then the launcher alone says who has died.)
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, n.process, 0));
    if (descriptor >= 0) neighbours_.push_back({n.rank, descriptor, false});
  }
  // Signals are for the thread that waits for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const Status started = thread_.Start([this] { return Work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started.ok()) messenger_.Die(started);
}

RankWatch::~RankWatch() {
  if (end_ >= 0) (void)eventfd_write(end_, 1);
  (void)thread_.Join();
  for (const Neighbour& n : neighbours_) close(n.descriptor);
  if (end_ >= 0) close(end_);
}

void RankWatch::Wait(bool* ends) {
  std::vector<pollfd> waited = {{end_, POLLIN, 0}};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Neighbour& n : neighbours_) {
      if (!n.is_gone) waited.push_back({n.descriptor, POLLIN, 0});
    }
  }
  (void)poll(waited.data(), waited.size(), static_cast<int>(kInterval.count()));
  *ends = (waited[0].revents & POLLIN) != 0;
}

bool RankWatch::HasSaidFarewell(int rank) {
  size_t bytes = 0;
  int source = 0;
  // (A message that is here may be found by the second look only: the first one takes it in.)
  for (int i = 0; i < 3; ++i) {
    if (transport_.Probe(rank, kTagFarewell, &bytes, &source)) return true;
  }
  return false;
}

/// The first rank of the node that is there says it. What the launcher says differs from one to the other, and names no
/// node.
void RankWatch::SayWhoDied() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<int> died;
  for (Neighbour& n : neighbours_) {
    pollfd gone = {n.descriptor, POLLIN, 0};
    if (n.is_gone || poll(&gone, 1, 0) != 1) continue;
    n.is_gone = true;
    // After a signal all ranks end, each in its own time.
    if (!is_told_to_end_ && !messenger_.has_said_farewell() && !HasSaidFarewell(n.rank)) died.push_back(n.rank);
  }
  const auto is_before = [&](const Neighbour& n) { return !n.is_gone && n.rank < messenger_.rank(); };
  if (std::ranges::any_of(neighbours_, is_before)) return;
  for (const int rank : died) {
    fprintf(stderr, "tessera: rank %d: rank %d on %s has died: the query is lost, the database is whole\n",
            messenger_.rank(), rank, node_.c_str());
  }
}

Status RankWatch::Work() {
  auto last = Clock::now();
  Milliseconds since_signal{0};
  for (;;) {
    bool ends = false;
    Wait(&ends);
    if (ends) return Status::Ok();
    SayWhoDied();
    const auto now = Clock::now();
    // While all ranks were stopped together, as batch systems do it, this one did not listen either.
    const auto passed = std::min(std::chrono::duration_cast<Milliseconds>(now - last), 2 * kInterval);
    last = now;
    SayAlive();
    Listen(passed);
    if (const int signal = signal_ == nullptr ? 0 : signal_->load(); signal != 0) {
      is_told_to_end_ = true;
      if (since_signal >= kGraceAfterSignal)
        messenger_.Die({ErrorCode::kCancelled, std::string("ended by a signal: ") + strsignal(signal)});
      since_signal += passed;
    }
  }
}

void RankWatch::SayAlive() {
  for (size_t r = 0; r < signs_.size(); ++r) {
    if (static_cast<int>(r) == messenger_.rank()) continue;
    // What a stopped rank has not taken yet is enough.
    if (transport_.Done(&signs_[r].request))
      signs_[r].request = transport_.Send(static_cast<int>(r), kTagAlive, nullptr, 0, false);
  }
}

void RankWatch::Listen(Milliseconds passed) {
  for (size_t r = 0; r < signs_.size(); ++r) {
    if (static_cast<int>(r) != messenger_.rank()) signs_[r].silent += passed;
  }
  size_t bytes = 0;
  int source = 0;
  while (transport_.Probe(-1, kTagAlive, &bytes, &source)) {
    if (bytes != 0 || source < 0 || static_cast<size_t>(source) >= signs_.size())
      messenger_.Die(Messenger::Damaged(source));
    Transport::Request sign = transport_.Receive(source, kTagAlive, nullptr, 0);
    while (!transport_.Done(&sign)) std::this_thread::yield();  // it is here already
    signs_[static_cast<size_t>(source)].silent = Milliseconds{0};
  }
  const auto timeout = Milliseconds(timeout_.load()) + (messenger_.rank() > 1 ? kSecondVoice : Milliseconds{0});
  for (size_t r = 0; r < signs_.size(); ++r) {
    if (signs_[r].silent <= timeout) continue;
    messenger_.Die({ErrorCode::kResource,
                    "rank " + std::to_string(r) + " has given no sign of life for " +
                        std::to_string(signs_[r].silent.count() / 1000) + " s",
                    "Its process is stopped, or its node cannot be reached. SET rank_timeout waits longer."});
  }
}

}  // namespace tessera
