#include "kernels/run/grid_launch.h"

#include <algorithm>
#include <bit>

#include "kernels/join/grid_units.h"

namespace tessera::kernels {
namespace {

/// Units for each block that runs, rows of the join table in a unit, and how many units there may be. Ranges are
/// shorter where units can be left out, because the values of fewer rows lie closer together.
constexpr uint64_t kUnitsPerBlock = 8;
constexpr uint64_t kLeastRangeRows = 16, kMostRangeRows = 1024, kMostPrunedRows = 32;
constexpr uint64_t kMostUnits = uint64_t{1} << 30, kMostTriedUnits = uint64_t{1} << 27;
/// Up to this many units are listed without being counted before.
constexpr uint64_t kListedAtOnce = uint64_t{1} << 22;
/// dp: buckets of the outer rows, if the lists of their units fit; blocks of all child grids beyond one a grid, and
/// what those may take of registers in device memory. (On an H100, 350,000 rows a side: 171 buckets 236.6 ms, 64 224,
/// 32 220, 16 217, 8 216. Where blocks of several grids share a multiprocessor, so do their parameters its constant
/// cache.)
constexpr uint32_t kBuckets = 16, kChildBlocks = 32768;
constexpr uint64_t kChildScratch = uint64_t{256} << 20;
/// The part of the free memory that lists of units may have.
constexpr uint64_t kListShare = 32;

uint64_t RangesBytes(const PieceRanges& pieces) {
  return uint64_t{pieces.pieces()} * pieces.columns * sizeof(vm::KnownRange);
}

}  // namespace

GridLaunch::GridLaunch(GpuDevice* gpu, const vm::SectionContext& context, const LoweredProgram& lowered,
                       const DeviceJoins& joins, const RowSource* rows)
    : gpu_(*gpu), context_(context), lowered_(lowered), joins_(joins), rows_(rows) {}

bool GridLaunch::WantsDp() const {
  return is_needed() && vm::Info(context_.program->joins[static_cast<size_t>(lowered_.joins.grid)].strategy).place ==
                            vm::JoinPlace::kDevice;
}

Status GridLaunch::CutUnits(uint32_t tiles, Batch* batch) {
  buckets_ = {};
  finds_units_ = false;
  Launch& launch = batch->launch;
  const vm::JoinSpec& join = context_.program->joins[static_cast<size_t>(lowered_.joins.grid)];
  const vm::Section& section = context_.program->sections[static_cast<size_t>(context_.section)];
  const uint32_t rows = batch->plan.joins[static_cast<size_t>(lowered_.joins.grid)].rows;
  const bool dp = IsDp(batch->plan.variant);
  const bool pruned = section.source_kind == vm::Section::Source::kJoin && (dp || join.order >= 0);
  // Enough units for all blocks to end together, and not more than can be numbered.
  const uint64_t even = uint64_t{rows} * tiles / (uint64_t{batch->blocks} * kUnitsPerBlock);
  uint64_t range_rows =
      std::clamp<uint64_t>(std::bit_floor(even), kLeastRangeRows, pruned ? kMostPrunedRows : kMostRangeRows);
  while (tiles * ((rows + range_rows - 1) / range_rows) > (pruned ? kMostTriedUnits : kMostUnits)) range_rows *= 2;
  launch.grid.join = static_cast<uint32_t>(lowered_.joins.grid);
  launch.grid.part_rows = static_cast<uint32_t>(range_rows);
  launch.grid.parts = std::max<uint32_t>(1, static_cast<uint32_t>((rows + range_rows - 1) / range_rows));
  launch.input.tiles = tiles * launch.grid.parts;
  context_.statistics->pairs += batch->input.rows() * rows;
  return pruned && rows > 0 ? FindUnits(batch) : Status::Ok();
}

Status GridLaunch::FindUnits(Batch* batch) {
  Launch& launch = batch->launch;
  const vm::RangeProgram& program = lowered_.joins.ranges;
  const vm::Section& section = context_.program->sections[static_cast<size_t>(context_.section)];
  UnitSearch search;
  search.count = static_cast<int32_t>(program.steps.size());
  search.may_skip = program.all_from >= 0;
  TESSERA_TRY(FindRanges(launch.grid.part_rows, &search));
  TESSERA_TRY(report_.Renew(&gpu_, sizeof(Report)));
  TESSERA_TRY(gpu_.buffers.host_grid_report.Reserve(sizeof(Report)));
  CUDA_TRY(cudaMemsetAsync(report_.As<void>(), 0, sizeof(Report), gpu_.stream));
  search.totals = &report_.As<Report>()->totals;
  if (!program.steps.empty()) {
    const size_t bytes = program.steps.size() * sizeof(vm::RangeStep);
    TESSERA_TRY(steps_.Renew(&gpu_, bytes));
    // (Pageable memory: the copy is done when the call returns.)
    CUDA_TRY(cudaMemcpyAsync(steps_.As<void>(), program.steps.data(), bytes, cudaMemcpyHostToDevice, gpu_.stream));
    search.steps = steps_.As<vm::RangeStep>();
  }
  finds_units_ = true;
  // A slice of a run is applied at once: its matches must not be more than the output or the groups have room for.
  const bool keeps_little = section.sink == vm::Section::Sink::kGroups && section.keys == 0;
  if (keeps_little)
    launch.most_units = static_cast<uint32_t>(std::clamp<uint64_t>(kMostRangeRows / launch.grid.part_rows, 1, 32));
  return IsDp(batch->plan.variant) ? CutBuckets(search, batch) : ListUnits(&search, &launch);
}

Status GridLaunch::FindRanges(uint32_t range_rows, UnitSearch* search) {
  const int source = context_.program->sections[static_cast<size_t>(context_.section)].source;
  const RowColumns inner = joins_.rows(lowered_.joins.grid).columns();
  search->outer = CutPieces(*context_.program, source, rows_->rows, kTileRows);
  search->inner =
      CutPieces(*context_.program, lowered_.joins.grid, joins_.rows(lowered_.joins.grid).rows(), range_rows);
  TESSERA_TRY(ranges_.Renew(&gpu_, RangesBytes(search->outer) + RangesBytes(search->inner)));
  search->outer.ranges = ranges_.As<vm::KnownRange>();
  search->inner.ranges = search->outer.ranges + uint64_t{search->outer.pieces()} * search->outer.columns;
  CUDA_TRY(StartRanges(rows_->at, search->outer, gpu_.stream));
  CUDA_TRY(StartRanges(inner, search->inner, gpu_.stream));
  return Status::Ok();
}

Status GridLaunch::ListUnits(UnitSearch* search, Launch* launch) {
  uint64_t room = launch->input.tiles;
  if (room > kListedAtOnce) {
    // What is found decides how much memory it takes.
    CUDA_TRY(StartListUnits(*search, gpu_.stream));
    UnitTotals totals;
    CUDA_TRY(cudaMemcpyAsync(&totals, search->totals, sizeof totals, cudaMemcpyDeviceToHost, gpu_.stream));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    room = std::max<uint64_t>(totals.count, 1);
    CUDA_TRY(cudaMemsetAsync(search->totals, 0, sizeof(UnitTotals), gpu_.stream));
  }
  TESSERA_TRY(units_.Renew(&gpu_, room * sizeof(uint32_t)));
  search->units = units_.As<uint32_t>();
  CUDA_TRY(StartListUnits(*search, gpu_.stream));
  launch->grid.units = search->units;
  launch->grid.unit_count = &search->totals->count;
  return Status::Ok();
}

Status GridLaunch::CutBuckets(const UnitSearch& search, Batch* batch) {
  BucketLaunch& b = buckets_;
  b.search = search;
  const uint32_t tiles = b.search.outer.pieces(), ranges = b.search.inner.pieces();
  const uint64_t room = std::max<uint64_t>(1, gpu_.Room() / kListShare / sizeof(uint32_t) / ranges);  // tiles
  b.bucket_tiles = static_cast<uint32_t>(std::clamp<uint64_t>((tiles + kBuckets - 1) / kBuckets, 1, room));
  b.buckets = (tiles + b.bucket_tiles - 1) / b.bucket_tiles;
  b.bucket_units = b.bucket_tiles * ranges;
  b.generation = static_cast<uint32_t>(std::min<uint64_t>({b.buckets, room / b.bucket_tiles, kGenerationBuckets}));
  const uint64_t scratch = kChildScratch / std::max<uint64_t>(batch->plan.scratch_bytes, 1);
  b.child_blocks = static_cast<uint32_t>(
      std::clamp<uint64_t>(std::min<uint64_t>(batch->launch.input.tiles, scratch), 1, kChildBlocks));
  b.variant = batch->plan.variant;
  b.multiprocessors = static_cast<uint32_t>(gpu_.info.multiprocessors);
  TESSERA_TRY(units_.Renew(&gpu_, uint64_t{b.generation} * b.bucket_units * sizeof(uint32_t)));
  b.search.units = units_.As<uint32_t>();
  TESSERA_TRY(grids_.Renew(&gpu_, b.generation * (sizeof(ChildGrid) + sizeof(uint32_t))));
  b.grids = grids_.As<ChildGrid>();
  b.counts = reinterpret_cast<uint32_t*>(b.grids + b.generation);
  CUDA_TRY(cudaMemsetAsync(b.counts, 0, b.generation * sizeof(uint32_t), gpu_.stream));
  *gpu_.buffers.host_grid_report.As<Report>() = Report();
  b.progress = &report_.As<Report>()->progress;
  batch->blocks = b.buckets + b.child_blocks;
  batch->launch.input.tiles = batch->blocks;  // (each takes at least one unit)
  return Status::Ok();
}

Status GridLaunch::StartGenerations(const Launch& launch) {
  const uint32_t first = progress().first;
  if (first >= buckets_.buckets) return Status::Ok();
  buckets_.launch = launch;
  CUDA_TRY(StartBuckets(buckets_, first, gpu_.stream));
  buckets_.again = true;
  return Status::Ok();
}

Status GridLaunch::FetchReport() {
  if (!finds_units_) return Status::Ok();
  CUDA_TRY(cudaMemcpyAsync(gpu_.buffers.host_grid_report.As<void>(), report_.As<void>(), sizeof(Report),
                           cudaMemcpyDeviceToHost, gpu_.stream));
  return Status::Ok();
}

uint32_t GridLaunch::Tiles(const Launch& launch) const {
  return launch.grid.unit_count == nullptr ? launch.input.tiles : report().totals.count;
}

void GridLaunch::AddStatistics() {
  if (!finds_units_) return;
  const UnitTotals& totals = report().totals;
  vm::SectionStatistics& stats = *context_.statistics;
  stats.child_grids += totals.child_grids;
  stats.pruned_pairs += stats.pairs - totals.pairs;
  stats.pairs = totals.pairs;
}

}  // namespace tessera::kernels
