#include "capi/interrupt_signal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "session/session.h"

namespace tessera {
namespace {

// Touched by the handler, which may run on any thread.
std::atomic<Session*> target{nullptr};
std::atomic<int> handlers_under_way{0};
struct sigaction before;

void Handle(int signal, siginfo_t* info, void* context) {
  ++handlers_under_way;
  if (Session* const session = target.load(); session != nullptr) session->Cancel();
  --handlers_under_way;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
}

bool IsFirstThread() { return syscall(SYS_gettid) == getpid(); }

}  // namespace

InterruptSignal::InterruptSignal(Session* session) {
  if (!IsFirstThread() || target.load() != nullptr) return;
  if (sigaction(SIGINT, nullptr, &before) != 0) return;
  if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_IGN) return;
  target = session;
  struct sigaction ours = {};
  ours.sa_sigaction = Handle;
  ours.sa_flags = SA_SIGINFO | (before.sa_flags & SA_ONSTACK);
  sigemptyset(&ours.sa_mask);
  installed_ = sigaction(SIGINT, &ours, nullptr) == 0;
  if (!installed_) target = nullptr;
}

InterruptSignal::~InterruptSignal() {
  if (!installed_) return;
  (void)sigaction(SIGINT, &before, nullptr);
  target = nullptr;
  // One that began on another thread has the session still. It takes some instructions.
  while (handlers_under_way.load() != 0) std::this_thread::yield();
}

}  // namespace tessera
