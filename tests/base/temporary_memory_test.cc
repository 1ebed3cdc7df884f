// Memory in temporary files, by itself and after operator new.
#include "base/temporary_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/memory_budget.h"

namespace tessera::test {
namespace {

/// Temporary files lie in a directory of their own, and may have 64 MiB.
class TemporaryMemory : public ::testing::Test {
 protected:
  static constexpr uint64_t kLimit = 64 << 20;

  void SetUp() override {
    char path[] = "/tmp/tessera-temporary-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    directory_ = path;
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", path, 1);
    SetTemporaryLimit(kLimit);
  }
  void TearDown() override {
    SetTemporaryLimit(0);
    SetMemoryLimit(UINT64_MAX);
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
    // Empty: remove() says so.
    EXPECT_TRUE(std::filesystem::remove(directory_));
  }

  std::string directory_, before_;
};

TEST_F(TemporaryMemory, KeepsWhatIsWritten) {
  auto* const a = static_cast<uint8_t*>(MapTemporary(5'000'000));
  auto* const b = static_cast<uint8_t*>(MapTemporary(1));
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  memset(a, 7, 5'000'000);
  *b = 8;
  EXPECT_TRUE(std::filesystem::is_empty(directory_)) << "the files have no names";
  EXPECT_EQ(TemporaryUsed(), (77u + 1) << 16);
  EXPECT_EQ(a[4'999'999], 7);
  EXPECT_EQ(*b, 8);
  EXPECT_FALSE(UnmapTemporary(b + 1));
  EXPECT_TRUE(UnmapTemporary(a));
  EXPECT_FALSE(UnmapTemporary(a));
  EXPECT_TRUE(UnmapTemporary(b));
  EXPECT_EQ(TemporaryUsed(), 0u);
}

TEST_F(TemporaryMemory, RefusesWhatCannotBe) {
  EXPECT_EQ(MapTemporary(0), nullptr);
  EXPECT_EQ(MapTemporary(SIZE_MAX), nullptr);
  EXPECT_EQ(MapTemporary(kLimit + 1), nullptr);
  void* const most = MapTemporary(kLimit);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(MapTemporary(1), nullptr);
  EXPECT_TRUE(UnmapTemporary(most));
  setenv("TMPDIR", (directory_ + "/none").c_str(), 1);
  EXPECT_EQ(MapTemporary(1), nullptr);
  EXPECT_EQ(TemporaryUsed(), 0u);
}

TEST_F(TemporaryMemory, ManyBlocks) {
  std::mt19937_64 random(1);
  std::vector<std::pair<uint64_t*, uint64_t>> blocks;
  for (int i = 0; i < 20'000; ++i) {
    if (blocks.size() < 300 || (blocks.size() < 350 && random() % 2 == 0)) {
      auto* const block = static_cast<uint64_t*>(MapTemporary(20'000 * (1 + random() % 9)));
      ASSERT_NE(block, nullptr);
      blocks.emplace_back(block, random());
      *block = blocks.back().second;
    }
    if (blocks.size() < 300) continue;
    std::swap(blocks[random() % blocks.size()], blocks.back());
    ASSERT_EQ(*blocks.back().first, blocks.back().second);
    ASSERT_TRUE(UnmapTemporary(blocks.back().first));
    blocks.pop_back();
  }
  for (const auto& [block, value] : blocks) {
    ASSERT_EQ(*block, value);
    ASSERT_TRUE(UnmapTemporary(block));
  }
  EXPECT_EQ(TemporaryUsed(), 0u);
}

TEST_F(TemporaryMemory, LargeBlocksOfOperatorNewOverflow) {
  if (!MemoryIsCounted()) GTEST_SKIP() << "a sanitizer's operator new counts nothing";
  SetMemoryLimit(MemoryUsed() + (16 << 20));
  std::vector<std::unique_ptr<std::vector<uint8_t>>> held;
  for (int i = 0; i < 60; ++i) held.push_back(std::make_unique<std::vector<uint8_t>>(1 << 20, i));
  EXPECT_GT(TemporaryUsed(), 40u << 20);
  EXPECT_LE(MemoryUsed(), MemoryLimit());
  for (int i = 0; i < 60; ++i) EXPECT_EQ((*held[i])[12345], i);
  // Memory is left for small blocks.
  std::vector<std::unique_ptr<std::vector<uint8_t>>> small;
  for (int i = 0; i < 30; ++i) small.push_back(std::make_unique<std::vector<uint8_t>>(50'000));
  EXPECT_THROW(std::vector<uint8_t>(40 << 20), MemoryLimitExceeded) << "the files have 64 MiB";
  held.clear();
  EXPECT_EQ(TemporaryUsed(), 0u);
  EXPECT_GT(TemporaryPeak(), 40u << 20);
}

}  // namespace
}  // namespace tessera::test
