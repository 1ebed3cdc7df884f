// Who gets the GPU next (session/gpu_line.h).

#include "session/gpu_line.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tessera {
namespace {

using std::chrono::milliseconds;

class GpuLineTest : public testing::Test {
 protected:
  /// A turn of that kind takes so long.
  void Take(uint64_t kind, milliseconds time) {
    const Result<GpuLine::Turn> turn = line_.Wait(kind, no_);
    ASSERT_TRUE(turn.ok());
    std::this_thread::sleep_for(time);
  }
  /// Waits in a thread of its own, and writes its name once it has its turn.
  void Waits(uint64_t kind, const std::string& name) {
    std::atomic<bool> begun{false};
    threads_.emplace_back([&, kind, name] {
      begun = true;
      const Result<GpuLine::Turn> turn = line_.Wait(kind, no_);
      const std::lock_guard lock(mutex_);
      order_.push_back(name);
    });
    while (!begun) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(10));  // so that it stands in the line
  }
  std::vector<std::string> Order() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return std::exchange(order_, {});
  }

  GpuLine line_;
  const std::atomic<bool> no_{false};
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::vector<std::string> order_;
};

TEST_F(GpuLineTest, ShortOnesDoNotWaitForLongOnes) {
  Take(1, milliseconds(200));
  Take(2, milliseconds(1));
  GpuLine::Turn mine = std::move(*line_.Wait(3, no_));
  Waits(1, "long");
  Waits(2, "short");
  Waits(1, "long, later");
  Waits(2, "short, later");
  mine.reset();
  EXPECT_EQ(Order(), (std::vector<std::string>{"short", "short, later", "long", "long, later"}));
}

TEST_F(GpuLineTest, NoneIsPassedOverForEver) {
  Take(1, milliseconds(5));
  Take(2, milliseconds(0));
  GpuLine::Turn mine = std::move(*line_.Wait(3, no_));
  Waits(1, "long");
  std::this_thread::sleep_for(milliseconds(400));
  Waits(2, "short");
  mine.reset();
  EXPECT_EQ(Order(), (std::vector<std::string>{"long", "short"}));
}

TEST_F(GpuLineTest, AThreadMayHaveSeveralTurns) {
  {
    const Result<GpuLine::Turn> first = line_.Wait(1, no_);
    { const Result<GpuLine::Turn> second = line_.Wait(2, no_); }
    Waits(1, "other");
    std::this_thread::sleep_for(milliseconds(30));
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(order_.empty());
  }
  EXPECT_EQ(Order().size(), 1u);
}

TEST_F(GpuLineTest, WaitingEndsWithACancel) {
  std::atomic<bool> cancel{false};
  GpuLine::Turn mine = std::move(*line_.Wait(1, no_));
  std::thread waits([&] { EXPECT_EQ(line_.Wait(1, cancel).status().code(), ErrorCode::kCancelled); });
  std::this_thread::sleep_for(milliseconds(10));
  cancel = true;
  waits.join();
  Waits(1, "after it");
  mine.reset();
  EXPECT_EQ(Order().size(), 1u);
}

TEST_F(GpuLineTest, ManyAtOnceAreAlone) {
  std::atomic<int> inside{0}, most{0}, turns{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 300; ++i) {
        const Result<GpuLine::Turn> turn = line_.Wait(t * i % 7, no_);
        most = std::max(most.load(), ++inside);
        ++turns;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(turns, 2400);
}

}  // namespace
}  // namespace tessera
