// What a worker groups by. A group table that has outgrown the caches costs several misses a row, and a second one
// when the tables of all workers are merged. So where few rows share a group, the table's groups are put aside every
// now and then, in radix partitions by a hash of their keys, and the table starts anew, small. In the end each
// partition is merged by one thread, and fits its cache. Where many rows share a group, the table stays: what is put
// aside would be more than the groups.
// Private to vm/.
//
// Start at: WorkerGroups::AfterTile, MergeGroups. A WorkerGroups belongs to one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/status.h"
#include "vm/sinks/group_table.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

/// By the uppermost bits of the hash: 6 M groups are 25,000 in each, which with their table take 2 MB.
inline constexpr size_t kGroupPartitions = 256;

class WorkerGroups {
 public:
  /// One of `workers` that group the same rows.
  WorkerGroups(const Section& section, const StringPool* strings, size_t workers);

  /// Where the worker's rows go.
  GroupTable table;

  /// Between tiles: puts groups aside if that is better. Errors: as GroupTable::Merge.
  Status AfterTile();
  /// The groups of the table and those aside, of which some may be the same.
  size_t groups() const { return aside_ + table.groups(); }
  /// Whether any are aside.
  bool has_partitions() const { return !runs_.empty(); }
  /// Puts the table's groups aside, too. `room`: for this many groups there is memory then.
  void PutAside(size_t room);
  /// How many groups of these partitions are aside; some may be the same.
  size_t GroupsOf(size_t begin, size_t end) const;
  /// Adds the groups of one partition to another table. REQUIRES: all are aside.
  Status MergePartition(size_t partition, GroupTable* to) const;
  /// Brings all groups back to the table.
  Status BringBack();

 private:
  /// Groups in the order of their partitions.
  struct Run {
    GroupArrays groups;
    std::array<uint32_t, kGroupPartitions + 1> begin;  ///< of the partitions
  };

  const size_t words_;
  size_t most_;        ///< groups that the table may have before it is looked at
  size_t most_aside_;  ///< groups that may be aside
  size_t aside_ = 0;
  bool stays_ = false;  ///< the table grows, whatever comes
  std::vector<std::unique_ptr<Run>> runs_;
};

/// All groups of the workers in one table, the first one's. REQUIRES: there is a worker.
Status MergeIntoFirst(const std::vector<std::unique_ptr<WorkerGroups>>& workers);
/// All groups of the workers as rows; many groups are merged partition by partition, by all threads.
Result<RowSet> MergeGroups(const Section& section, const StringPool* strings, ThreadPool* pool,
                           const std::vector<std::unique_ptr<WorkerGroups>>& workers);

}  // namespace tessera::vm
