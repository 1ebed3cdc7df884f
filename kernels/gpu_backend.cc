// The public face of the folder: finding GPUs, and runs of programs on one of them.

#include <cuda_runtime_api.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define TESSERA_NVTX 1
#endif

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/exception_status.h"
#include "kernels/cuda/cuda_memory.h"
#include "kernels/join/device_joins.h"
#include "kernels/kernels.h"
#include "kernels/launch/vm_kernel.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/measure_transfer.h"
#include "kernels/memory/measure_unpack.h"
#include "kernels/plan/lower.h"
#include "kernels/ranks/rank_links.h"
#include "kernels/ranks/share_rows.h"
#include "kernels/run/join_build.h"
#include "kernels/run/kept_results.h"
#include "kernels/run/section_run.h"
#include "kernels/run/waiting_tables.h"
#include "kernels/window/device_windows.h"
#include "vm/after/window.h"

namespace tessera {
namespace kernels {
namespace {

/// A range in a profiler's time line; nothing where the toolkit's part for it is not installed.
class ProfilerRange {
 public:
  explicit ProfilerRange([[maybe_unused]] const std::string& name) {
#ifdef TESSERA_NVTX
    nvtxRangePushA(name.c_str());
#endif
  }
  ~ProfilerRange() {
#ifdef TESSERA_NVTX
    nvtxRangePop();
#endif
  }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

class GpuRun final : public vm::DeviceRun {
 public:
  GpuRun(GpuDevice* gpu, RankLinks* links)
      : gpu_(*gpu),
        links_(*links),
        joins_(std::make_unique<DeviceJoins>(gpu)),
        results_(std::make_unique<KeptResults>(gpu)),
        waiting_(std::make_unique<WaitingTables>(gpu)) {
    gpu_.cache.BeginRun();
  }
  ~GpuRun() override {
    gpu_.cache.EndRun();
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    if (gpu_.is_open()) (void)gpu_.Open();  // makes the device current
    running_.reset();
    waiting_.reset();
    results_.reset();
    joins_.reset();
  }

  Result<vm::RowSet> RunSection(const vm::SectionContext& context) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    const ProfilerRange range(context.statistics->label);
    TESSERA_TRY(Start(context));
    const std::unique_ptr<Running> run = std::move(running_);
    const Status status = Caught([&] { return run->section.AllTablets(); });  // nothing runs on when it is gone
    if (!status.ok()) return Abandon(run->section.launched(), status);
    return Take(context, &run->section);
  }

  Result<uint64_t> FindGroups(const vm::SectionContext& context) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    const ProfilerRange range(context.statistics->label);
    TESSERA_TRY(Start(context));
    SectionRun& run = running_->section;
    if (!context.program->sections[static_cast<size_t>(context.section)].placement.co_located) run.groups().set_parts();
    if (Status status = Caught([&] { return run.AllTablets(); }); !status.ok()) return Abandon(run.launched(), status);
    return run.groups().used();
  }

  Result<vm::GroupOffer> OfferGroups(int ranks) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    TESSERA_TRY(gpu_.Open());
    TESSERA_ASSIGN(vm::GroupOffer offer, running_->section.groups().Offer(&group_texts_, ranks));
    offer.is_linked = links_.is_connected() ? 1 : 0;
    return offer;
  }

  Result<uint64_t> ExchangeGroups(const std::vector<vm::GroupOffer>& offers, vm::Exchange* exchange) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    if (std::ranges::any_of(offers, [](const vm::GroupOffer& o) { return o.is_linked == 0; }))
      TESSERA_TRY(links_.Connect(gpu_.ordinal(), exchange));
    TESSERA_TRY(running_->section.groups().Exchange(&links_, &group_texts_, exchange, offers));
    running_->context.statistics->device_plan += ", groups exchanged by " + links_.name();
    return running_->section.groups().used();
  }

  Result<vm::RowSet> TakeGroups(bool keep) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    TESSERA_TRY(gpu_.Open());
    const std::unique_ptr<Running> run = std::move(running_);
    return keep ? Take(run->context, &run->section) : run->section.Result();
  }

  bool Keeps(int section) const override { return results_->Has(section); }

  Status PutRows(const vm::Program& program, int section, const vm::RowSet& rows) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    TESSERA_TRY(Begin(program));
    const std::vector<SqlType> columns = ColumnsOf(program, section);
    DeviceRows there;
    TESSERA_TRY(UploadRows(&gpu_, columns, rows, 0, rows.rows, &there));
    return Keep(program, section, columns, &there);
  }

  Result<vm::RowSet> FetchRows(const vm::Program& program, int section) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    TESSERA_TRY(gpu_.Open());
    return results_->Fetch(section, ColumnsOf(program, section));
  }

  void DropRows(int section) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    if (gpu_.is_open() && gpu_.Open().ok()) results_->Drop(section);
  }

  void Expect(const vm::SectionContext& next) override { next_ = next; }

  Status BuildJoins(const std::vector<vm::SectionContext>& contexts, const Status& ready) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    const ProfilerRange range("build join tables");
    const Status begun = [&]() -> Status {
      TESSERA_TRY(ready);
      for (const vm::SectionContext& c : contexts) TESSERA_TRY(CanLower(*c.program, c.section));
      TESSERA_TRY(Begin(*contexts[0].program));
      for (const vm::SectionContext& c : contexts) {
        const vm::Section& s = c.program->sections[static_cast<size_t>(c.section)];
        if (s.source_kind == vm::Section::Source::kSection) TESSERA_TRY(results_->Finish(s.source));
      }
      return Status::Ok();
    }();
    Status status =
        kernels::BuildJoins(&gpu_, joins_.get(), *results_, &links_, &texts_, waiting_.get(), contexts, begun, [&] {
          if (next_.program != nullptr) ahead_ = EncodeAhead(&gpu_, next_, joins_->key_ranges());
        });
    next_ = {};
    return status.ok() ? status : Abandon(nullptr, status);
  }

  Result<bool> ExchangeJoin(const vm::SectionContext& context, int join, bool can, bool is_inner,
                            const Status& mine) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    const ProfilerRange range("exchange both sides of a join");
    Status begun = mine;
    if (begun.ok()) begun = Begin(*context.program);
    return waiting_->Exchange(context, join, can, is_inner, begun, joins_.get(), results_.get(), &links_, &texts_);
  }

  Result<vm::RowSet> TakeJoin(const vm::Program& program, int join, ThreadPool* pool) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    TESSERA_TRY(gpu_.Open());
    return waiting_->Take(program, join, pool);
  }

  Status PutJoin(const vm::Program& program, const vm::ProgramTraits& traits, int join, const vm::RowSet& rows,
                 uint64_t source_rows, vm::JoinPartitioning partitioning) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    TESSERA_TRY(Begin(program));
    return joins_->Put(program, traits, join, rows, source_rows, partitioning);
  }

 private:
  /// A section under way. It refers to what it reads.
  struct Running {
    Running(GpuDevice* gpu, const vm::SectionContext& of, DeviceJoins* joins, RowSource source, DeviceRows* copied)
        : context(of), rows(std::move(source)), section(gpu, of, joins, of.table == nullptr ? &rows : nullptr) {
      swap(*copied, share);
    }
    const vm::SectionContext context;
    DeviceRows share;  ///< where `rows` are a rank's
    const RowSource rows;
    SectionRun section;
  };

  /// Prepares a section to run.
  Status Start(const vm::SectionContext& context) {
    running_.reset();
    TESSERA_TRY(CanLower(*context.program, context.section));
    TESSERA_TRY(Begin(*context.program));
    DeviceRows share;
    TESSERA_ASSIGN(RowSource source, RowsOf(context, &share));
    running_ = std::make_unique<Running>(&gpu_, context, joins_.get(), std::move(source), &share);
    const bool in_parts = joins_->AnyInParts();
    TabletsAhead ahead = std::exchange(ahead_, {});
    if (ahead.section == context.section && ahead.table == context.table && !in_parts)
      return running_->section.UseTablets(std::move(ahead));
    return Status::Ok();
  }
  /// The result of a section that has run, or its number of rows if the device keeps them.
  Result<vm::RowSet> Take(const vm::SectionContext& context, SectionRun* run) {
    DeviceRows made;
    TESSERA_ASSIGN(const bool keep, run->MoveTo(&made));
    if (!keep) return run->Result();
    vm::RowSet none;
    none.rows = made.rows();
    const std::vector<SqlType> columns = ColumnsOf(*context.program, context.section);
    if (context.append_to >= 0) {
      TESSERA_ASSIGN(const bool kept, results_->KeepAfter(context.append_to, context.section, columns, made));
      if (!kept) return DownloadRows(&gpu_, columns, made, made.rows());
      return none;
    }
    TESSERA_TRY(Keep(*context.program, context.section, columns, &made));
    return none;
  }
  /// Rows that other ranks get some of are packed for them.
  Status Keep(const vm::Program& program, int section, const std::vector<SqlType>& columns, DeviceRows* rows) {
    const bool by_key = program.sections[static_cast<size_t>(section)].placement.by_key;
    return by_key ? results_->KeepUnpacked(section, columns, rows) : results_->Keep(section, columns, rows);
  }
  static std::vector<SqlType> ColumnsOf(const vm::Program& program, int section) {
    return vm::TypesOfRows(program.sections[static_cast<size_t>(section)]);
  }
  /// What a section reads that scans no stored table. `share`: the rows, where they are copied. REQUIRES: it is here.
  Result<RowSource> RowsOf(const vm::SectionContext& context, DeviceRows* share) {
    const vm::Program& program = *context.program;
    const vm::Section& s = program.sections[static_cast<size_t>(context.section)];
    if (s.source_kind == vm::Section::Source::kSection) {
      TESSERA_TRY(results_->Finish(s.source));
      return results_->source(s.source);
    }
    if (s.source_kind != vm::Section::Source::kJoin) return RowSource{};
    const DeviceRows& rows = joins_->rows(s.source);
    const std::vector<PayloadShape>& shapes = joins_->shapes()[static_cast<size_t>(s.source)]->payload;
    if (context.ranks == 1) return RowSource{rows.rows(), shapes, rows.columns()};
    return TakeShare(&gpu_, vm::KeepShare(rows.rows(), context.rank, context.ranks),
                     ColumnsOf(program, program.joins[static_cast<size_t>(s.source)].section), rows, shapes, share);
  }
  Status Begin(const vm::Program& program) {
    TESSERA_TRY(gpu_.Open());
    if (!begun_) {
      gpu_.cache.Renew();
      TESSERA_TRY(gpu_.clock.SetZero(gpu_.stream));
    }
    begun_ = true;
    joins_->Resize(program.joins.size());
    return Status::Ok();
  }
  /// Whatever is still under way reads memory that the next run may change.
  Status Abandon(Control* control, Status status) {
    static constexpr std::atomic<bool> kCancel{true};
    if (control != nullptr) (void)gpu_.WaitForStream(&control->stop, &kCancel);
    IgnoreError(cudaStreamSynchronize(gpu_.stream));
    return status;
  }

  GpuDevice& gpu_;
  RankLinks& links_;
  std::unique_ptr<DeviceJoins> joins_;
  std::unique_ptr<KeptResults> results_;
  std::unique_ptr<WaitingTables> waiting_;
  vm::SectionContext next_;  ///< without a program: not known
  TabletsAhead ahead_;
  RankTexts texts_;
  GroupTexts group_texts_;
  std::unique_ptr<Running> running_;  ///< from FindGroups to TakeGroups
  bool begun_ = false;
};

class GpuBackend final : public Gpu {
 public:
  GpuBackend(int ordinal, const GpuOptions& options, GpuInfo info, const DeviceLimits& limits)
      : gpu_(ordinal, options, std::move(info), limits,
             {VmKernelFor(Variant::kLean), VmKernelFor(Variant::kStar), VmKernelFor(Variant::kPairs),
              VmKernelFor(Variant::kFull), VmKernelFor(Variant::kQueue), VmKernelFor(Variant::kSelect),
              VmKernelFor(Variant::kSelectFull), VmKernelFor(Variant::kStates)}) {}

  const GpuInfo& info() const override { return gpu_.info; }
  GpuMemory memory() const override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    return {gpu_.cache.bytes(), gpu_.is_open() ? gpu_.cache.budget() : 0};
  }
  CacheReport Cache() const override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    return gpu_.cache.Report();
  }
  Status SetTransfer(Transfer transfer, uint64_t piece_bytes) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    if (!gpu_.cache.SetTransfer(transfer, piece_bytes) || !gpu_.is_open()) return Status::Ok();
    TESSERA_TRY(gpu_.Open());
    return gpu_.cache.Trim();
  }
  Status DropCache() override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    if (!gpu_.is_open()) return Status::Ok();
    TESSERA_TRY(gpu_.Open());
    gpu_.cache.FreeSpare();
    return gpu_.cache.Clear();
  }
  Result<double> MeasureBandwidth() override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    TESSERA_TRY(gpu_.Open());
    if (bandwidth_ > 0) return bandwidth_;
    constexpr size_t kBytes = size_t{256} << 20;  // five times the L2 cache
    DeviceBuffer from, to;
    TESSERA_TRY(from.Reserve(kBytes));
    TESSERA_TRY(to.Reserve(kBytes));
    CUDA_TRY(cudaMemsetAsync(from.As<void>(), 0x5A, kBytes, gpu_.stream));
    double best = 0;
    for (int i = 0; i < 6; ++i) {
      TESSERA_TRY(gpu_.clock.Begin(gpu_.stream));
      CUDA_TRY(cudaMemcpyAsync(to.As<void>(), from.As<void>(), kBytes, cudaMemcpyDeviceToDevice, gpu_.stream));
      TESSERA_TRY(gpu_.clock.End(gpu_.stream));
      TESSERA_ASSIGN(const double milliseconds, gpu_.clock.WaitForMilliseconds());
      if (i == 0 || milliseconds < best) best = milliseconds;
    }
    bandwidth_ = 2.0 * static_cast<double>(kBytes) / (best / 1e3);
    return bandwidth_;
  }
  Result<double> MeasureTransfer(const TransferCase& way) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    TESSERA_TRY(gpu_.Open());
    return kernels::MeasureTransfer(way, &gpu_);
  }
  Result<double> MeasureUnpack(const Chunk& chunk, uint64_t bytes, std::vector<uint8_t>* codes) override {
    std::lock_guard<std::mutex> lock(gpu_.mutex);
    TESSERA_TRY(gpu_.Open());
    return kernels::MeasureUnpack(chunk, bytes, &gpu_, codes);
  }
  Status CanRun(const vm::Program& program, int section) const override { return CanLower(program, section); }
  bool HasWindows(const vm::Program& program, int section) const override {
    return kernels::HasWindows(program.sections[static_cast<size_t>(section)]);
  }
  std::unique_ptr<vm::DeviceRun> Begin() override { return std::make_unique<GpuRun>(&gpu_, &links_); }

 private:
  mutable GpuDevice gpu_;
  RankLinks links_;
  double bandwidth_ = 0;  ///< 0: not yet measured
};

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

uint64_t GpuMemoryBytes() {
  // (CUDA takes a millisecond to tell.)
  static const uint64_t bytes = [] {
    cudaDeviceProp properties;
    if (GpuCount() > 0 && cudaGetDeviceProperties(&properties, 0) == cudaSuccess) return properties.totalGlobalMem;
    cudaGetLastError();
    return size_t{0};
  }();
  return bytes;
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
  limits.multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);
  limits.cache_bytes = static_cast<uint64_t>(properties.l2CacheSize);
  return std::unique_ptr<Gpu>(std::make_unique<kernels::GpuBackend>(device_ordinal, options, std::move(info), limits));
}

}  // namespace tessera
