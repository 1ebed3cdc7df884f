#include "mpi/rank_watch.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "base/clock.h"

namespace tessera {
namespace {

/// Between two signs of life. A timeout is at least four of these (session/settings.def).
constexpr auto kInterval = std::chrono::milliseconds(500);
/// After a signal from the launcher, which goes to all ranks, the master says when to leave. If a signal was meant for
/// one rank alone nobody does.
constexpr auto kGraceAfterSignal = std::chrono::milliseconds(1500);
/// If the master is silent, rank 1 ends the job; the others wait this much longer, because rank 1 may be silent, too.
constexpr auto kSecondVoice = std::chrono::milliseconds(2000);

}  // namespace

RankWatch::RankWatch(Messenger* messenger, Milliseconds timeout, const std::atomic<int>* signal)
    : messenger_(*messenger),
      transport_(messenger->transport()),
      timeout_(timeout.count()),
      signal_(signal),
      signs_(messenger->rank() == 0 ? static_cast<size_t>(messenger->ranks()) : 1) {
  if (!transport_.any_thread() || messenger->ranks() < 2) return;
  // Signals are for the thread that waits for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const Status started = thread_.Start([this] { return Work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started.ok()) messenger_.Die(started);
}

RankWatch::~RankWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  (void)thread_.Join();
}

Status RankWatch::Work() {
  auto last = Clock::now();
  Milliseconds since_signal{0};
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, kInterval, [this] { return ends_; })) {
    const auto now = Clock::now();
    // While all ranks were stopped together, as batch systems do it, this one did not listen either.
    const auto passed = std::min(std::chrono::duration_cast<Milliseconds>(now - last), 2 * kInterval);
    last = now;
    SayAlive();
    Listen(passed);
    if (const int signal = signal_ == nullptr ? 0 : signal_->load(); signal != 0) {
      if (since_signal >= kGraceAfterSignal)
        messenger_.Die({ErrorCode::kCancelled, std::string("ended by a signal: ") + strsignal(signal)});
      since_signal += passed;
    }
  }
  return Status::Ok();
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
