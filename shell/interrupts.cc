#include "shell/interrupts.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace tessera {
namespace {

std::atomic<ShellSession*> watched{nullptr};
std::atomic<int> pending{0};
std::atomic<int64_t> ends_since{0};  // when the first signal came that ends the process, in milliseconds; 0: none has
std::atomic<bool> has_prompt{false};
int wake[2] = {-1, -1};

/// Of signals that end the process, this long after the first.
constexpr int64_t kPatience = 1000;

int64_t Milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000 + 1;
}

void Handle(int signal) {
  const int error = errno;
  if (has_prompt && signal == SIGINT) {
    int none = 0;
    pending.compare_exchange_strong(none, signal);
  } else {
    const int64_t now = Milliseconds();
    int64_t first = 0;
    if (!ends_since.compare_exchange_strong(first, now) && now - first > kPatience) {
      std::signal(signal, SIG_DFL);
      raise(signal);
    }
    pending = signal;
  }
  if (ShellSession* session = watched.load()) session->Cancel();
  const char byte = 0;
  if (wake[1] >= 0 && write(wake[1], &byte, 1) < 0) {
    // If the pipe is full it is readable, which is enough.
  }
  errno = error;
}

}  // namespace

void WatchInterrupts(ShellSession* session, bool interactive) {
  watched = session;
  has_prompt = interactive;
  if (wake[0] < 0 && pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) wake[0] = wake[1] = -1;
  struct sigaction action {};
  action.sa_handler = Handle;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

void StopWatchingInterrupts() { watched = nullptr; }

int PendingInterrupt() { return pending; }

void TakeInterrupt() {
  char bytes[16];
  while (wake[0] >= 0 && read(wake[0], bytes, sizeof bytes) > 0) {
  }
  int ctrl_c = SIGINT;
  pending.compare_exchange_strong(ctrl_c, 0);
}

int InterruptDescriptor() { return wake[0]; }

void DieOf(int signal) {
  std::signal(signal, SIG_DFL);
  raise(signal);
  std::_Exit(128 + signal);  // the signal is blocked: end anyway
}

}  // namespace tessera
