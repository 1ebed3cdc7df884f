// Pieces that are cut from slabs: none overlaps another, and what comes back is one range again.
#include "base/slab_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/memory_budget.h"

namespace tessera::test {
namespace {

using Range = SlabRanges::Range;

TEST(SlabRanges, PiecesAreCutAndGrowTogetherAgain) {
  std::vector<uint8_t> memory(4096);
  uint8_t* const at = memory.data();
  SlabRanges ranges(2);
  EXPECT_EQ(ranges.Take(1), nullptr);
  ranges.Put({at, 2048});
  EXPECT_EQ(ranges.Take(512), at);
  EXPECT_EQ(ranges.Take(1024), at + 512);
  EXPECT_EQ(ranges.Take(1024), nullptr);
  EXPECT_EQ(ranges.Take(512), at + 1536);
  EXPECT_EQ(ranges.free_bytes(), 0u);
  ranges.Put({at, 512});
  EXPECT_EQ(ranges.held_bytes(), 512u);
  ranges.Put({at + 1536, 512});
  EXPECT_EQ(ranges.Take(1024), nullptr) << "two ranges of 512";
  EXPECT_EQ(ranges.RemoveSlab().bytes, 0u) << "a piece is taken";
  ranges.Put({at + 512, 1024});
  EXPECT_EQ(ranges.held_bytes(), 0u);
  EXPECT_EQ(ranges.Take(2048), at);
  ranges.Put({at, 2048});
  const Range slab = ranges.RemoveSlab();
  EXPECT_EQ(slab.data, at);
  EXPECT_EQ(slab.bytes, 2048u);
  EXPECT_FALSE(ranges.Holds(at));
}

TEST(SlabRanges, SlabsThatTouchStayTwo) {
  std::vector<uint8_t> memory(2048);
  uint8_t* const at = memory.data();
  SlabRanges ranges(2);
  ranges.Put({at + 1024, 1024});
  ranges.Put({at, 1024});
  EXPECT_TRUE(ranges.is_full());
  EXPECT_EQ(ranges.Take(2048), nullptr);
  EXPECT_EQ(ranges.Take(1024), at) << "of two that fit alike the first by address";
  ranges.Put({at, 1024});
  EXPECT_EQ(ranges.RemoveSlab().data, at + 1024) << "used longest ago";
  EXPECT_EQ(ranges.RemoveSlab().data, at);
}

TEST(SlabRanges, TheSmallestRangeThatFitsIsTaken) {
  std::vector<uint8_t> memory(8192);
  uint8_t* const at = memory.data();
  SlabRanges ranges(3);
  ranges.Put({at, 4096});
  ranges.Put({at + 4096, 1024});
  ranges.Put({at + 5120, 2048});
  EXPECT_EQ(ranges.Take(1024), at + 4096);
  EXPECT_EQ(ranges.Take(1024), at + 5120);
  EXPECT_EQ(ranges.Take(2048), at);
}

TEST(SlabRanges, NoSlabIsCutForLittle) {
  std::vector<uint8_t> memory(2 * 8192);
  uint8_t* const at = memory.data();
  SlabRanges ranges(2);
  ranges.Put({at, 8192});
  EXPECT_EQ(ranges.Take(1024), nullptr);
  EXPECT_EQ(ranges.Take(2048), at);
  EXPECT_EQ(ranges.Take(512), at + 2048) << "it is cut already";
  ranges.Put({at, 2048});
  ranges.Put({at + 2048, 512});
  EXPECT_EQ(ranges.Take(1024), nullptr);
}

/// Beside a map of which byte belongs to whom.
TEST(SlabRanges, AnyOrder) {
  constexpr size_t kUnit = 512, kSlabUnits = 64, kSlabs = 4;
  std::vector<uint8_t> memory(kUnit * kSlabUnits * kSlabs);
  std::mt19937 random(7);
  SlabRanges ranges(kSlabs);
  for (size_t s = 0; s < kSlabs; ++s) ranges.Put({memory.data() + s * kSlabUnits * kUnit, kSlabUnits * kUnit});
  std::vector<bool> taken(kSlabUnits * kSlabs);
  std::vector<Range> pieces;
  const auto slab_at = [&](size_t s) {
    return std::pair(taken.begin() + static_cast<ptrdiff_t>(s * kSlabUnits),
                     taken.begin() + static_cast<ptrdiff_t>((s + 1) * kSlabUnits));
  };
  const auto is_cut = [&](size_t s) {
    const auto [begin, end] = slab_at(s);
    return std::find(begin, end, true) != end;
  };
  const auto mark = [&](const Range& piece, bool is_taken) {
    for (size_t u = 0; u < piece.bytes / kUnit; ++u) {
      const size_t unit = static_cast<size_t>(piece.data - memory.data()) / kUnit + u;
      ASSERT_NE(taken[unit], is_taken);
      taken[unit] = is_taken;
    }
  };
  /// Whether a slab has a run of this many free ones, and is not cut for less.
  const auto has_room = [&](size_t units) {
    for (size_t u = 0, run = 0; u < taken.size(); ++u) {
      run = taken[u] ? 0 : u % kSlabUnits == 0 ? 1 : run + 1;
      if (run == units && (units * SlabRanges::kLeastPart >= kSlabUnits || is_cut(u / kSlabUnits))) return true;
    }
    return false;
  };
  for (int step = 0; step < 20000; ++step) {
    if (pieces.empty() || random() % 2 == 0) {
      const size_t units = 1 + random() % (kSlabUnits / 2);
      const bool fits = has_room(units);
      uint8_t* const data = ranges.Take(units * kUnit);
      ASSERT_EQ(data != nullptr, fits);
      if (data == nullptr) continue;
      pieces.push_back({data, units * kUnit});
      mark(pieces.back(), true);
    } else {
      std::swap(pieces[random() % pieces.size()], pieces.back());
      mark(pieces.back(), false);
      SetAllocationFault([] { return true; });
      ranges.Put(pieces.back());
      SetAllocationFault(nullptr);
      pieces.pop_back();
    }
    if (random() % 16 == 0) {
      if (const Range slab = ranges.RemoveSlab(); slab.bytes > 0) {
        EXPECT_EQ(slab.bytes, kSlabUnits * kUnit);
        EXPECT_FALSE(is_cut(static_cast<size_t>(slab.data - memory.data()) / slab.bytes));
        EXPECT_FALSE(ranges.Holds(slab.data));
        ranges.Put(slab);
      }
    }
    uint64_t held = 0;
    for (size_t s = 0; s < kSlabs; ++s) {
      const auto [begin, end] = slab_at(s);
      if (is_cut(s)) held += kUnit * static_cast<size_t>(std::count(begin, end, false));
    }
    ASSERT_EQ(ranges.held_bytes(), held);
    ASSERT_EQ(ranges.free_bytes(), kUnit * static_cast<size_t>(std::ranges::count(taken, false)));
  }
  for (const Range& piece : pieces) ranges.Put(piece);
  for (size_t s = 0; s < kSlabs; ++s) EXPECT_EQ(ranges.RemoveSlab().bytes, kSlabUnits * kUnit);
  EXPECT_EQ(ranges.RemoveSlab().bytes, 0u);
}

}  // namespace
}  // namespace tessera::test
