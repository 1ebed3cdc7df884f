// The groups of a section: a table in device memory that grows with them. If the budget has no room for more, the
// groups go to the host, are merged there with those that came before, and the table starts anew. Its slots are
// made when a key has to be looked up: groups that are known to differ are put side by side without them.
// kernels/README.md, Sinks, and memory/README.md. Private to kernels/.
//
// Start at: GroupStore::Index, Grow, Rows.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/launch/sinks.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/plan/lower.h"
#include "kernels/rows/device_rows.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"
#include "vm/sinks/group_table.h"

namespace tessera::kernels {

/// Groups as the device has them: n records and n states, record_step and state_step words apart.
struct GroupWords {
  const uint64_t* records = nullptr;
  const uint64_t* states = nullptr;
  uint64_t record_step = 0, state_step = 0;
  uint64_t n = 0;
};

/// Columns of the section's sink with room for `rows` rows.
void ResizeColumns(uint64_t rows, vm::RowSet* out);

/// Groups that did not stay on the device, in partitions by a hash of their keys. One thread merges a partition, so
/// that the partition's table is in that core's caches meanwhile.
class HostGroups {
 public:
  HostGroups(const vm::SectionContext& context, const vm::Section& section, const LoweredProgram& lowered);
  /// Adds groups. Some of them may have come before.
  Status Add(const GroupWords& groups);
  /// All of them, once each.
  tessera::Result<vm::RowSet> Rows();

 private:
  size_t workers() const { return pending_.size(); }
  Status MergePending();

  const vm::SectionContext& context_;
  const vm::Section& section_;
  const LoweredProgram& lowered_;
  /// [worker][part]: record and state of each group, not merged yet.
  std::vector<std::vector<std::vector<uint64_t>>> pending_;
  uint64_t pending_words_ = 0;
  std::vector<std::unique_ptr<vm::GroupTable>> tables_;  ///< by part; nullptr: no group
};

class GroupStore {
 public:
  GroupStore(GpuDevice* gpu, const vm::SectionContext& context, const vm::Section& section,
             const LoweredProgram& lowered)
      : gpu_(*gpu), context_(context), section_(section), lowered_(lowered) {}

  /// Room for the first groups. REQUIRES: called before all others.
  Status Open();
  /// Slots in which a key's group is found; before, they are not needed.
  Status Index();
  /// Its slots are there from Index on, until the table grows without them.
  const DeviceGroups& table() const { return table_; }
  /// Groups in the device's table, as the latest launch left them.
  uint32_t used() const { return used_; }
  void set_used(uint32_t groups) { used_ = groups; }

  /// Makes room: enlarges the table, or empties it if it cannot grow. Errors: kResource, there is not even room for a
  /// small one.
  Status Grow();
  /// Room for `groups` in all, at once if the budget has it; as Grow, as often as needed, if it has not.
  Status Reserve(uint64_t groups);
  /// How often the table was emptied.
  uint64_t spills() const { return spills_; }
  /// How many numbers of groups there is room for beside the table: a state and a byte for each.
  uint64_t MostNumbers() const;
  /// Sends the groups to the host and empties the table.
  Status Spill();
  /// Forgets all groups and makes room for `groups`, and slots.
  Status Empty(uint64_t groups);
  /// Whether all groups are in the device's table.
  bool AllHere() const { return host_ == nullptr; }
  /// Whether other ranks may have groups with the same keys. Then none is left out because it is unwanted.
  void set_parts(bool parts) { parts_ = parts; }
  /// Carries the lower parts of sums over to the upper ones.
  Status Normalise();
  /// All groups as rows that stay on the device, if they are many and there is room. false: they are still here.
  tessera::Result<bool> MoveTo(DeviceRows* rows);
  /// All groups. `eager`: those of the device, if they are on the host already; n = 0: they are not.
  tessera::Result<vm::RowSet> Rows(const GroupWords& eager);

 private:
  /// Bytes of a table for that many groups: slots, records and states.
  uint64_t BytesFor(uint64_t groups) const;
  /// Bytes that the table may have: half of what is not claimed otherwise, so that columns have the other half.
  uint64_t Budget() const;
  /// Groups that the table will have room for when it has grown.
  uint64_t Limit() const;
  /// Room for `max_groups`, with slots if asked for; the groups that there are keep their places.
  Status Allocate(uint64_t max_groups, bool slots);
  /// ... and are in the slots, if they were before.
  Status Enlarge(uint64_t max_groups);
  Status AllocateSlots(uint64_t max_groups);
  Status Extend(RunBuffer* buffer, uint64_t words, uint64_t groups);
  void FreeSlots();
  void Free();
  uint64_t Held() const { return slots_.bytes() + records_.bytes() + states_.bytes(); }
  /// f(words) for the groups of the device, some at a time.
  template <class F>
  Status Fetch(F f);
  /// Moves the groups that somebody reads together, if they are few. The table is only read from here on.
  Status LeaveOutUnwanted();

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  const LoweredProgram& lowered_;
  DeviceGroups table_;
  RunBuffer slots_, records_, states_;
  bool whole_ = false;    ///< all of them belong together; not so when a larger table could not be allocated
  bool indexed_ = false;  ///< the slots have all groups
  bool parts_ = false;
  uint32_t used_ = 0;
  uint64_t spills_ = 0;
  std::unique_ptr<HostGroups> host_;  ///< nullptr: nothing was sent there
};

}  // namespace tessera::kernels
