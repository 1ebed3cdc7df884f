#include "vm/shares/bucket_plan.h"

#include <algorithm>

#include "vm/shares/heavy_count.h"

namespace tessera::vm {
namespace {

std::vector<HeavyCount> CountBuckets(const std::vector<BucketRows>& rows, uint64_t* all) {
  std::vector<HeavyCount> counts(kBuckets);
  for (const BucketRows& of_rank : rows) {
    for (size_t b = 0; b < kBuckets; ++b) {
      counts[b].Add(of_rank[b]);
      *all += of_rank[b];
    }
  }
  return counts;
}

uint16_t SpreadBy(const HeavyCount& count, uint64_t ranks) { return count.MayStay(ranks) ? kStay : kDeal; }

}  // namespace

BucketPlan PlanBuckets(const std::vector<BucketRows>& build, const std::vector<BucketRows>& probe, bool spread_build) {
  const uint64_t ranks = build.size();
  uint64_t all_build = 0, all_probe = 0;
  const std::vector<HeavyCount> builds = CountBuckets(build, &all_build), probes = CountBuckets(probe, &all_probe);
  const auto is_heavy = [&](const HeavyCount& count, uint64_t all) { return count.rows >= HeavyFrom(all, ranks); };
  BucketPlan plan;
  plan.build.resize(kBuckets);
  plan.probe.resize(kBuckets);
  uint64_t owned = 0;  // rows of the buckets that have a rank
  for (size_t b = 0; b < kBuckets; ++b) {
    if (is_heavy(probes[b], all_probe) && builds[b].rows <= probes[b].rows) {
      plan.probe[b] = SpreadBy(probes[b], ranks);
      plan.build[b] = kToAll;
    } else if (spread_build && is_heavy(builds[b], all_build) && probes[b].rows <= builds[b].rows) {
      plan.build[b] = SpreadBy(builds[b], ranks);
      plan.probe[b] = kToAll;
    } else {
      owned += builds[b].rows + probes[b].rows;
      continue;
    }
    ++plan.spread;
  }
  uint64_t before = 0;
  for (size_t b = 0; b < kBuckets; ++b) {
    if (plan.build[b] != 0 || plan.probe[b] != 0) continue;
    const uint64_t rows = builds[b].rows + probes[b].rows;
    // By the middle of the bucket's rows among all.
    const uint64_t rank = owned == 0 ? 0 : (2 * before + rows) * ranks / (2 * owned);
    plan.build[b] = plan.probe[b] = static_cast<uint16_t>(std::min(rank, ranks - 1));
    before += rows;
  }
  return plan;
}

Moved RowsMoved(const std::vector<uint16_t>& targets, const std::vector<BucketRows>& rows, size_t rank) {
  const uint64_t ranks = rows.size();
  Moved moved;
  for (size_t b = 0; b < kBuckets; ++b) {
    uint64_t all = 0;
    for (const BucketRows& of_rank : rows) all += of_rank[b];
    const uint64_t own = rows[rank][b];
    if (targets[b] == kToAll) {
      moved.received += all;
      moved.sent += own;  // the same bytes to each
    } else if (targets[b] == kStay) {
      moved.received += own;
    } else if (targets[b] == kDeal) {
      moved.received += all / ranks + all / ranks / 8 + kLeastHeavyRows * ranks;
      moved.sent += own;
    } else {
      if (targets[b] == rank) moved.received += all;
      if (targets[b] != rank) moved.sent += own;
    }
  }
  return moved;
}

}  // namespace tessera::vm
