// The groups of a section as its launches need them: room in the group table before a launch, groups that are numbered
// by their keys in arrays beside it, and the first groups on the host as soon as the launch ends. Private to kernels/.
//
// Start at: GroupRun::MakeReady, FillLaunch. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/groups/group_store.h"
#include "kernels/launch/launch.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/memory/small_copies.h"
#include "kernels/plan/launch_plan.h"
#include "kernels/ranks/exchange_groups.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"
#include "vm/shares/exchange.h"

namespace tessera::kernels {

/// Records, and as many bytes of states, that come with the counters of a launch.
inline constexpr uint64_t kEagerBytes = 32 << 10;

class GroupRun {
 public:
  GroupRun(GpuDevice* gpu, const vm::SectionContext& context, const vm::Section& section,
           const LoweredProgram& lowered);

  Status Open() { return store_.Open(); }
  /// As GroupStore::MostNumbers.
  uint64_t MostNumbers() const { return store_.MostNumbers(); }
  /// Groups in the table, as the latest launch left them.
  uint32_t used() const { return store_.used(); }
  uint32_t max_groups() const { return store_.table().max_groups; }
  /// Takes over how many groups the launch left, and whether its rows could reach the sink more than once.
  void SetUsed(uint32_t groups);

  /// Before a launch over `rows` rows: sums of halves have room for them, and the table for all groups that blocks number by
  /// their keys, or for Launch::spare. Errors: kResource, it has not.
  Status MakeReady(uint64_t rows, const LaunchPlan& plan, uint32_t spare);
  /// Where the launch finds its groups.
  Status FillLaunch(Launch* launch);
  /// Before and after a launch: clears the arrays of groups that are numbered by their keys, adds them to the table.
  /// The latter waits for the launch if the table may have no room for them. If it cannot get it, they go to the host, as
  /// many at a time as it has room for.
  Status ClearDirectGroups(const Launch& launch);
  Status EnterDirectGroups(const Launch& launch);
  /// After a launch: sends its counters to the host, and the first groups to `to` there, 2 * kEagerBytes long. Most
  /// sections make few groups, and these come with the counters.
  Status StartSendBack(const Launch& launch, const SmallCopy& counters, uint64_t* to);

  /// Room for more groups. *spilled: the table was emptied for that.
  Status Grow(bool* spilled);
  /// Carries the lower parts of sums over to the upper ones, if a row can reach the sink more than once.
  Status NormaliseRepeats();
  /// Groups of other ranks may have the same keys, until Exchange.
  void set_parts() { store_.set_parts(true); }
  /// As OfferGroups (ranks/exchange_groups.h). REQUIRES, as Exchange: no launch is under way.
  tessera::Result<vm::GroupOffer> Offer(GroupTexts* texts, int ranks);
  /// As ExchangeGroups there.
  Status Exchange(RankLinks* links, GroupTexts* texts, vm::Exchange* exchange,
                  const std::vector<vm::GroupOffer>& offers);
  /// As GroupStore::MoveTo. REQUIRES, as Rows: no launch is under way.
  tessera::Result<bool> MoveTo(DeviceRows* rows);
  /// All groups.
  tessera::Result<vm::RowSet> Rows();

 private:
  /// Groups that are numbered by their keys and do not fit in shared memory.
  static bool AreFar(const Launch& launch) { return launch.direct.active && launch.private_groups == 0; }
  static bool AreFar(const LaunchPlan& plan) { return plan.groups.direct && plan.groups.private_groups == 0; }
  bool HasRoomFor(uint64_t more) const { return used() + more <= max_groups(); }
  /// Room for `more` groups. Errors: kResource, there is none.
  Status Reserve(uint64_t more);
  /// The same, if there is.
  Status TryReserve(uint64_t more);
  /// Tells a launch that has ended how many groups there are.
  Status SetCounter(const Launch& launch);
  /// Enters them as many numbers at a time as the table has room for; the groups before go to the host.
  Status EnterPieces(const Launch& launch);
  /// The groups of the launch that have a row.
  tessera::Result<uint32_t> CountDirectGroups(const Launch& launch);

  GroupsToExchange ToExchange(GroupTexts* texts) {
    return {section_, lowered_, &store_, texts, context_.strings, context_.pool};
  }

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  const LoweredProgram& lowered_;
  GroupStore store_;
  RunBuffer direct_;  ///< of the launch: states, then touched
  GroupWords eager_;  ///< came with the latest launch's counters
  uint64_t rows_since_normalise_ = 0;
};

}  // namespace tessera::kernels
