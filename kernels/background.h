// A thread that does one thing at a time beside its owner. Private to kernels/.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace tessera::kernels {

class Background {
 public:
  Background() = default;
  ~Background() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Calls f there; the first call starts the thread. REQUIRES: what was started before has been waited for; f does not
  /// throw.
  void Start(std::function<void()> f) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      job_ = std::move(f);
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
    changed_.notify_all();
  }
  /// Returns when it is done; at once if nothing was started.
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return job_ == nullptr; });
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || job_ != nullptr; });
      if (stop_) return;
      lock.unlock();
      job_();
      lock.lock();
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;  ///< nullptr: none
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tessera::kernels
