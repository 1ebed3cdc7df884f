// Blocks that were freed are found again by who asks for as much.
#include "base/spare_blocks.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/memory_budget.h"

namespace tessera::test {
namespace {

/// With a limit of which spare blocks may have an eighth.
class SpareBlocks : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (!MemoryIsCounted()) GTEST_SKIP() << "operator new is the sanitizer's";
    SetMemoryLimit(uint64_t{1} << 33);
    TrimSpares(0);
  }
  void TearDown() override {
    TrimSpares(0);
    SetMemoryLimit(UINT64_MAX);
  }
};

TEST_P(SpareBlocks, AreTakenByWhoAsksForAsMuch) {
  const size_t bytes = GetParam();
  const void* before = nullptr;
  for (int turn = 0; turn < 3; ++turn) {
    const std::unique_ptr<char[]> block(new char[bytes]);
    if (turn > 0) {
      EXPECT_EQ(block.get(), before) << turn;
    }
    EXPECT_EQ(SpareBytes(), 0u) << "the one that was freed is in use again";
    before = block.get();
  }
  EXPECT_GE(SpareBytes(), bytes);
}

// Those of 4 MiB and more are aligned to huge pages, and have up to 2 MiB more than was asked for.
INSTANTIATE_TEST_SUITE_P(Sizes, SpareBlocks,
                         ::testing::Values(size_t{64} << 10, size_t{100'000}, size_t{1} << 20, size_t{3} << 20,
                                           size_t{4} << 20, (size_t{4} << 20) + 1, size_t{4'500'000}, size_t{5} << 20,
                                           size_t{6} << 20, size_t{8} << 20, size_t{33} << 20));

}  // namespace
}  // namespace tessera::test
