// Running a section on the GPU: bind tablets, bring their columns to the device, launch the VM kernel, see to what it
// asks for (a larger group table, room for rows), launch again until it is done. README.md, Suspend and resume. Private
// to kernels/.
//
// Start at: SectionRun::AllTablets.
#pragma once

#include <bit>
#include <vector>

#include "kernels/device_joins.h"
#include "kernels/dp_kernel.h"
#include "kernels/gpu_device.h"
#include "kernels/lower.h"
#include "kernels/row_output.h"
#include "vm/bind.h"
#include "vm/meaning.h"
#include "vm/vm.h"

namespace tessera::kernels {

/// The tablets of one launch and all that the device must know of them.
struct Batch {
  std::vector<size_t> numbers;  ///< of the tablets in the table
  std::vector<vm::BoundTablet> tablets;
  std::vector<const uint8_t*> codes, nulls;  ///< [tablet][slot]: device addresses
  std::vector<ColumnCache::Piece*> pinned;
  LaunchPlan plan;
  Launch launch;
  BucketLaunch buckets;      ///< of a dp join
  bool finds_units = false;  ///< the device looks for the units of a product
  uint32_t blocks = 0;
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
  SectionRun(GpuDevice* gpu, const vm::SectionContext& context, const DeviceJoins& joins, int build = -1);
  ~SectionRun();
  SectionRun(const SectionRun&) = delete;
  SectionRun& operator=(const SectionRun&) = delete;

  /// REQUIRES: of the same section and table; called first.
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
  /// Of the table that the rows come from, the key's least and greatest value; low > high: it is not a plain column.
  vm::KeyRange SourceKeys() const { return source_keys_; }
  /// Of the latest launch, which may be under way, on the device; nullptr: there was none.
  Control* launched() const { return launched_; }

 private:
  bool IsCancelled() const { return context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed); }

  // ---- Tablets in
  // ------------------------------------------------------------------------------------------------------

  /// Tablet `number` bound; others behind it with it, by several threads, if that takes long. To be moved from once it
  /// has its place in a launch.
  tessera::Result<vm::BoundTablet>& Bind(size_t number, const vm::BoundTablet* like);
  /// Binds tablets from *next on and brings their columns to the device, until the launch is large enough.
  Status Collect(Batch* batch, size_t* next);

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

  // ---- Launches
  // --------------------------------------------------------------------------------------------------------

  /// Plans the launch and fills the arena. The other batch may be under way.
  Status Prepare(Batch* batch, int arena_number);

  /// Cuts the product of `tiles` tiles and a join table into units of work.
  Status PrepareProduct(Batch* batch, uint32_t tiles);
  /// ... of which it leaves out those that cannot hold a match, as the ranges of their columns tell.
  Status FindUnits(Batch* batch, uint32_t part_rows);
  /// ... and launches the others from the device.
  Status PrepareBuckets(Batch* batch);
  Status LaunchKernel(Batch* batch);

  /// The first launch of a batch. The other batch is finished.
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

  /// Sees a launched batch through to its end.
  Status Finish(Batch* batch);

  // ---- Aggregates without keys
  // -----------------------------------------------------------------------------------------

  Status MergePartials(uint32_t blocks);

  template <class M>
  static void Merge(Partial* to, const Partial& from, vm::Lane* lane) {
    if constexpr (sizeof(typename M::State) == 16) {
      int128_t s = Make128(to->high, to->low);
      M::Merge(s, Make128(from.high, from.low), *lane);
      to->low = Low64(s);
      to->high = High64(s);
    } else {
      auto s = std::bit_cast<typename M::State>(to->low);
      M::Merge(s, std::bit_cast<typename M::State>(from.low), *lane);
      to->low = std::bit_cast<int64_t>(s);
    }
  }

  Status FinishTotals();

  void ResizeResult(uint64_t rows);
  void SetNull(vm::RowColumn* c, uint64_t row);
  /// A group's final value of an aggregate.
  void SetAggregate(size_t k, uint64_t row, int64_t low, int64_t high, bool seen);

  // ---- Groups
  // ----------------------------------------------------------------------------------------------------------

  Status PrepareSink();

  /// Room for `max_groups` in the buffers of the device object; twice as many slots, cleared.
  Status AllocateGroups(uint64_t max_groups);

  /// Makes room for `groups` times `words` in `buffer`; the groups that there are keep their places.
  Status Extend(DeviceBuffer* buffer, uint64_t words, uint64_t groups);

  /// Memory of the run for `bytes`, in place of what `buffer` had.
  Status Renew(RunBuffer* buffer, uint64_t bytes);

  Status TooManyGroups(uint64_t groups, const Status& why) const;

  Status GrowGroups();

  Status Normalise();

  Status FetchGroups();

  Status DecodeGroups(const uint64_t* records, const uint64_t* states, uint64_t first, uint64_t n);

  /// The sum of four parts of 32 bits and more each, the last one signed. false: it does not fit.
  static bool JoinParts(const uint64_t* s, int128_t* sum) {
    // Carry upward first: then the lower three parts have 32 bits, and the last one must, too.
    const uint64_t p1 = s[1] + (s[0] >> 32);
    const uint64_t p2 = s[2] + (p1 >> 32);
    const int64_t top = static_cast<int64_t>(s[3]) + static_cast<int64_t>(p2 >> 32);
    if (top != static_cast<int32_t>(top)) return false;
    const uint64_t low = (p1 << 32) | (s[0] & 0xFFFFFFFFu);
    const int64_t high = static_cast<int64_t>(static_cast<uint64_t>(top) << 32 | (p2 & 0xFFFFFFFFu));
    *sum = Make128(high, static_cast<int64_t>(low));
    return true;
  }

  // ---- Rows
  // ------------------------------------------------------------------------------------------------------------

  /// Room for `rows` rows of a join table; those that there are stay.
  Status AllocateBuild(uint64_t rows);

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
  const DeviceJoins& joins_;
  const int build_;  ///< its place among the builds that run together; -1: no build
  const vm::Section& section_;
  const uint32_t keys_;  ///< of groups
  const LoweredProgram lowered_;
  Batch batches_[2];
  const vm::SectionBinder binder_;
  std::vector<tessera::Result<vm::BoundTablet>> bound_;  ///< of the tablets from bound_from_ on, bound together
  size_t bound_from_ = 0;
  bool binding_is_slow_ = false;
  std::vector<Needs> needs_;  ///< per slot
  vm::RowSet result_;
  std::vector<Partial> totals_;
  GroupTable groups_;
  RunBuffer direct_groups_;        ///< of the launch: states, then touched
  std::vector<Chunk> row_chunks_;  ///< what planning has to know of the columns of a join table
  RunBuffer steps_, ranges_, units_, found_, buckets_;
  uint32_t groups_used_ = 0;
  uint64_t eager_groups_ = 0;  ///< whose records, then states, came with the latest launch's counters
  uint64_t* eager_records_ = nullptr;
  Control* launched_ = nullptr;
  uint64_t rows_since_normalise_ = 0;
  RowOutput row_output_;    ///< kRows
  Output output_;           ///< where launches write rows
  uint64_t rows_used_ = 0;  ///< of it
  JoinRows build_rows_;
  vm::KeyRange source_keys_;
  bool deferred_ = false;  ///< a build that nobody has waited for
  uint64_t enough_ = UINT64_MAX;
  bool enough_reached_ = false;
};

}  // namespace tessera::kernels
