// Running a section on the GPU: bind tablets, bring their columns to the device, launch the VM kernel, see to what it
// asks for (a larger group table, room for rows), launch again until it is done. README.md, Suspend and resume. Private
// to kernels/.
//
// Start at: SectionRun::AllTablets.
#pragma once

#include <bit>
#include <deque>
#include <vector>

#include "kernels/join/device_joins.h"
#include "kernels/join/probe_partition.h"
#include "kernels/launch/dp_kernel.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/plan/launch_plan.h"
#include "kernels/run/group_store.h"
#include "kernels/run/row_output.h"
#include "vm/bind.h"
#include "vm/meaning.h"
#include "vm/vm.h"

namespace tessera::kernels {

/// Batches that are in flight at a time. At a budget of 256 MB two have 115 MB each, not much more than pinned memory
/// holds, and the threads that copy wait for the next one (SSB q4.1 streamed at scale 20: 51 to 53 ms, 49 to 50 with
/// four).
inline constexpr size_t kBatches = 4;

/// The tablets of one launch and all that the device must know of them.
struct Batch {
  std::vector<size_t> numbers;  ///< of the tablets in the table
  std::vector<vm::BoundTablet> tablets;
  std::vector<const uint8_t*> codes, nulls;  ///< [tablet][slot]: device addresses
  std::vector<ColumnCache::Piece*> pinned;
  std::shared_ptr<ColumnCache::Copies> copies;  ///< of its columns, until it starts
  LaunchPlan plan;
  Launch launch;
  ProbePartition partition;          ///< what `tablets` have become, if it is used
  RunBuffer* partitioned = nullptr;  ///< its memory
  BucketLaunch buckets;              ///< of a dp join
  bool finds_units = false;          ///< the device looks for the units of a product
  uint32_t blocks = 0;
  /// At most so many blocks run at a time, the others rest; 0: all run. Then `at` are the cursors of all warps,
  /// `running` says which blocks have run, and `next_turn` which come next.
  uint32_t turn = 0;
  std::vector<uint32_t> at;
  std::vector<bool> running;
  uint32_t next_turn = 0;
  bool moved = false;  ///< a warp has, since the group table was emptied
  Arena* arena = nullptr;
  size_t control = 0;  ///< its place in the arena (builds have theirs elsewhere), right behind the partial aggregates
};

/// Tablets of a section, from the first one on, bound before its join tables were there.
struct TabletsAhead {
  int section = -1;  ///< -1: none
  const TableInfo* table = nullptr;
  std::vector<tessera::Result<vm::BoundTablet>> tablets;
  bool slow = false;  ///< the last one took long
};
/// Binds tablets until one takes so long that several threads should do it.
TabletsAhead BindAhead(const vm::SectionContext& context, const std::vector<vm::KeyRange>& key_ranges);

/// One section. REQUIRES: the device's mutex is held.
class SectionRun {
 public:
  SectionRun(GpuDevice* gpu, const vm::SectionContext& context, DeviceJoins* joins, int build = -1);
  ~SectionRun();
  SectionRun(const SectionRun&) = delete;
  SectionRun& operator=(const SectionRun&) = delete;

  /// REQUIRES: of the same section and table; called first; none of the join tables is in parts.
  Status Take(TabletsAhead ahead);
  /// All tablets of the table, launch by launch.
  Status AllTablets();
  /// What they made. REQUIRES: AllTablets; the sink is no join table.
  tessera::Result<vm::RowSet> Result();

  /// The rows of a join table: in one launch that this does not wait for, if all of them fit, else as AllTablets does.
  Status StartBuild();
  /// The launch of StartBuild is done and its counters are back.
  Status FinishBuild();
  /// REQUIRES: StartBuild; they may still be on their way.
  JoinRows* build_rows() { return &build_rows_; }
  /// REQUIRES: FinishBuild, as for what follows. The rows, if they did not fit the device, piece by piece; else empty.
  std::vector<vm::RowSet>& host_rows() { return host_rows_; }
  uint64_t rows_built() const { return rows_on_host_ + build_rows_.rows(); }
  /// Of the table that the rows come from, the key's least and greatest value; low > high: it is not a plain column.
  vm::KeyRange SourceKeys() const { return source_keys_; }
  /// If it was asked for, fills the statistics of single joins. REQUIRES: the others are filled.
  void TellJoins();
  /// Of the latest launch, which may be under way, on the device; nullptr: there was none.
  Control* launched() const { return launched_; }

 private:
  // ---- Passes over the source, with a part of each join table that is too large -------------------------------------

  /// Finds out how the join tables that are in parts can be joined, and how many passes that takes.
  Status PlanParts();
  /// Brings the parts for a pass to the device.
  Status StartPass(uint64_t pass);
  /// Over all of the source, launch by launch.
  Status RunPass();

  bool IsCancelled() const { return context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed); }

  // ---- Tablets in ---------------------------------------------------------------------------------------------------

  /// Tablet `number` bound; others behind it with it, by several threads, if that takes long. To be moved from once it
  /// has its place in a launch.
  tessera::Result<vm::BoundTablet>& Bind(size_t number, const vm::BoundTablet* like);
  /// Binds tablets from *next on and brings their columns to the device, until the launch is large enough.
  Status Collect(Batch* batch, size_t* next);
  /// Bytes of columns that a launch may have.
  uint64_t LaunchShare(bool may_partition) const;
  /// The first of the batches in flight is done: what it read can go. REQUIRES: there is one.
  Status FinishFirst();
  Status FinishAll();

  /// Widens source_keys_ by a tablet's.
  void NoteKeys(const vm::BoundTablet& bound);

  struct Needs {
    bool codes = false, nulls = false;
  };
  /// Finds out which streams of the slots' chunks the section reads in this tablet, for Upload. Returns their bytes.
  uint64_t FindNeeds(const vm::BoundTablet& bound);
  Status Upload(Batch* batch, size_t at, uint64_t* copied);

  /// The rows of a join table as one tablet.
  void CollectRows(Batch* batch);

  // ---- Launches -----------------------------------------------------------------------------------------------------

  /// Plans the launch and fills the arena. Others may be in flight, unless it is a product.
  Status Prepare(Batch* batch, int arena_number);

  /// Puts the tablets together as one whose rows are in the order of a join table's places, if that is faster.
  /// `tablets`: its own.
  Status PlanPartition(Batch* batch, const std::vector<const vm::BoundTablet*>& tablets);
  /// Whether it may, as far as the section tells: then launches leave room for that.
  bool MayPartition() const;

  /// Cuts the product of `tiles` tiles and a join table into units of work.
  Status PrepareProduct(Batch* batch, uint32_t tiles);
  /// ... of which it leaves out those that cannot hold a match, as the ranges of their columns tell.
  Status FindUnits(Batch* batch, uint32_t part_rows);
  /// ... and launches the others from the device.
  Status PrepareBuckets(Batch* batch);
  Status LaunchKernel(Batch* batch);

  /// The first launch of a batch. Those before it are finished.
  Status Start(Batch* batch);

  /// From where the blocks stand.
  Status StartAgain(Batch* batch);

  /// The counters before a launch, where they are sent from; sending them alone.
  void SetCounters(Batch* batch);
  Status SendCounters(Batch* batch);
  /// The kernels, and the copies of what they made.
  Status StartLaunch(Batch* batch);

  /// Waits for the launch and adds its time up.
  Status Wait();

  /// Before a launch with marks: clears them. Behind it: adds them to the joins' rows and cycles.
  Status ClearMarks(Batch* batch);
  Status AddMarks(const Batch& batch);

  /// Sees a launched batch through to its end.
  Status Finish(Batch* batch);

  // ---- Some blocks after the others ---------------------------------------------------------------------------------

  /// Room for more groups. The table may have been emptied for that; then only as many blocks run at a time as it has
  /// room for the groups of a tile each: otherwise all of them could fill it together and none get on.
  Status GrowGroups(Batch* batch);
  /// The cursors of the blocks that ran.
  Status FetchCursors(Batch* batch);
  /// REQUIRES: batch.turn > 0; the cursors are here.
  bool IsUnfinished(const Batch& batch, uint32_t block) const;
  bool HasUnfinished(const Batch& batch) const;
  /// Sends the cursors of the next blocks that have not finished, and lets the others rest.
  Status SendTurn(Batch* batch);

  // ---- Aggregates without keys --------------------------------------------------------------------------------------

  Status MergePartials(uint32_t blocks);

  template <class M>
  static void Merge(Partial* to, const Partial& from, vm::Lane* lane) {
    using State = typename M::State;
    const auto state_of = [](const Partial& p) {
      const uint64_t words[] = {static_cast<uint64_t>(p.low), static_cast<uint64_t>(p.high), p.third};
      return vm::FromWords<State>(words);
    };
    State state = state_of(*to);
    M::Merge(state, state_of(from), *lane);
    uint64_t words[3] = {};
    vm::ToWords(state, words);
    to->low = static_cast<int64_t>(words[0]);
    to->high = static_cast<int64_t>(words[1]);
    to->third = words[2];
  }

  Status FinishTotals();

  Status PrepareSink();

  /// Memory of the run for `bytes`, in place of what `buffer` had.
  Status Renew(RunBuffer* buffer, uint64_t bytes);

  // ---- Rows ---------------------------------------------------------------------------------------------------------

  /// Room for `rows` rows of a join table; those that there are stay.
  Status AllocateBuild(uint64_t rows);
  /// Room for `wanted` more rows: a larger buffer, or this one, whose rows go to the host.
  Status GrowBuild(uint64_t wanted);
  Status DrainBuild();

  bool IsBuild() const { return section_.sink == vm::Section::Sink::kJoin; }
  /// The counters of this run's launches, on the device and on the host.
  Control* DeviceControl(const Batch& batch) const {
    return build_ < 0 ? batch.arena->Device<Control>(batch.control)
                      : &gpu_.build_states.As<BuildState>()[build_].control;
  }
  Control& HostControl(const Batch& batch) const {
    return build_ < 0 ? *reinterpret_cast<Control*>(gpu_.host_results.As<uint8_t>() + batch.control)
                      : gpu_.host_build_states.As<BuildState>()[build_].control;
  }

  GpuDevice& gpu_;
  const vm::SectionContext context_;
  DeviceJoins& joins_;
  const int build_;  ///< its place among the builds that run together; -1: no build
  const vm::Section& section_;
  const uint32_t keys_;  ///< of groups
  LoweredProgram lowered_;
  uint32_t added_code_ = 0;  ///< instructions before the section's own in this pass
  GroupStore groups_;
  Batch batches_[kBatches];
  std::deque<Batch*> in_flight_;  ///< they wait for their copies; the first may be under way
  bool first_started_ = false;
  std::vector<PassPlan>
      parted_;  ///< join tables in parts, in the order in which their parts change, the last one fastest
  std::vector<size_t> loaded_;  ///< their parts that are on the device; SIZE_MAX: none
  uint64_t passes_ = 1, pass_ = 0;
  const vm::SectionBinder binder_;
  std::vector<tessera::Result<vm::BoundTablet>> bound_;  ///< of the tablets from bound_from_ on, bound together
  size_t bound_from_ = 0;
  bool binding_is_slow_ = false;
  std::vector<Needs> needs_;  ///< per slot
  vm::RowSet result_;
  std::vector<Partial> totals_;
  RunBuffer direct_groups_;        ///< of the launch: states, then touched
  std::vector<Chunk> row_chunks_;  ///< what planning has to know of the columns of a join table
  RunBuffer steps_, ranges_, units_, found_, buckets_;
  RunBuffer marks_;
  RunBuffer partitioned_[kBatches];           ///< the rows of each batch in the order of a join table's places
  std::vector<std::pair<int, Mark>> joined_;  ///< by join table, in the order of their first launch
  uint64_t cycles_ = 0;                       ///< all that was measured
  GroupWords eager_;                          ///< came with the latest launch's counters
  Control* launched_ = nullptr;
  uint64_t rows_since_normalise_ = 0;
  RowOutput row_output_;    ///< kRows
  Output output_;           ///< where launches write rows
  uint64_t rows_used_ = 0;  ///< of it
  JoinRows build_rows_;
  std::vector<vm::RowSet> host_rows_;  ///< of a join table
  uint64_t rows_on_host_ = 0;
  vm::KeyRange source_keys_;
  bool deferred_ = false;  ///< a build that nobody has waited for
  uint64_t enough_ = UINT64_MAX;
  bool enough_reached_ = false;
};

}  // namespace tessera::kernels
