// Running a section on the GPU: bind tablets, bring their columns to the device, launch the VM kernel, see to what it
// asks for (a larger group table, room for rows), launch again until it is done. README.md, Suspend and resume.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "kernels/column_cache.h"
#include "kernels/device.h"
#include "kernels/kernels.h"
#include "kernels/lower.h"
#include "kernels/vm_kernel.h"
#include "vm/bind.h"
#include "vm/lane_error.h"
#include "vm/meaning.h"

namespace tessera {
namespace kernels {
namespace {

/// A launch takes tablets until this much had to be copied for them, so that the next copies run beside it.
constexpr uint64_t kCopiedPerLaunch = uint64_t{256} << 20;
/// Rows of one launch: counters of blocks have 32 bits, and so do the halves of sums.
constexpr uint64_t kRowsPerLaunch = uint64_t{1} << 31;
constexpr uint32_t kFirstGroups = 1 << 15;
constexpr uint32_t kMaxGroups = 0xF0000000u;
constexpr uint64_t kGroupsPerCopy = 1 << 17;
constexpr uint64_t kOutputBytes = uint64_t{32} << 20;
/// How long the host spins for a launch before it sleeps between looks: most take less than this.
constexpr auto kSpin = std::chrono::milliseconds(2);

using vm::Opcode;
using vm::Section;

Status Cancelled() { return {ErrorCode::kCancelled, "canceling statement due to user request"}; }

/// The tablets of one launch and all that the device must know of them.
struct Batch {
  std::vector<size_t> numbers;  ///< of the tablets in the table
  std::vector<vm::BoundTablet> tablets;
  std::vector<TabletAddresses> addresses;
  std::vector<ColumnCache::Piece*> pinned;
  LaunchPlan plan;
  Launch launch;
  uint32_t blocks = 0;
};

/// Small things that travel to the device together: one copy instead of a dozen.
class Arena {
 public:
  void Clear() { bytes_ = 0; }
  /// Room for `bytes`; returns its offset.
  size_t Add(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ += (bytes + 127) / 128 * 128;
    return offset;
  }
  /// Memory for what was added. REQUIRES: no copy from here is under way.
  Status Allocate() {
    TESSERA_TRY(host_.Reserve(bytes_));
    TESSERA_TRY(device_.Reserve(bytes_));
    memset(host_.As<uint8_t>(), 0, bytes_);
    return Status::Ok();
  }
  uint8_t* Host(size_t offset) const { return host_.As<uint8_t>() + offset; }
  template <class T>
  T* Device(size_t offset) const {
    return reinterpret_cast<T*>(device_.As<uint8_t>() + offset);
  }
  Status Send(cudaStream_t stream) {
    CUDA_TRY(cudaMemcpyAsync(device_.As<uint8_t>(), host_.As<uint8_t>(), bytes_, cudaMemcpyHostToDevice, stream));
    return Status::Ok();
  }

 private:
  size_t bytes_ = 0;
  PinnedBuffer host_;
  DeviceBuffer device_;
};

/// Calls f.template operator()<meaning::Op>() for an aggregate of shape Fold.
template <class F>
void WithFold(Opcode op, F f) {
  namespace m = vm::meaning;
  switch (op) {
    case Opcode::SumI:
      return f.template operator()<m::SumI>();
    case Opcode::SumF:
      return f.template operator()<m::SumF>();
    case Opcode::SumW:
      return f.template operator()<m::SumW>();
    case Opcode::MinI:
      return f.template operator()<m::MinI>();
    case Opcode::MaxI:
      return f.template operator()<m::MaxI>();
    case Opcode::MinF:
      return f.template operator()<m::MinF>();
    case Opcode::MaxF:
      return f.template operator()<m::MaxF>();
    case Opcode::MinW:
      return f.template operator()<m::MinW>();
    case Opcode::MaxW:
      return f.template operator()<m::MaxW>();
    default:
      break;
  }
}

bool IsCount(Opcode op) { return op == Opcode::CountRows || op == Opcode::Count || op == Opcode::CountW; }
bool IsWide(const SqlType& t) { return t.storage() == StorageClass::kWide; }

class GpuDevice final : public Gpu {
 public:
  GpuDevice(int ordinal, const GpuOptions& options, GpuInfo info, const DeviceLimits& limits)
      : ordinal_(ordinal), options_(options), info_(std::move(info)), limits_(limits) {}

  ~GpuDevice() override {
    if (!open_) return;
    cudaSetDevice(ordinal_);
    cudaStreamSynchronize(stream_);
    for (cudaEvent_t e : {begin_, end_, done_}) cudaEventDestroy(e);
    cudaStreamDestroy(stream_);
    cudaStreamDestroy(cancel_stream_);
  }

  const GpuInfo& info() const override { return info_; }
  GpuMemory memory() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return {cache_.bytes(), open_ ? cache_.budget() : 0};
  }
  Status DropCache() override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!open_) return Status::Ok();
    CUDA_TRY(cudaSetDevice(ordinal_));
    return cache_.Clear();
  }
  Result<double> MeasureBandwidth() override {
    std::lock_guard<std::mutex> lock(mutex_);
    TESSERA_TRY(OpenDevice());
    constexpr size_t kBytes = size_t{1} << 30;  // twenty times the L2 cache
    DeviceBuffer from, to;
    TESSERA_TRY(from.Reserve(kBytes));
    TESSERA_TRY(to.Reserve(kBytes));
    CUDA_TRY(cudaMemsetAsync(from.As<void>(), 0x5A, kBytes, stream_));
    float best = 0;
    for (int i = 0; i < 6; ++i) {
      CUDA_TRY(cudaEventRecord(begin_, stream_));
      CUDA_TRY(cudaMemcpyAsync(to.As<void>(), from.As<void>(), kBytes, cudaMemcpyDeviceToDevice, stream_));
      CUDA_TRY(cudaEventRecord(end_, stream_));
      CUDA_TRY(cudaEventSynchronize(end_));
      float milliseconds = 0;
      CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin_, end_));
      if (i == 0 || milliseconds < best) best = milliseconds;
    }
    return 2.0 * static_cast<double>(kBytes) / (static_cast<double>(best) / 1e3);
  }
  Status CanRun(const vm::Program& program, int section) const override { return CanLower(program, section); }

  Result<vm::RowSet> RunSection(const vm::SectionContext& context) override;

 private:
  class Run;

  /// Makes the context and what every run needs, the first time.
  Status OpenDevice() {
    CUDA_TRY(cudaSetDevice(ordinal_));
    if (open_) return Status::Ok();
    size_t free = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&free, &total));
    const uint64_t budget =
        options_.memory_bytes != 0 ? std::min<uint64_t>(options_.memory_bytes, free) : free / 10 * 9;
    CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CUDA_TRY(cudaStreamCreateWithFlags(&cancel_stream_, cudaStreamNonBlocking));
    CUDA_TRY(cudaEventCreate(&begin_));
    CUDA_TRY(cudaEventCreate(&end_));
    CUDA_TRY(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
    for (bool lean : {false, true}) {
      CUDA_TRY(cudaFuncSetAttribute(VmKernelFor(lean), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(limits_.shared_per_block)));
    }
    TESSERA_TRY(cache_.Open(budget));
    TESSERA_TRY(control_.Reserve(sizeof(Control)));
    TESSERA_TRY(host_control_.Reserve(sizeof(Control)));
    TESSERA_TRY(one_.Reserve(sizeof(uint32_t)));
    *one_.As<uint32_t>() = 1;
    open_ = true;
    return Status::Ok();
  }

  /// Ends the launch that is under way, if there is one. The word lies in device memory: some 400 blocks that ask for
  /// one in host memory before each tile would load the link.
  Status TellToStop() {
    CUDA_TRY(cudaMemcpyAsync(&control_.As<Control>()->stop, one_.As<void>(), sizeof(uint32_t), cudaMemcpyHostToDevice,
                             cancel_stream_));
    return Status::Ok();
  }

  /// Room in `buffer`, at the expense of cached columns if need be.
  Status ReserveEvicting(DeviceBuffer* buffer, size_t bytes) {
    Status status = buffer->Reserve(bytes);
    if (status.ok() || status.code() != ErrorCode::kResource) return status;
    TESSERA_TRY(cache_.Clear());
    return buffer->Reserve(bytes);
  }

  const int ordinal_;
  const GpuOptions options_;
  const GpuInfo info_;
  const DeviceLimits limits_;
  mutable std::mutex mutex_;
  bool open_ = false;
  cudaStream_t stream_ = nullptr, cancel_stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr, done_ = nullptr;
  ColumnCache cache_;
  Arena arenas_[2];
  DeviceBuffer control_, cursors_, partials_, scratch_;
  DeviceBuffer group_slots_, group_records_, group_states_;
  DeviceBuffer output_;
  PinnedBuffer host_control_, host_partials_, host_rows_, one_;
};

/// One section.
class GpuDevice::Run {
 public:
  Run(GpuDevice* gpu, const vm::SectionContext& context)
      : gpu_(*gpu),
        context_(context),
        section_(context.program->sections[static_cast<size_t>(context.section)]),
        lowered_(LowerProgram(*context.program, context.section, context.strings)) {
    for (const SqlType& t : section_.columns) result_.columns.push_back({t, {}, {}, {}});
    if (section_.sink == Section::Sink::kRows && section_.order.empty() && section_.limit >= 0) {
      enough_ = static_cast<uint64_t>(section_.limit) + static_cast<uint64_t>(section_.offset);
    }
    totals_.resize(lowered_.folds.size());
    for (size_t k = 0; k < totals_.size(); ++k) totals_[k] = {lowered_.folds[k].low, lowered_.folds[k].high, 0, 0};
  }
  ~Run() {
    for (Batch& b : batches_) gpu_.cache_.Unpin(&b.pinned);
  }

  Status AllTablets() {
    const TableInfo& table = *context_.table;
    vm::SectionStatistics& stats = *context_.statistics;
    stats.tablets = table.tablets.size();
    TESSERA_TRY(PrepareSink());
    bool under_way = false;  // the other batch has been launched
    size_t number = 0, next = 0;
    while (next < table.tablets.size() && !enough_reached_) {
      Batch& batch = batches_[number % 2];
      TESSERA_TRY(Collect(&batch, &next));
      if (!batch.tablets.empty()) {
        TESSERA_TRY(Prepare(&batch, static_cast<int>(number % 2)));
      }
      if (under_way) TESSERA_TRY(Finish(&batches_[(number + 1) % 2]));
      under_way = !batch.tablets.empty() && !enough_reached_;
      if (under_way) {
        TESSERA_TRY(Start(&batch));
        ++number;
      }
    }
    if (under_way) TESSERA_TRY(Finish(&batches_[(number + 1) % 2]));
    return Status::Ok();
  }

  tessera::Result<vm::RowSet> Result() {
    if (section_.sink == Section::Sink::kRows) {
      TESSERA_TRY(DrainRows());
    } else if (section_.keys > 0) {
      TESSERA_TRY(FetchGroups());
    } else {
      TESSERA_TRY(FinishTotals());
    }
    return std::move(result_);
  }

 private:
  bool IsCancelled() const { return context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed); }

  // ---- Tablets in
  // ------------------------------------------------------------------------------------------------------

  /// Binds tablets from *next on and brings their columns to the device, until the launch is large enough.
  Status Collect(Batch* batch, size_t* next) {
    const TableInfo& table = *context_.table;
    vm::SectionStatistics& stats = *context_.statistics;
    batch->numbers.clear();
    batch->tablets.clear();
    batch->addresses.clear();
    uint64_t copied = 0, bytes = 0, rows = 0;
    while (*next < table.tablets.size() && copied < kCopiedPerLaunch) {
      if (IsCancelled()) return Cancelled();
      const std::shared_ptr<const Tablet>& tablet = table.tablets[*next];
      if (rows + tablet->rows() > kRowsPerLaunch) break;
      TESSERA_ASSIGN(vm::BoundTablet bound,
                     vm::BindTablet(*context_.program, context_.section, *tablet, context_.strings, {}));
      if (bound.skip) {
        ++stats.tablets_skipped;
        ++*next;
        continue;
      }
      // Two launches may hold pieces at once: half of the budget for each.
      const uint64_t size = DeviceBytes(bound);
      if (!batch->tablets.empty() && bytes + size > gpu_.cache_.budget() / 2) break;
      bytes += size;
      rows += bound.rows;
      batch->tablets.push_back(std::move(bound));
      batch->numbers.push_back(*next);
      TESSERA_TRY(Upload(batch, batch->tablets.size() - 1, &copied));
      stats.rows_in += batch->tablets.back().rows;
      stats.bytes_read += batch->tablets.back().encoded_bytes;
      ++*next;
    }
    stats.bytes_transferred += copied;
    return Status::Ok();
  }

  struct Needs {
    bool codes = false, nulls = false;
  };
  /// Which streams of a slot's chunk the section reads in this tablet.
  Needs NeedsOf(const vm::BoundTablet& bound, size_t slot) const {
    Needs needs;
    const vm::BoundSlot& b = bound.slots[slot];
    if (lowered_.slot_values[slot] && !b.all_null) {
      needs.codes = b.width != 0;
      needs.nulls = b.null_bytes != nullptr;
    }
    for (const vm::BoundPredicate& p : bound.predicates) {
      if (static_cast<size_t>(p.slot) != slot) continue;
      using Kind = vm::BoundPredicate::Kind;
      needs.codes |= p.kind == Kind::kRange || (p.kind == Kind::kSet && !p.by_row);
      needs.nulls |= p.kind == Kind::kNulls;
    }
    return needs;
  }
  uint64_t DeviceBytes(const vm::BoundTablet& bound) const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < bound.slots.size(); ++i) {
      const Needs needs = NeedsOf(bound, i);
      if (needs.codes) bytes += bound.chunks[i]->codes_bytes;
      if (needs.nulls) bytes += bound.chunks[i]->rows;
    }
    return bytes;
  }

  Status Upload(Batch* batch, size_t at, uint64_t* copied) {
    const std::shared_ptr<const Tablet>& tablet = context_.table->tablets[batch->numbers[at]];
    const vm::BoundTablet& bound = batch->tablets[at];
    TabletAddresses a;
    a.codes.resize(bound.slots.size());
    a.nulls.resize(bound.slots.size());
    a.maps.resize(bound.slots.size());
    a.map_nulls.resize(bound.slots.size());
    a.sets.resize(bound.predicates.size());
    for (size_t i = 0; i < bound.slots.size(); ++i) {
      const Needs needs = NeedsOf(bound, i);
      const int column = section_.slots[i].column;
      const Chunk& chunk = *bound.chunks[i];
      if (needs.codes) {
        TESSERA_ASSIGN(a.codes[i], gpu_.cache_.Fetch(tablet, column, ColumnCache::Stream::kCodes, chunk.codes,
                                                     chunk.codes_bytes, &batch->pinned, copied));
      }
      if (needs.nulls) {
        TESSERA_ASSIGN(a.nulls[i], gpu_.cache_.Fetch(tablet, column, ColumnCache::Stream::kNulls, chunk.null_bytes,
                                                     chunk.rows, &batch->pinned, copied));
      }
    }
    batch->addresses.push_back(std::move(a));
    return Status::Ok();
  }

  // ---- Launches
  // --------------------------------------------------------------------------------------------------------

  /// Plans the launch and fills the arena. The other batch may be under way.
  Status Prepare(Batch* batch, int arena_number) {
    std::vector<const vm::BoundTablet*> tablets;
    for (const vm::BoundTablet& t : batch->tablets) tablets.push_back(&t);
    TESSERA_ASSIGN(batch->plan, PlanLaunch(section_, lowered_, tablets, gpu_.limits_));
    const LaunchPlan& plan = batch->plan;
    Launch& launch = batch->launch;
    launch = Launch();
    Arena& arena = gpu_.arenas_[arena_number];
    arena.Clear();
    const size_t n = tablets.size();
    const size_t code = arena.Add(plan.code.size() * sizeof(DeviceInstruction));
    const size_t folds = arena.Add(plan.folds.size() * sizeof(DeviceInstruction));
    const size_t staged = arena.Add(plan.staged.size() * sizeof(StagedSlot));
    const size_t records = arena.Add(n * plan.record_bytes);
    const size_t first_tile = arena.Add(n * sizeof(uint32_t));
    const size_t rows = arena.Add(n * sizeof(uint32_t));
    const size_t places = arena.Add(lowered_.outputs.size() * sizeof(uint32_t));
    const size_t highs = arena.Add(lowered_.outputs.size() * sizeof(uint32_t));
    const size_t initial = arena.Add(lowered_.initial_state.size() * sizeof(uint64_t));
    // Maps and sets of each tablet.
    struct Piece {
      const void* from;
      size_t bytes, offset;
    };
    std::vector<Piece> pieces;
    for (const vm::BoundTablet& t : batch->tablets) {
      for (size_t i = 0; i < t.slots.size(); ++i) {
        if (t.slots[i].map != nullptr)
          pieces.push_back({t.slots[i].map, t.map_entries[i] * 8, arena.Add(t.map_entries[i] * 8)});
        if (t.slots[i].map_null != nullptr)
          pieces.push_back({t.slots[i].map_null, t.map_entries[i], arena.Add(t.map_entries[i])});
      }
      for (size_t i = 0; i < t.predicates.size(); ++i) {
        if (t.predicates[i].set != nullptr)
          pieces.push_back({t.predicates[i].set, t.set_bytes[i], arena.Add(t.set_bytes[i])});
      }
    }
    TESSERA_TRY(arena.Allocate());
    memcpy(arena.Host(code), plan.code.data(), plan.code.size() * sizeof(DeviceInstruction));
    memcpy(arena.Host(folds), plan.folds.data(), plan.folds.size() * sizeof(DeviceInstruction));
    memcpy(arena.Host(staged), plan.staged.data(), plan.staged.size() * sizeof(StagedSlot));
    memcpy(arena.Host(initial), lowered_.initial_state.data(), lowered_.initial_state.size() * sizeof(uint64_t));
    for (const Piece& p : pieces) memcpy(arena.Host(p.offset), p.from, p.bytes);
    size_t piece = 0;
    uint32_t tiles = 0;
    uint32_t* tile_numbers = reinterpret_cast<uint32_t*>(arena.Host(first_tile));
    for (size_t t = 0; t < n; ++t) {
      const vm::BoundTablet& bound = batch->tablets[t];
      TabletAddresses& a = batch->addresses[t];
      for (size_t i = 0; i < bound.slots.size(); ++i) {
        if (bound.slots[i].map != nullptr) a.maps[i] = arena.Device<int64_t>(pieces[piece++].offset);
        if (bound.slots[i].map_null != nullptr) a.map_nulls[i] = arena.Device<uint8_t>(pieces[piece++].offset);
      }
      for (size_t i = 0; i < bound.predicates.size(); ++i) {
        if (bound.predicates[i].set != nullptr) a.sets[i] = arena.Device<uint8_t>(pieces[piece++].offset);
      }
      FillRecord(bound, plan, a, arena.Host(records) + t * plan.record_bytes);
      tile_numbers[t] = tiles;
      reinterpret_cast<uint32_t*>(arena.Host(rows))[t] = bound.rows;
      tiles += (bound.rows + kTileRows - 1) / kTileRows;
    }

    launch.code = arena.Device<DeviceInstruction>(code);
    launch.code_length = static_cast<uint32_t>(plan.code.size());
    launch.slots = static_cast<uint32_t>(section_.slots.size());
    launch.records = arena.Device<uint8_t>(records);
    launch.record_bytes = plan.record_bytes;
    launch.record_staged = plan.record_staged;
    launch.two_passes = lowered_.two_passes;
    launch.tablets = static_cast<uint32_t>(n);
    launch.first_tile = arena.Device<uint32_t>(first_tile);
    launch.tablet_rows = arena.Device<uint32_t>(rows);
    launch.tiles = tiles;
    launch.staged_count = static_cast<uint32_t>(plan.staged.size());
    launch.staged = arena.Device<StagedSlot>(staged);
    launch.layout = plan.layout;
    launch.aggregates = static_cast<uint32_t>(plan.folds.size());
    launch.folds = arena.Device<DeviceInstruction>(folds);
    launch.keys = static_cast<uint32_t>(section_.keys);
    launch.private_groups = plan.private_groups;
    launch.direct = plan.direct;
    std::copy(std::begin(plan.direct_keys), std::end(plan.direct_keys), launch.direct_keys);
    for (size_t k = 0; k < lowered_.keys.size(); ++k) launch.key_places[k] = plan.places[lowered_.keys[k]];
    launch.groups.initial_state = arena.Device<uint64_t>(initial);
    launch.output.places = arena.Device<uint32_t>(places);
    launch.output.highs = arena.Device<uint32_t>(highs);
    uint32_t wide = 0;
    for (size_t c = 0; c < lowered_.outputs.size(); ++c) {
      reinterpret_cast<uint32_t*>(arena.Host(places))[c] = plan.places[lowered_.outputs[c]];
      reinterpret_cast<uint32_t*>(arena.Host(highs))[c] = wide;
      if (IsWide(section_.columns[c])) ++wide;
    }
    int per_multiprocessor = 0;
    CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, VmKernelFor(plan.lean), kThreads + 32,
                                                           plan.layout.bytes));
    if (per_multiprocessor < 1)
      return {ErrorCode::kInternal, "a block of the VM kernel does not fit on a multiprocessor"};
    batch->blocks = std::min(tiles, static_cast<uint32_t>(per_multiprocessor * gpu_.info_.multiprocessors));
    return arena.Send(gpu_.stream_);
  }

  /// The first launch of a batch. The other batch is finished.
  Status Start(Batch* batch) {
    // Sums of halves hold 2^32 rows.
    uint64_t rows = 0;
    for (const vm::BoundTablet& t : batch->tablets) rows += t.rows;
    if (section_.keys > 0 && rows_since_normalise_ + rows > uint64_t{1} << 32) {
      TESSERA_TRY(Normalise());
      rows_since_normalise_ = 0;
    }
    rows_since_normalise_ += rows;
    // Direct groups enter the table when a block ends: there must be room for all of them.
    while (batch->plan.direct && groups_.max_groups < uint64_t{groups_used_} + batch->plan.private_groups)
      TESSERA_TRY(GrowGroups());
    TESSERA_TRY(gpu_.ReserveEvicting(&gpu_.scratch_, batch->blocks * batch->plan.scratch_bytes));
    TESSERA_TRY(gpu_.cursors_.Reserve(batch->blocks * kWarps * sizeof(uint32_t)));
    const size_t partials = section_.keys == 0 ? batch->blocks * lowered_.folds.size() * sizeof(Partial) : 0;
    TESSERA_TRY(gpu_.partials_.Reserve(partials));
    TESSERA_TRY(gpu_.host_partials_.Reserve(partials));
    CUDA_TRY(cudaMemsetAsync(gpu_.cursors_.As<void>(), 0, batch->blocks * kWarps * sizeof(uint32_t), gpu_.stream_));
    TESSERA_TRY(gpu_.cache_.Finish(gpu_.stream_));
    return StartAgain(batch);
  }

  /// From where the blocks stand.
  Status StartAgain(Batch* batch) {
    Launch& launch = batch->launch;
    launch.cursors = gpu_.cursors_.As<uint32_t>();
    launch.control = gpu_.control_.As<Control>();
    launch.scratch = gpu_.scratch_.As<uint8_t>();
    launch.scratch_bytes = batch->plan.scratch_bytes;
    launch.partials = gpu_.partials_.As<Partial>();
    const uint64_t* initial = launch.groups.initial_state;
    launch.groups = groups_;
    launch.groups.initial_state = initial;
    launch.output.low = output_.low;
    launch.output.high = output_.high;
    launch.output.null = output_.null;
    launch.output.capacity = output_.capacity;
    launch.output.columns = output_.columns;
    launch.enough = enough_ == UINT64_MAX ? ~0ull : enough_ - result_.rows;
    Control& control = *gpu_.host_control_.As<Control>();
    memset(&control, 0, sizeof control);
    control.groups = groups_used_;
    control.rows = rows_used_;
    control.rows_valid = UINT64_MAX;
    CUDA_TRY(cudaMemcpyAsync(gpu_.control_.As<void>(), &control, sizeof control, cudaMemcpyHostToDevice, gpu_.stream_));
    CUDA_TRY(cudaEventRecord(gpu_.begin_, gpu_.stream_));
    void* arguments[] = {&launch};
    CUDA_TRY(cudaLaunchKernel(VmKernelFor(batch->plan.lean), dim3(batch->blocks), dim3(kThreads + 32), arguments,
                              batch->plan.layout.bytes, gpu_.stream_));
    CUDA_TRY(cudaEventRecord(gpu_.end_, gpu_.stream_));
    CUDA_TRY(cudaMemcpyAsync(&control, gpu_.control_.As<void>(), sizeof control, cudaMemcpyDeviceToHost, gpu_.stream_));
    if (section_.keys == 0 && !lowered_.folds.empty()) {
      CUDA_TRY(cudaMemcpyAsync(gpu_.host_partials_.As<void>(), gpu_.partials_.As<void>(),
                               batch->blocks * lowered_.folds.size() * sizeof(Partial), cudaMemcpyDeviceToHost,
                               gpu_.stream_));
    }
    CUDA_TRY(cudaEventRecord(gpu_.done_, gpu_.stream_));
    return Status::Ok();
  }

  /// Waits for the launch; passes a wish to cancel on to it.
  Status Wait() {
    const auto start = std::chrono::steady_clock::now();
    bool told = false;
    for (;;) {
      const cudaError_t state = cudaEventQuery(gpu_.done_);
      if (state == cudaSuccess) break;
      if (state != cudaErrorNotReady) return CudaStatus(state, "cudaEventQuery", __FILE__, __LINE__);
      if (IsCancelled() && !told) {
        TESSERA_TRY(gpu_.TellToStop());
        told = true;
      }
      if (std::chrono::steady_clock::now() - start > kSpin) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (told) CUDA_TRY(cudaStreamSynchronize(gpu_.cancel_stream_));
    float milliseconds = 0;
    CUDA_TRY(cudaEventElapsedTime(&milliseconds, gpu_.begin_, gpu_.end_));
    context_.statistics->kernel_milliseconds += static_cast<double>(milliseconds);
    return told || IsCancelled() ? Cancelled() : Status::Ok();
  }

  /// Sees a launched batch through to its end.
  Status Finish(Batch* batch) {
    for (;;) {
      TESSERA_TRY(Wait());
      const Control& control = *gpu_.host_control_.As<Control>();
      if ((control.reasons & kFailed) != 0) {
        return vm::LaneErrorStatus(static_cast<vm::LaneError>(control.error_code),
                                   section_.code[control.error_address]);
      }
      groups_used_ = std::min(control.groups, groups_.max_groups);
      rows_used_ = std::min<uint64_t>(control.rows, control.rows_valid);
      if (section_.sink == Section::Sink::kGroups && section_.keys == 0) TESSERA_TRY(MergePartials(batch->blocks));
      if ((control.reasons & kEnough) != 0) {
        enough_reached_ = true;
        break;
      }
      if (control.reasons == 0) break;
      const uint64_t wanted = control.rows_wanted;
      if ((control.reasons & kGrow) != 0) TESSERA_TRY(GrowGroups());
      if ((control.reasons & kOutputFull) != 0) {
        TESSERA_TRY(DrainRows());
        if (wanted > output_.capacity) TESSERA_TRY(AllocateOutput(wanted));
      }
      TESSERA_TRY(StartAgain(batch));
    }
    gpu_.cache_.Unpin(&batch->pinned);
    return Status::Ok();
  }

  // ---- Aggregates without keys
  // -----------------------------------------------------------------------------------------

  Status MergePartials(uint32_t blocks) {
    const Partial* partials = gpu_.host_partials_.As<Partial>();
    for (size_t k = 0; k < totals_.size(); ++k) {
      const Opcode op = section_.aggregates[k].op;
      vm::Lane lane;
      for (uint32_t b = 0; b < blocks; ++b) {
        const Partial& p = partials[b * totals_.size() + k];
        if (p.count == 0) continue;
        totals_[k].count += p.count;
        WithFold(op, [&]<class M>() { Merge<M>(&totals_[k], p, &lane); });
      }
      if (lane.error != vm::LaneError::kNone) return vm::LaneErrorStatus(lane.error, {});
    }
    return Status::Ok();
  }

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

  Status FinishTotals() {
    ResizeResult(1);
    for (size_t k = 0; k < totals_.size(); ++k) {
      const Partial& t = totals_[k];
      SetAggregate(k, 0, IsCount(section_.aggregates[k].op) ? static_cast<int64_t>(t.count) : t.low, t.high,
                   t.count != 0);
    }
    return Status::Ok();
  }

  void ResizeResult(uint64_t rows) {
    result_.rows = rows;
    for (vm::RowColumn& c : result_.columns) {
      c.low.resize(rows);
      if (IsWide(c.type)) c.high.resize(rows);
    }
  }
  void SetNull(vm::RowColumn* c, uint64_t row) {
    c->null.resize(result_.rows);
    c->null[row] = 1;
  }
  /// A group's final value of an aggregate.
  void SetAggregate(size_t k, uint64_t row, int64_t low, int64_t high, bool seen) {
    vm::RowColumn& c = result_.columns[static_cast<size_t>(section_.keys) + k];
    c.low[row] = low;
    if (IsWide(c.type)) c.high[row] = high;
    if (!seen && !IsCount(section_.aggregates[k].op)) SetNull(&c, row);
  }

  // ---- Groups
  // ----------------------------------------------------------------------------------------------------------

  Status PrepareSink() {
    if (section_.sink == Section::Sink::kRows) {
      output_.columns = static_cast<uint32_t>(section_.columns.size());
      return AllocateOutput(kSliceRows);
    }
    if (section_.keys == 0) return Status::Ok();
    groups_.record_words = lowered_.record_words;
    groups_.state_words = lowered_.state_words;
    groups_.lock_word = lowered_.lock_word;
    return AllocateGroups(kFirstGroups);
  }

  /// Room for `max_groups` in the buffers of the device object; twice as many slots, cleared.
  Status AllocateGroups(uint64_t max_groups) {
    const uint64_t slots = std::bit_ceil(2 * max_groups);
    Status status = gpu_.ReserveEvicting(&gpu_.group_slots_, slots * 8);
    if (status.ok()) status = Extend(&gpu_.group_records_, groups_.record_words, max_groups);
    if (status.ok()) status = Extend(&gpu_.group_states_, groups_.state_words, max_groups);
    if (!status.ok()) return TooManyGroups(max_groups, status);
    groups_.max_groups = static_cast<uint32_t>(max_groups);
    groups_.slot_mask = slots - 1;
    groups_.slots = gpu_.group_slots_.As<uint64_t>();
    groups_.records = gpu_.group_records_.As<uint64_t>();
    groups_.states = gpu_.group_states_.As<uint64_t>();
    CUDA_TRY(cudaMemsetAsync(groups_.slots, 0, slots * 8, gpu_.stream_));
    return Status::Ok();
  }

  /// Makes room for `groups` times `words` in `buffer`; the groups that there are keep their places.
  Status Extend(DeviceBuffer* buffer, uint64_t words, uint64_t groups) {
    if (groups * words * 8 <= buffer->bytes()) return Status::Ok();
    DeviceBuffer larger;
    TESSERA_TRY(gpu_.ReserveEvicting(&larger, groups * words * 8));
    if (groups_used_ > 0) {
      CUDA_TRY(cudaMemcpyAsync(larger.As<void>(), buffer->As<void>(), groups_used_ * words * 8,
                               cudaMemcpyDeviceToDevice, gpu_.stream_));
      CUDA_TRY(cudaStreamSynchronize(gpu_.stream_));
    }
    swap(larger, *buffer);
    return Status::Ok();
  }

  Status TooManyGroups(uint64_t groups, const Status& why) const {
    if (why.code() != ErrorCode::kResource) return why;
    return {ErrorCode::kResource,
            "the group table does not fit the GPU: " + std::to_string(groups) + " groups (" + why.message() + ")",
            "Use --device host."};
  }

  Status GrowGroups() {
    if (groups_.max_groups >= kMaxGroups / 8)
      return {ErrorCode::kResource, "more groups than a GPU's group table has", "Use --device host."};
    TESSERA_TRY(AllocateGroups(uint64_t{groups_.max_groups} * 8));
    CUDA_TRY(StartRehash(groups_, groups_used_, gpu_.stream_));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream_));
    return Status::Ok();
  }

  Status Normalise() {
    if (groups_used_ == 0 || (lowered_.narrow_sums.empty() && lowered_.wide_sums.empty())) return Status::Ok();
    std::vector<uint32_t> words = lowered_.narrow_sums;
    words.insert(words.end(), lowered_.wide_sums.begin(), lowered_.wide_sums.end());
    DeviceBuffer device_words;
    TESSERA_TRY(device_words.Reserve(words.size() * sizeof(uint32_t)));
    CUDA_TRY(cudaMemcpyAsync(device_words.As<void>(), words.data(), words.size() * sizeof(uint32_t),
                             cudaMemcpyHostToDevice, gpu_.stream_));
    CUDA_TRY(StartNormalise(groups_, groups_used_, device_words.As<uint32_t>(), static_cast<uint32_t>(words.size()),
                            static_cast<uint32_t>(lowered_.narrow_sums.size()), gpu_.stream_));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream_));
    return Status::Ok();
  }

  Status FetchGroups() {
    ResizeResult(groups_used_);
    for (uint64_t first = 0; first < groups_used_; first += kGroupsPerCopy) {
      const uint64_t n = std::min(kGroupsPerCopy, groups_used_ - first);
      const uint64_t record_bytes = n * groups_.record_words * 8, state_bytes = n * groups_.state_words * 8;
      TESSERA_TRY(gpu_.host_rows_.Reserve(record_bytes + state_bytes));
      CUDA_TRY(cudaMemcpyAsync(gpu_.host_rows_.As<uint8_t>(), groups_.records + first * groups_.record_words,
                               record_bytes, cudaMemcpyDeviceToHost, gpu_.stream_));
      CUDA_TRY(cudaMemcpyAsync(gpu_.host_rows_.As<uint8_t>() + record_bytes,
                               groups_.states + first * groups_.state_words, state_bytes, cudaMemcpyDeviceToHost,
                               gpu_.stream_));
      CUDA_TRY(cudaStreamSynchronize(gpu_.stream_));
      const uint64_t* records = gpu_.host_rows_.As<uint64_t>();
      TESSERA_TRY(DecodeGroups(records, records + n * groups_.record_words, first, n));
    }
    return Status::Ok();
  }

  Status DecodeGroups(const uint64_t* records, const uint64_t* states, uint64_t first, uint64_t n) {
    size_t word = 1;
    for (size_t k = 0; k < static_cast<size_t>(section_.keys); ++k) {
      vm::RowColumn& c = result_.columns[k];
      const bool wide = IsWide(c.type);
      for (uint64_t g = 0; g < n; ++g) {
        const uint64_t* r = records + g * groups_.record_words;
        c.low[first + g] = static_cast<int64_t>(r[word]);
        if (wide) c.high[first + g] = static_cast<int64_t>(r[word + 1]);
        if ((r[0] >> k & 1) != 0) SetNull(&c, first + g);
      }
      word += wide ? 2 : 1;
    }
    for (size_t k = 0; k < lowered_.folds.size(); ++k) {
      const Opcode op = section_.aggregates[k].op;
      for (uint64_t g = 0; g < n; ++g) {
        const uint64_t* group = states + g * groups_.state_words;
        const uint64_t* s = group + lowered_.folds[k].state;
        const bool seen = (group[k / 64] >> (k % 64) & 1) != 0;
        int64_t low = static_cast<int64_t>(s[0]), high = 0;
        if (op == Opcode::SumI) {
          const int128_t sum =
              static_cast<int128_t>(static_cast<int64_t>(s[1])) * (int128_t{1} << 32) + static_cast<int128_t>(s[0]);
          low = Low64(sum);
          high = High64(sum);
        } else if (op == Opcode::SumW) {
          int128_t sum;
          if (!JoinParts(s, &sum)) return vm::LaneErrorStatus(vm::LaneError::kWideOverflow, {});
          low = Low64(sum);
          high = High64(sum);
        } else if (op == Opcode::MinW || op == Opcode::MaxW) {
          high = static_cast<int64_t>(s[1]);
        } else if (op == Opcode::MinF || op == Opcode::MaxF) {
          low = std::bit_cast<int64_t>(FromOrderedFloat(s[0]));
        }
        SetAggregate(k, first + g, low, high, seen);
      }
    }
    return Status::Ok();
  }

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

  Status AllocateOutput(uint64_t least_rows) {
    uint64_t wide = 0;
    for (const SqlType& t : section_.columns) wide += IsWide(t) ? 1 : 0;
    const uint64_t columns = section_.columns.size();
    const uint64_t row_bytes = std::max<uint64_t>(1, columns * 9 + wide * 8);
    const uint64_t rows = std::min<uint64_t>(std::max(kOutputBytes / row_bytes, least_rows), UINT32_MAX / 2) / 16 * 16;
    TESSERA_TRY(gpu_.ReserveEvicting(&gpu_.output_, rows * row_bytes));
    output_.capacity = static_cast<uint32_t>(rows);
    output_.low = gpu_.output_.As<uint64_t>();
    output_.high = output_.low + columns * rows;
    output_.null = reinterpret_cast<uint8_t*>(output_.high + wide * rows);
    return Status::Ok();
  }

  /// Moves the rows that are in the output to the result.
  Status DrainRows() {
    const uint64_t n = rows_used_, had = result_.rows;
    rows_used_ = 0;
    if (n == 0) return Status::Ok();
    TESSERA_TRY(gpu_.host_rows_.Reserve(n * 8));
    auto fetch = [&](const void* from, void* to, uint64_t bytes) -> Status {
      CUDA_TRY(cudaMemcpyAsync(gpu_.host_rows_.As<void>(), from, bytes, cudaMemcpyDeviceToHost, gpu_.stream_));
      CUDA_TRY(cudaStreamSynchronize(gpu_.stream_));
      memcpy(to, gpu_.host_rows_.As<void>(), bytes);
      return Status::Ok();
    };
    uint64_t wide = 0;
    for (size_t i = 0; i < section_.columns.size(); ++i) {
      vm::RowColumn& c = result_.columns[i];
      c.low.resize(had + n);
      TESSERA_TRY(fetch(output_.low + i * output_.capacity, c.low.data() + had, n * 8));
      if (IsWide(c.type)) {
        c.high.resize(had + n);
        TESSERA_TRY(fetch(output_.high + wide++ * output_.capacity, c.high.data() + had, n * 8));
      }
      std::vector<uint8_t> nulls(n);
      TESSERA_TRY(fetch(output_.null + i * output_.capacity, nulls.data(), n));
      if (!c.null.empty() || std::find(nulls.begin(), nulls.end(), uint8_t{1}) != nulls.end()) {
        c.null.resize(had);
        c.null.insert(c.null.end(), nulls.begin(), nulls.end());
      }
    }
    result_.rows = had + n;
    return Status::Ok();
  }

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const Section& section_;
  const LoweredProgram lowered_;
  Batch batches_[2];
  vm::RowSet result_;
  std::vector<Partial> totals_;
  GroupTable groups_;
  uint32_t groups_used_ = 0;
  uint64_t rows_since_normalise_ = 0;
  Output output_;
  uint64_t rows_used_ = 0;  ///< of the output buffer
  uint64_t enough_ = UINT64_MAX;
  bool enough_reached_ = false;
};

Result<vm::RowSet> GpuDevice::RunSection(const vm::SectionContext& context) {
  std::lock_guard<std::mutex> lock(mutex_);
  TESSERA_TRY(CanLower(*context.program, context.section));
  TESSERA_TRY(OpenDevice());
  Run run(this, context);
  Status status = run.AllTablets();
  if (!status.ok()) {
    // Whatever is still under way reads memory that the next run may change.
    (void)TellToStop();
    cudaStreamSynchronize(cancel_stream_);
    cudaStreamSynchronize(stream_);
    return status;
  }
  return run.Result();
}

}  // namespace
}  // namespace kernels

int GpuCount() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

Result<std::unique_ptr<Gpu>> Gpu::Open(int device_ordinal, const GpuOptions& options) {
  if (device_ordinal < 0 || device_ordinal >= GpuCount()) {
    return Unsupported("there is no GPU number " + std::to_string(device_ordinal) + " on this machine", -1,
                       "Use --device host.");
  }
  cudaDeviceProp properties;
  CUDA_TRY(cudaGetDeviceProperties(&properties, device_ordinal));
  GpuInfo info;
  info.name = properties.name;
  info.memory_bytes = properties.totalGlobalMem;
  info.multiprocessors = properties.multiProcessorCount;
  info.major = properties.major;
  info.minor = properties.minor;
  if (info.major < 8)
    return Unsupported(info.name + " is too old: compute capability 8.0 is needed", -1, "Use --device host.");
  kernels::DeviceLimits limits;
  limits.shared_per_block = static_cast<uint32_t>(properties.sharedMemPerBlockOptin);
  limits.shared_per_multiprocessor = static_cast<uint32_t>(properties.sharedMemPerMultiprocessor);
  return std::unique_ptr<Gpu>(std::make_unique<kernels::GpuDevice>(device_ordinal, options, std::move(info), limits));
}

}  // namespace tessera
