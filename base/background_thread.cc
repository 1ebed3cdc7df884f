#include "base/background_thread.h"

#include <atomic>
#include <cerrno>
#include <system_error>

#include "base/exception_status.h"

namespace tessera {
namespace {

std::atomic<bool (*)()> fault{nullptr};

Status Refused(const std::system_error& error) {
  return {ErrorKind::kLimitExceeded, "cannot start a thread: " + error.code().message(),
          "Ask for fewer threads (--threads, SET threads), or allow the process more (ulimit -u, ulimit -v)."};
}

}  // namespace

void SetThreadFault(bool (*refuse)()) { fault = refuse; }

void AskThreadFault() {
  bool (*const refuse)() = fault.load(std::memory_order_relaxed);
  if (refuse != nullptr && refuse()) throw std::system_error(EAGAIN, std::generic_category());
}

Status ThreadRefused() noexcept {
  try {
    try {
      throw;
    } catch (const std::system_error& error) {
      return Refused(error);
    }
  } catch (...) {
    return StatusOfException();
  }
}

Status BackgroundThread::Start(std::function<Status()> f) {
  status_ = {};
  return StartThread(&thread_, [this, f = std::move(f)] {
    try {
      status_ = f();
    } catch (...) {
      status_ = StatusOfException();
    }
    FlushMemoryCount();
  });
}

Status BackgroundThread::Join() {
  if (thread_.joinable()) thread_.join();
  return status_;
}

}  // namespace tessera
