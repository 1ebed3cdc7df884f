#include "shell/interrupts.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace tessera {
namespace {

std::atomic<Session*> watched{nullptr};
std::atomic<int> pending{0};
std::atomic<bool> has_prompt{false};
int wake[2] = {-1, -1};

void Handle(int signal) {
  const int error = errno;
  // A second signal ends the process, unless it is Ctrl-C and there is a prompt to return to.
  if (pending.exchange(signal) != 0 && !(has_prompt && signal == SIGINT)) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
  if (Session* session = watched.load()) session->Cancel();
  const char byte = 0;
  if (wake[1] >= 0 && write(wake[1], &byte, 1) < 0) {
    // If the pipe is full it is readable, which is enough.
  }
  errno = error;
}

}  // namespace

void WatchInterrupts(Session* session, bool interactive) {
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

int TakeInterrupt() {
  char bytes[16];
  while (wake[0] >= 0 && read(wake[0], bytes, sizeof bytes) > 0) {
  }
  return pending.exchange(0);
}

int InterruptDescriptor() { return wake[0]; }

void DieOf(int signal) {
  std::signal(signal, SIG_DFL);
  raise(signal);
  std::_Exit(128 + signal);  // the signal is blocked: end anyway
}

}  // namespace tessera
