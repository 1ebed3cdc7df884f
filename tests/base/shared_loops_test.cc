// Tests of loops that idle threads help with.
#include "base/shared_loops.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tessera {
namespace {

TEST(SharedLoops, EveryCallIsMadeOnceWithoutHelpers) {
  SharedLoops loops;
  std::vector<int> calls(100);
  EXPECT_TRUE(loops
                  .Run(calls.size(),
                       [&](size_t i) {
                         ++calls[i];
                         return Status::Ok();
                       })
                  .ok());
  EXPECT_EQ(calls, std::vector<int>(100, 1));
  EXPECT_TRUE(loops.Run(0, [](size_t) { return SqlError("not called"); }).ok());
}

TEST(SharedLoops, WaitingThreadsTakePart) {
  SharedLoops loops;
  std::atomic<bool> done{false};
  std::vector<std::thread> helpers;
  for (int t = 0; t < 3; ++t) helpers.emplace_back([&] { loops.HelpUntil([&] { return done.load(); }); });
  // Four calls that wait for each other end only if four threads make them.
  std::latch all(4);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const Status status = loops.Run(4, [&](size_t) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    all.arrive_and_wait();
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(threads.size(), 4u);
  done = true;
  loops.Wake();
  for (std::thread& t : helpers) t.join();
}

TEST(SharedLoops, SeveralLoopsAtATime) {
  SharedLoops loops;
  constexpr size_t kThreads = 4, kCalls = 1000;
  std::atomic<size_t> calls{0}, running{kThreads};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int again = 0; again < 10; ++again) {
        const Status status = loops.Run(kCalls, [&](size_t) {
          ++calls;
          return Status::Ok();
        });
        EXPECT_TRUE(status.ok());
      }
      if (--running == 0) loops.Wake();
      loops.HelpUntil([&] { return running == 0; });
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(calls, kThreads * 10 * kCalls);
}

TEST(SharedLoops, TheErrorOfTheLeastCallCounts) {
  SharedLoops loops;
  size_t calls = 0;
  const Status status = loops.Run(10, [&](size_t i) -> Status {
    ++calls;
    if (i == 7) return SqlError("seven");
    if (i == 3) throw std::runtime_error("three");
    return Status::Ok();
  });
  EXPECT_EQ(status.code(), ErrorCode::kInternal);
  EXPECT_NE(status.message().find("three"), std::string::npos) << status.message();
  EXPECT_EQ(calls, 10u);
}

}  // namespace
}  // namespace tessera
