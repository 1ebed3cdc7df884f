// Where the rows of an exchanged join go (vm/shares/bucket_plan.h).

#include "vm/shares/bucket_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tessera::vm {
namespace {

/// By rank: up to `most` rows in each bucket.
std::vector<BucketRows> RandomRows(size_t ranks, uint32_t most, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<BucketRows> rows(ranks, BucketRows(kBuckets));
  for (BucketRows& of_rank : rows) {
    for (uint32_t& n : of_rank) n = random() % (most + 1);
  }
  return rows;
}

uint64_t Sum(const std::vector<BucketRows>& rows, size_t bucket) {
  uint64_t all = 0;
  for (const BucketRows& of_rank : rows) all += of_rank[bucket];
  return all;
}

/// Rows that each rank gets of both sides.
std::vector<uint64_t> Received(const BucketPlan& plan, const std::vector<BucketRows>& build,
                               const std::vector<BucketRows>& probe) {
  std::vector<uint64_t> received;
  for (size_t r = 0; r < build.size(); ++r)
    received.push_back(RowsMoved(plan.build, build, r).received + RowsMoved(plan.probe, probe, r).received);
  return received;
}

TEST(BucketPlan, EvenBucketsHaveARankEach) {
  for (const size_t ranks : {2, 3, 4, 7, 64}) {
    const std::vector<BucketRows> build = RandomRows(ranks, 100, 1), probe = RandomRows(ranks, 300, 2);
    const BucketPlan plan = PlanBuckets(build, probe, true);
    EXPECT_EQ(plan.spread, 0u);
    uint64_t all = 0;
    for (size_t b = 0; b < kBuckets; ++b) {
      ASSERT_LT(plan.build[b], ranks);
      EXPECT_EQ(plan.build[b], plan.probe[b]) << "rows with equal keys meet";
      EXPECT_LE(plan.build[b == 0 ? 0 : b - 1], plan.build[b]) << "adjacent buckets are on one rank";
      all += Sum(build, b) + Sum(probe, b);
    }
    uint64_t arrived = 0;
    for (const uint64_t rows : Received(plan, build, probe)) {
      arrived += rows;
      EXPECT_LT(rows * ranks, all + all / (ranks < 10 ? 10 : 3)) << ranks << " ranks";
    }
    EXPECT_EQ(arrived, all);
  }
}

TEST(BucketPlan, RowsThatProbeAHeavyKeyAreSpread) {
  std::vector<BucketRows> build = RandomRows(4, 10, 3), probe = RandomRows(4, 10, 4);
  for (BucketRows& of_rank : probe) of_rank[77] = 100'000;
  probe[2][900] = 400'000;
  for (const bool inner : {false, true}) {
    const BucketPlan plan = PlanBuckets(build, probe, inner);
    EXPECT_EQ(plan.spread, 2u);
    EXPECT_EQ(plan.probe[77], kStay) << "all ranks have as many";
    EXPECT_EQ(plan.probe[900], kDeal) << "one rank has all";
    EXPECT_EQ(plan.build[77], kToAll);
    EXPECT_EQ(plan.build[900], kToAll);
    const std::vector<uint64_t> received = Received(plan, build, probe);
    EXPECT_LT(*std::ranges::max_element(received), 225'000u);
  }
}

TEST(BucketPlan, RowsOfATableAreSpreadForInnerJoinsOnly) {
  std::vector<BucketRows> build = RandomRows(4, 10, 5), probe = RandomRows(4, 10, 6);
  for (BucketRows& of_rank : build) of_rank[5] = 100'000;
  const BucketPlan inner = PlanBuckets(build, probe, true), outer = PlanBuckets(build, probe, false);
  EXPECT_EQ(inner.build[5], kStay);
  EXPECT_EQ(inner.probe[5], kToAll);
  EXPECT_EQ(outer.spread, 0u);
  EXPECT_LT(outer.build[5], 4u);
  EXPECT_EQ(outer.build[5], outer.probe[5]);
}

TEST(BucketPlan, NoRowsAreNoReasonToFail) {
  const std::vector<BucketRows> none(3, BucketRows(kBuckets));
  const BucketPlan plan = PlanBuckets(none, none, true);
  EXPECT_EQ(plan.spread, 0u);
  for (const uint64_t rows : Received(plan, none, none)) EXPECT_EQ(rows, 0u);
}

TEST(BucketPlan, RowsMovedCountsWhatLeavesAndArrives) {
  std::vector<BucketRows> rows(2, BucketRows(kBuckets));
  rows[0] = BucketRows(kBuckets);
  rows[0][0] = 10;  // to rank 1
  rows[1][1] = 20;  // stays
  rows[0][2] = 4;   // to all
  std::vector<uint16_t> targets(kBuckets, 1);
  targets[1] = kStay;
  targets[2] = kToAll;
  EXPECT_EQ(RowsMoved(targets, rows, 0).sent, 14u);
  EXPECT_EQ(RowsMoved(targets, rows, 0).received, 4u);
  EXPECT_EQ(RowsMoved(targets, rows, 1).sent, 0u);
  EXPECT_EQ(RowsMoved(targets, rows, 1).received, 34u);
}

}  // namespace
}  // namespace tessera::vm
