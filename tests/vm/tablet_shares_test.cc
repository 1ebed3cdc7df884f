// How ranks share a table: every row once, in equal parts, the same on all ranks.

#include "vm/shares/tablet_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "vm/program/tile_rows.h"

namespace tessera::vm {
namespace {

/// Has a size and no rows to read.
class SizedTablet final : public Tablet {
 public:
  SizedTablet(uint32_t rows, uint64_t bytes) : rows_(rows), bytes_(bytes) {}
  uint32_t rows() const override { return rows_; }
  uint64_t weight() const override { return bytes_; }
  Result<ChunkPointer> Chunk(int) const override { return Status(ErrorCode::kInternal, "it has no chunks"); }
  std::string path() const override { return "sized"; }

 private:
  const uint32_t rows_;
  const uint64_t bytes_;
};

TableInfo TableOf(const std::vector<std::pair<uint32_t, uint64_t>>& sizes) {
  TableInfo table;
  for (const auto& [rows, bytes] : sizes) {
    table.tablets.push_back(std::make_shared<SizedTablet>(rows, bytes));
    table.rows += rows;
  }
  return table;
}

TableInfo EqualTablets(size_t n, uint32_t rows) {
  return TableOf(std::vector<std::pair<uint32_t, uint64_t>>(n, {rows, uint64_t{rows} * 10}));
}

/// The greatest share of a rank, in parts of an equal one. Checks that each row is in one part, and cuts are at tiles.
double GreatestShare(const TableInfo& table, int ranks) {
  const std::vector<TabletPart> parts = ShareTablets(table, ranks);
  std::vector<double> loads(static_cast<size_t>(ranks));
  double all = 0;
  auto part = parts.begin();
  for (size_t t = 0; t < table.tablets.size(); ++t) {
    const double rows = table.tablets[t]->rows(), bytes = static_cast<double>(table.tablets[t]->weight());
    uint32_t next = 0;
    for (; part != parts.end() && part->tablet == t; ++part) {
      EXPECT_EQ(part->first, next);
      EXPECT_EQ(part->first % kTileRows, 0u);
      EXPECT_GT(part->rows, 0u);
      EXPECT_TRUE(part->rank >= 0 && part->rank < ranks);
      next = part->first + part->rows;
      loads[static_cast<size_t>(part->rank)] += part->rows / rows * bytes;
    }
    EXPECT_EQ(next, table.tablets[t]->rows());
    all += bytes;
  }
  EXPECT_EQ(part, parts.end());
  return *std::ranges::max_element(loads) * ranks / all;
}

std::vector<int> RanksOf(const std::vector<TabletPart>& parts) {
  std::vector<int> out;
  for (const TabletPart& part : parts) out.push_back(part.rank);
  return out;
}

TEST(TabletShares, EvenRoundsStayWholeAndInTurn) {
  EXPECT_EQ(RanksOf(ShareTablets(EqualTablets(8, 1 << 16), 4)), (std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3}));
  // A share of 101 / 4 is exceeded by 3 %, which is not worth reading a tablet twice.
  EXPECT_EQ(ShareTablets(EqualTablets(101, 1 << 16), 4).size(), 101u);
}

TEST(TabletShares, TheUnevenLastRoundIsCut) {
  const std::vector<TabletPart> parts = ShareTablets(EqualTablets(6, 1 << 20), 4);
  const uint32_t half = 1 << 19, all = 1 << 20;
  EXPECT_EQ(parts, (std::vector<TabletPart>{{0, 0, all, 0},
                                            {1, 0, all, 1},
                                            {2, 0, all, 2},
                                            {3, 0, all, 3},
                                            {4, 0, half, 0},
                                            {4, half, half, 1},
                                            {5, 0, half, 2},
                                            {5, half, half, 3}}));
  EXPECT_LE(GreatestShare(EqualTablets(3, 1 << 20), 2), 1.001);
  EXPECT_LE(GreatestShare(EqualTablets(9, 1 << 20), 7), 1.01);
  // Few rows are not worth a cut.
  EXPECT_EQ(ShareTablets(EqualTablets(6, 7 * kTileRows), 4).size(), 6u);
  EXPECT_EQ(GreatestShare(EqualTablets(6, 7 * kTileRows), 4), 2 / 1.5);
}

TEST(TabletShares, BytesCountAndNotTablets) {
  // One tablet in four has most of the bytes: dealt out one by one, all of these would be of one rank.
  std::vector<std::pair<uint32_t, uint64_t>> sizes;
  for (int t = 0; t < 64; ++t) sizes.emplace_back(1 << 16, t % 4 == 0 ? 1000000 : 100000);
  EXPECT_LE(GreatestShare(TableOf(sizes), 4), 1.05);
  // A tablet that is larger than all others together.
  sizes = {{1 << 20, 1 << 30}, {1 << 20, 1 << 20}, {1 << 20, 1 << 20}, {5, 100}};
  EXPECT_LE(GreatestShare(TableOf(sizes), 3), 1.01);
}

TEST(TabletShares, NeighboursGoToDifferentRanks) {
  std::mt19937 random(1);
  std::vector<std::pair<uint32_t, uint64_t>> sizes;
  for (int t = 0; t < 60; ++t) sizes.emplace_back(1 << 20, 1000000 + random() % 20000);
  const std::vector<TabletPart> parts = ShareTablets(TableOf(sizes), 4);
  ASSERT_EQ(parts.size(), 60u);
  for (size_t t = 0; t < 60; t += 4) {
    std::set<int> ranks;
    for (size_t k = 0; k < 4; ++k) ranks.insert(parts[t + k].rank);
    EXPECT_EQ(ranks.size(), 4u);
  }
}

TEST(TabletShares, EveryRankHasSomeOfAnyTable) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    const int ranks = 2 + static_cast<int>(random() % 8);
    const uint32_t tablet_rows = std::vector<uint32_t>{1, 7, 2048, 65536, 1 << 20}[random() % 5];
    std::vector<std::pair<uint32_t, uint64_t>> sizes;
    for (size_t t = 0, n = static_cast<size_t>(ranks) + random() % 30; t < n; ++t)
      sizes.emplace_back(t + 1 == n ? 1 + random() % tablet_rows : tablet_rows, 1 + random() % 100000);
    const TableInfo table = TableOf(sizes);
    const std::vector<TabletPart> parts = ShareTablets(table, ranks);
    std::set<int> with_rows;
    for (const TabletPart& part : parts) with_rows.insert(part.rank);
    EXPECT_EQ(with_rows.size(), static_cast<size_t>(ranks));
    EXPECT_EQ(parts, ShareTablets(table, ranks));
    GreatestShare(table, ranks);
  }
}

TEST(TabletShares, GpusReadSmallBuildSidesWhole) {
  TableInfo table = EqualTablets(8, 65536);
  table.statistics.resize(3);
  table.statistics[0].encoded_bytes = 10 << 20;
  table.statistics[1].encoded_bytes = 5 << 20;
  table.statistics[2].encoded_bytes = 100 << 20;
  Section section;
  section.sink = Section::Sink::kJoin;
  section.slots.resize(2);
  section.slots[0].column = 0;
  section.slots[1].column = 1;
  EXPECT_TRUE(IsReadWhole(table, section, 1 << 20));
  EXPECT_FALSE(IsReadWhole(table, section, 0)) << "nothing is replicated";
  section.placement.co_located = true;
  EXPECT_FALSE(IsReadWhole(table, section, 1 << 20));
  section.placement.co_located = false;
  section.placement.by_key = true;
  EXPECT_FALSE(IsReadWhole(table, section, 1 << 20));
  section.placement.by_key = false;
  section.slots[1].column = 2;
  EXPECT_FALSE(IsReadWhole(table, section, 1 << 20)) << "large columns";
  section.slots[1].column = 1;
  section.sink = Section::Sink::kGroups;
  EXPECT_FALSE(IsReadWhole(table, section, 1 << 20)) << "its rows are counted once";
}

}  // namespace
}  // namespace tessera::vm
