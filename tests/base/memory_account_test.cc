// Accounts of memory with a limit of their own, which threads of a pool count for, too.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "base/temporary_memory.h"
#include "base/thread_pool.h"

namespace tessera {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;
/// What a block takes beside its bytes: up to a huge page, to begin at one, and what a thread has not told yet.
constexpr size_t kBeside = 3 * kMegabyte;

class MemoryAccountTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!MemoryIsCounted()) GTEST_SKIP() << "a sanitizer counts nothing";
    SetTemporaryLimit(0);
  }
  void TearDown() override { SetTemporaryLimit(uint64_t{1} << 40); }
};

std::vector<char> Block(size_t bytes) { return std::vector<char>(bytes, 'x'); }

TEST_F(MemoryAccountTest, CountsWhatIsMadeInItsScopeAlone) {
  MemoryAccount account;
  account.Begin(UINT64_MAX);
  const std::vector<char> before = Block(8 * kMegabyte);
  {
    const MemoryAccountScope scope(&account);
    const std::vector<char> inside = Block(8 * kMegabyte);
    FlushMemoryCount();
    const int64_t used = account.used();
    EXPECT_GE(used, static_cast<int64_t>(8 * kMegabyte));
    EXPECT_LT(used, static_cast<int64_t>(8 * kMegabyte + kBeside));
    {
      const MemoryAccountScope none(nullptr);
      const std::vector<char> outside = Block(8 * kMegabyte);
      EXPECT_LT(account.used(), static_cast<int64_t>(used + kMegabyte));
    }
  }
  EXPECT_LT(account.used(), static_cast<int64_t>(kMegabyte));
}

TEST_F(MemoryAccountTest, RefusesWhatIsBeyondItsLimit) {
  MemoryAccount account;
  account.Begin(16 * kMegabyte);
  const MemoryAccountScope scope(&account);
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<char> first = Block(10 * kMegabyte);
    const Status status = Caught([&]() -> Status {
      const std::vector<char> second = Block(10 * kMegabyte);
      return second.empty() ? Cancelled() : Status::Ok();
    });
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find("memory limit of the session exceeded"), std::string::npos) << status.message();
    EXPECT_NE(status.hint().find("SET session_memory = '"), std::string::npos) << status.hint();
  }
  const WithoutMemoryLimit without;
  EXPECT_EQ(Block(20 * kMegabyte).size(), 20 * kMegabyte);
}

TEST_F(MemoryAccountTest, ThreadsCountForTheStatementTheyWorkFor) {
  MemoryAccount account, other;
  account.Begin(64 * kMegabyte);
  other.Begin(UINT64_MAX);
  ThreadPool pool(4);
  std::vector<std::vector<char>> blocks(4);
  const auto take = [&](size_t megabytes) {
    return ForEach(&pool, blocks.size(), [&, megabytes](size_t i) {
      blocks[i] = Block(megabytes * kMegabyte);
      return Status::Ok();
    });
  };
  {
    const MemoryAccountScope scope(&account);
    ASSERT_TRUE(take(8).ok());
    FlushMemoryCount();
    EXPECT_GT(account.used(), static_cast<int64_t>(31 * kMegabyte));
    EXPECT_LT(account.used(), static_cast<int64_t>(32 * kMegabyte + blocks.size() * kBeside));
    EXPECT_FALSE(take(32).ok());
  }
  const MemoryAccountScope scope(&other);
  EXPECT_TRUE(take(32).ok());
}

}  // namespace
}  // namespace tessera
