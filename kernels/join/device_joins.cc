#include "kernels/join/device_joins.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/run/section_run.h"
#include "kernels/run/sort_rows.h"
#include "vm/row_set.h"

namespace tessera::kernels {
namespace {

/// A direct table of up to this size, or this part of the budget, is taken whatever the number of rows; a larger one,
/// if a hash table were not smaller.
constexpr uint64_t kDirectBytes = uint64_t{64} << 20, kDirectShare = 16;
constexpr uint64_t kDirectBytesPerRow = 32;
/// A bitmap of up to this size is kept beside the values, for blocks that have room for it in shared memory.
constexpr uint64_t kSharedBitsBytes = 16 << 10;
/// ... or when values lie so far apart that most look-ups end there.
constexpr uint64_t kSparseBytes = uint64_t{24} << 20;
constexpr uint64_t kMostPlaces = (uint64_t{1} << 32) - 256;

/// The part of the free memory that a table's rows may have once more while they are ordered.
constexpr uint64_t kOrderedShare = 4;

uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

Status KeysTooLong() {
  return Unsupported("keys of a join that together need more than 64 bits run on the host only", -1,
                     "Use --device auto or host.");
}

/// Whether keys in these ranges make one number of 64 bits.
bool FitOneNumber(const std::vector<ColumnSummary>& columns, size_t keys) {
  uint64_t places = 1;
  for (size_t k = 0; k < keys && keys > 1; ++k) {
    const uint64_t span = static_cast<uint64_t>(columns[k].high) - static_cast<uint64_t>(columns[k].low);
    if (span == UINT64_MAX || __builtin_mul_overflow(places, span + 1, &places)) return false;
  }
  return true;
}

uint64_t DirectBytes(const GpuDevice& gpu) { return std::min(kDirectBytes, gpu.cache.budget() / kDirectShare); }

}  // namespace

bool CanPart(const vm::Program& program, int join) {
  const vm::JoinTable& table = program.joins[static_cast<size_t>(join)];
  return table.order < 0 && program.sections[static_cast<size_t>(table.section)].keys > 0;
}

uint64_t RowBytes(const std::vector<SqlType>& columns) {
  return columns.size() * 9 + static_cast<uint64_t>(std::count_if(columns.begin(), columns.end(), IsWide)) * 8;
}

void JoinRows::SetShape(const std::vector<SqlType>& columns, uint64_t capacity) {
  columns_ = columns.size();
  wide_ = static_cast<size_t>(std::count_if(columns.begin(), columns.end(), IsWide));
  capacity_ = RoundUp(capacity, 16);
}

Status JoinRows::Allocate(GpuDevice* gpu, const std::vector<SqlType>& columns, uint64_t capacity) {
  SetShape(columns, capacity);
  return buffer_.Allocate(gpu, capacity_ * RowBytes(columns));
}

bool JoinRows::TryAllocate(GpuDevice* gpu, const std::vector<SqlType>& columns, uint64_t capacity) {
  SetShape(columns, capacity);
  return buffer_.TryAllocate(gpu, capacity_ * RowBytes(columns));
}

Status JoinRows::CopyFrom(const JoinRows& from, uint64_t rows, cudaStream_t stream) {
  if (rows == 0) return Status::Ok();
  for (size_t c = 0; c < columns_ + wide_; ++c) {
    CUDA_TRY(cudaMemcpyAsync(low(c), from.low(c), rows * 8, cudaMemcpyDeviceToDevice, stream));
  }
  for (size_t c = 0; c < columns_; ++c) {
    CUDA_TRY(cudaMemcpyAsync(null(c), from.null(c), rows, cudaMemcpyDeviceToDevice, stream));
  }
  return Status::Ok();
}

Status JoinRows::ClearPadding(cudaStream_t stream) {
  const uint64_t padding = RoundUp(rows_, 16) - rows_;
  if (padding == 0) return Status::Ok();
  for (size_t c = 0; c < columns_ + wide_; ++c) CUDA_TRY(cudaMemsetAsync(low(c) + rows_, 0, padding * 8, stream));
  for (size_t c = 0; c < columns_; ++c) CUDA_TRY(cudaMemsetAsync(null(c) + rows_, 0, padding, stream));
  return Status::Ok();
}

void DeviceJoins::Resize(size_t joins) {
  tables_.resize(joins);
  shapes_.resize(joins);
  key_ranges_.resize(joins);
  parted_.resize(joins);
}

Status DeviceJoins::Build(const std::vector<vm::SectionContext>& contexts, const std::function<void()>& meanwhile) {
  const size_t n = contexts.size();
  partitioning_ = contexts[0].join_partitioning;
  TESSERA_TRY(gpu_.build_states.Reserve(n * sizeof(BuildState)));
  TESSERA_TRY(gpu_.host_build_states.Reserve(n * sizeof(BuildState)));
  BuildState* states = gpu_.host_build_states.As<BuildState>();
  BuildState* device_states = gpu_.build_states.As<BuildState>();
  for (size_t i = 0; i < n; ++i) {
    memset(&states[i].control, 0, sizeof(Control));
    for (ColumnSummary& s : states[i].columns) s = ColumnSummary();
  }
  CUDA_TRY(StartSend({{device_states, states, n * sizeof(BuildState)}}, gpu_.stream));
  CUDA_TRY(cudaEventRecord(gpu_.begin, gpu_.stream));
  std::vector<std::unique_ptr<SectionRun>> runs;
  std::vector<RowsToSummarize> to_summarize(n);
  for (size_t i = 0; i < n; ++i) {
    runs.push_back(std::make_unique<SectionRun>(&gpu_, contexts[i], this, static_cast<int>(i)));
    TESSERA_TRY(runs[i]->StartBuild());
    const JoinRows& rows = *runs[i]->build_rows();
    const size_t columns = contexts[i].program->sections[static_cast<size_t>(contexts[i].section)].columns.size();
    to_summarize[i] = {reinterpret_cast<const int64_t*>(rows.low(0)),
                       rows.null(0),
                       rows.capacity(),
                       &device_states[i].control,
                       device_states[i].columns,
                       static_cast<uint32_t>(std::min<size_t>(columns, kMaxSummaries))};
  }
  CUDA_TRY(StartSummarize(to_summarize.data(), n, gpu_.stream));
  CUDA_TRY(cudaEventRecord(gpu_.end, gpu_.stream));
  CUDA_TRY(StartSend({{states, device_states, n * sizeof(BuildState)}}, gpu_.stream));
  meanwhile();
  TESSERA_TRY(gpu_.Wait(&device_states[n - 1].control, contexts[0].cancel));
  float milliseconds = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, gpu_.begin, gpu_.end));
  std::vector<Making> tables;
  std::vector<size_t> made, too_large;  // contexts: those of `tables`, and those whose rows are on the host
  uint64_t rows_in = 0, bytes = 0;
  for (const vm::SectionContext& c : contexts) rows_in += c.statistics->rows_in;
  const auto join_of = [&](size_t i) {
    return contexts[i].program->sections[static_cast<size_t>(contexts[i].section)].join;
  };
  // Takes the rows of a table that was laid out to the host.
  const auto give_up = [&](size_t i) -> Status {
    const vm::SectionContext& c = contexts[i];
    std::unique_ptr<Table>& table = tables_[static_cast<size_t>(join_of(i))];
    TESSERA_ASSIGN(vm::RowSet rows, Download(&gpu_, c.program->sections[static_cast<size_t>(c.section)].columns,
                                             table->rows, table->rows.rows()));
    runs[i]->host_rows().push_back(std::move(rows));
    shapes_[static_cast<size_t>(join_of(i))] = nullptr;
    table.reset();
    too_large.push_back(i);
    return Status::Ok();
  };
  for (size_t i = 0; i < n; ++i) {
    const vm::SectionContext& c = contexts[i];
    TESSERA_TRY(runs[i]->FinishBuild());
    c.statistics->rows_out = runs[i]->rows_built();
    // They ran as one: each gets its part by the rows that it read.
    c.statistics->kernel_milliseconds = static_cast<double>(milliseconds) *
                                        static_cast<double>(c.statistics->rows_in + 1) /
                                        static_cast<double>(rows_in + n);
    runs[i]->TellJoins();
    if (!runs[i]->host_rows().empty()) {
      too_large.push_back(i);
      continue;
    }
    TESSERA_ASSIGN(const Making table, Make(*c.program, join_of(i), runs[i]->build_rows(), states[i].columns,
                                            c.table->rows, runs[i]->SourceKeys()));
    if (bytes + table.bytes() > Share() && CanPart(*c.program, join_of(i))) {
      TESSERA_TRY(give_up(i));
      continue;
    }
    bytes += table.bytes();
    tables.push_back(table);
    made.push_back(i);
  }
  for (;;) {
    const Status filled = Fill(&tables, &memory_.emplace_back());
    if (filled.ok()) break;
    // CUDA has less memory than the budget: without the largest table, then.
    size_t largest = tables.size();
    for (size_t t = 0; t < tables.size(); ++t) {
      const bool larger = largest == tables.size() || tables[t].bytes() > tables[largest].bytes();
      if (larger && CanPart(*contexts[made[t]].program, join_of(made[t]))) largest = t;
    }
    if (filled.code() != ErrorCode::kResource || largest == tables.size()) return filled;
    TESSERA_TRY(give_up(made[largest]));
    tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(largest));
    made.erase(made.begin() + static_cast<std::ptrdiff_t>(largest));
  }
  for (const size_t i : too_large) {
    const vm::SectionContext& c = contexts[i];
    TESSERA_TRY(Part(*c.program, join_of(i), std::move(runs[i]->host_rows()), c.table->rows, c.pool));
  }
  return Status::Ok();
}

tessera::Result<vm::RowSet> Download(GpuDevice* gpu, const std::vector<SqlType>& columns, const JoinRows& rows,
                                     uint64_t count) {
  vm::RowSet out = vm::MakeRowSet(columns);
  out.rows = count;
  if (count == 0) return out;
  TESSERA_TRY(gpu->host_rows.Reserve(count * 8));
  auto fetch = [&](const void* from, void* to, uint64_t bytes) -> Status {
    CUDA_TRY(cudaMemcpyAsync(gpu->host_rows.As<void>(), from, bytes, cudaMemcpyDeviceToHost, gpu->stream));
    CUDA_TRY(cudaStreamSynchronize(gpu->stream));
    memcpy(to, gpu->host_rows.As<void>(), bytes);
    return Status::Ok();
  };
  size_t wide = 0;
  for (size_t c = 0; c < columns.size(); ++c) {
    vm::RowColumn& to = out.columns[c];
    to.low.resize(count);
    TESSERA_TRY(fetch(rows.low(c), to.low.data(), count * 8));
    if (IsWide(to.type)) {
      to.high.resize(count);
      TESSERA_TRY(fetch(rows.high(wide++), to.high.data(), count * 8));
    }
    to.null.resize(count);
    TESSERA_TRY(fetch(rows.null(c), to.null.data(), count));
    if (std::find(to.null.begin(), to.null.end(), uint8_t{1}) == to.null.end()) to.null = {};
  }
  return out;
}

Status DeviceJoins::Upload(const vm::Section& builder, const vm::RowSet& from, uint64_t first, uint64_t count,
                           JoinRows* to) {
  TESSERA_TRY(to->Allocate(&gpu_, builder.columns, std::max<uint64_t>(count, 1)));
  to->set_rows(count);
  size_t wide = 0;
  for (size_t c = 0; c < builder.columns.size() && count > 0; ++c) {
    const vm::RowColumn& column = from.columns[c];
    // (Pageable memory: the copies are done when the calls return.)
    CUDA_TRY(cudaMemcpyAsync(to->low(c), column.low.data() + first, count * 8, cudaMemcpyHostToDevice, gpu_.stream));
    if (IsWide(column.type)) {
      CUDA_TRY(cudaMemcpyAsync(to->high(wide++), column.high.data() + first, count * 8, cudaMemcpyHostToDevice,
                               gpu_.stream));
    }
    if (column.null.empty()) {
      CUDA_TRY(cudaMemsetAsync(to->null(c), 0, count, gpu_.stream));
    } else {
      CUDA_TRY(cudaMemcpyAsync(to->null(c), column.null.data() + first, count, cudaMemcpyHostToDevice, gpu_.stream));
    }
  }
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return Status::Ok();
}

Status DeviceJoins::Put(const vm::Program& program, int join, const vm::RowSet& from, uint64_t source_rows,
                        vm::JoinPartitioning partitioning) {
  partitioning_ = partitioning;
  const vm::Section& builder = program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(join)].section)];
  if (CanPart(program, join) && BytesFor(builder, from.rows) > Share()) {
    return Part(program, join, {from}, source_rows, nullptr);
  }
  JoinRows rows;
  TESSERA_TRY(Upload(builder, from, 0, from.rows, &rows));
  std::vector<Making> tables(1);
  TESSERA_ASSIGN(tables[0], Make(program, join, &rows, Summarize(from, 0, from.rows).data(), source_rows, {}));
  return Fill(&tables, &memory_.emplace_back());
}

// ---- Tables in parts ------------------------------------------------------------------------------------------------

uint64_t DeviceJoins::Share() const {
  const uint64_t budget = gpu_.cache.budget();
  uint64_t taken = gpu_.cache.claimed();
  for (const std::unique_ptr<Parted>& p : parted_) taken += p == nullptr ? 0 : p->bytes;
  return std::max(budget / 2 - std::min(budget / 2, taken), budget / 8);
}

uint64_t DeviceJoins::BytesFor(const vm::Section& builder, uint64_t rows) const {
  // Slots of 16 bytes, at most half of them in use; or values and bits by the key itself, where they are not more.
  const uint64_t places = std::max({16 * std::bit_ceil(std::max<uint64_t>(2 * rows, 32)),
                                    rows * (kDirectBytesPerRow + 4), DirectBytes(gpu_) / 8 * 9});
  return rows * RowBytes(builder.columns) + (builder.keys > 0 ? places + rows * sizeof(uint32_t) : 0);
}

Status DeviceJoins::Part(const vm::Program& program, int join, std::vector<vm::RowSet> rows, uint64_t source_rows,
                         vm::ThreadPool* pool) {
  const vm::Section& builder = program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(join)].section)];
  const uint64_t share = Share();
  // The most rows that fit: a power of two, as slots are, or what fits beside twice as many slots.
  uint64_t most = 1;
  while (BytesFor(builder, 2 * most) <= share) most *= 2;
  for (uint64_t step = most / 2; step > 0; step /= 2) {
    if (BytesFor(builder, most + step) <= share) most += step;
  }
  auto parted = std::make_unique<Parted>();
  parted->source_rows = source_rows;
  parted->bytes = BytesFor(builder, most);
  TESSERA_ASSIGN(parted->parts, CutJoin(std::move(rows), builder, most, pool));
  for (const JoinPart& part : parted->parts.parts) {
    if (!FitOneNumber(part.columns, static_cast<size_t>(builder.keys))) return KeysTooLong();
  }
  parted_[static_cast<size_t>(join)] = std::move(parted);
  return Status::Ok();
}

Status DeviceJoins::LoadPart(const vm::Program& program, int join, size_t number) {
  const vm::Section& builder = program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(join)].section)];
  DropPart(join);
  Parted& parted = *parted_[static_cast<size_t>(join)];
  const JoinPart& part = parted.parts.parts[number];
  JoinRows rows;
  TESSERA_TRY(Upload(builder, parted.parts.rows, part.first, part.rows, &rows));
  std::vector<Making> tables(1);
  TESSERA_ASSIGN(tables[0], Make(program, join, &rows, part.columns.data(), parted.source_rows, {}));
  return Fill(&tables, &parted.memory);
}

void DeviceJoins::DropPart(int join) {
  parted_[static_cast<size_t>(join)]->memory.Free();
  shapes_[static_cast<size_t>(join)] = nullptr;
  tables_[static_cast<size_t>(join)].reset();
}

tessera::Result<DeviceJoins::Making> DeviceJoins::Make(const vm::Program& program, int join, JoinRows* rows,
                                                       const ColumnSummary* summaries, uint64_t source_rows,
                                                       const vm::KeyRange& source_keys) {
  const vm::JoinTable& info = program.joins[static_cast<size_t>(join)];
  const vm::Section& builder = program.sections[static_cast<size_t>(info.section)];
  auto table = std::make_unique<Table>();
  swap(table->rows, *rows);
  if (info.order >= 0) TESSERA_TRY(Sort(&table->rows, builder.columns, static_cast<size_t>(info.order), summaries));
  bool outer = false;
  for (const vm::Section& s : program.sections) {
    for (const vm::Instruction& in : s.code) outer |= in.op == vm::Opcode::ProbeOuter && in.p1 == join;
  }
  TESSERA_ASSIGN(Making making, LayOut(table.get(), builder, info.unique, outer, summaries));
  TESSERA_ASSIGN(const bool by_place, OrderByPlaces(table.get(), builder, summaries));
  if (by_place) {
    table->shape = {};
    TESSERA_ASSIGN(making, LayOut(table.get(), builder, info.unique, outer, summaries));
  }
  JoinShape& shape = table->shape;
  shape.rows_by_place = by_place;
  const double n = static_cast<double>(table->rows.rows());
  shape.share = std::clamp(n / static_cast<double>(std::max<uint64_t>(source_rows, 1)), 1e-9, 1.0);
  shape.range_share = 1;
  if (builder.keys == 1 && !IsWide(builder.columns[0])) {
    const StorageClass storage = builder.columns[0].storage();
    if (storage == StorageClass::kInt) {
      key_ranges_[static_cast<size_t>(join)] = {true, n > 0 ? summaries[0].low : 0, n > 0 ? summaries[0].high : -1};
    }
    if (source_keys.known && n > 0) {
      // How much denser the keys lie in their range than those of the whole table do in theirs.
      const double range = static_cast<double>(summaries[0].high) - static_cast<double>(summaries[0].low) + 1;
      const double all = static_cast<double>(source_keys.high) - static_cast<double>(source_keys.low) + 1;
      const double denser = n / range / (static_cast<double>(source_rows) / all);
      shape.range_share = std::clamp(shape.share / std::max(denser, 1e-9), shape.share, 1.0);
    }
  }
  tables_[static_cast<size_t>(join)] = std::move(table);
  shapes_[static_cast<size_t>(join)] = &tables_[static_cast<size_t>(join)]->shape;
  return making;
}

PieceRanges DeviceJoins::Pieces(const vm::Program& program, int join, uint32_t piece_rows) const {
  const std::vector<SqlType>& columns =
      program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(join)].section)].columns;
  PieceRanges pieces;
  pieces.rows = static_cast<uint32_t>(rows(join).rows());
  pieces.piece_rows = piece_rows;
  pieces.columns = static_cast<uint32_t>(std::min<size_t>(columns.size(), kMaxRangeColumns));
  for (uint32_t c = 0; c < pieces.columns; ++c) {
    const StorageClass storage = columns[c].storage();
    if (storage == StorageClass::kInt) pieces.kinds[c] = RangeKind::kInteger;
    if (storage == StorageClass::kFloat) pieces.kinds[c] = RangeKind::kFloat;
  }
  return pieces;
}

Status DeviceJoins::Sort(JoinRows* rows, const std::vector<SqlType>& columns, size_t by,
                         const ColumnSummary* summaries) {
  const uint64_t n = rows->rows();
  if (n < 2) return Status::Ok();
  const ColumnSummary known = by < kMaxSummaries ? summaries[by] : ColumnSummary{INT64_MIN, INT64_MAX, n};
  if (known.low > known.high) return Status::Ok();  // all NULL
  std::vector<SortPart> parts(2);
  parts[0].code = SortCode::kNull;
  parts[0].high = known.nulls > 0 ? 1 : 0;
  parts[1].values = rows->low(by);
  parts[0].null = parts[1].null = rows->null(by);
  if (columns[by].storage() == StorageClass::kFloat) {
    parts[1].code = SortCode::kFloat;
  } else {
    constexpr uint64_t kSign = uint64_t{1} << 63;
    parts[1].low = static_cast<uint64_t>(known.low) ^ kSign;
    parts[1].high = static_cast<uint64_t>(known.high) ^ kSign;
  }
  const uint32_t count = static_cast<uint32_t>(n);
  size_t scratch_bytes = 0;
  CUDA_TRY(SortScratchBytes(count, &scratch_bytes));
  RunBuffer scratch;
  TESSERA_TRY(scratch.Allocate(&gpu_, scratch_bytes));
  const uint32_t* order = nullptr;
  CUDA_TRY(StartSort(PackParts(parts), nullptr, count, scratch.As<void>(), scratch_bytes, &order, gpu_.stream));
  JoinRows sorted;
  TESSERA_TRY(sorted.Allocate(&gpu_, columns, n));
  sorted.set_rows(n);
  const uint32_t wide = static_cast<uint32_t>(std::count_if(columns.begin(), columns.end(), IsWide));
  CUDA_TRY(StartGather(rows->columns(), sorted.columns(), static_cast<uint32_t>(columns.size()) + wide,
                       static_cast<uint32_t>(columns.size()), order, count, gpu_.stream));
  swap(sorted, *rows);
  return Status::Ok();
}

tessera::Result<bool> DeviceJoins::OrderByPlaces(Table* table, const vm::Section& builder,
                                                 const ColumnSummary* summaries) {
  const JoinRecord& record = table->shape.record;
  JoinRows& rows = table->rows;
  const uint64_t n = rows.rows();
  // (Values that are the payload itself are not filled in faster then than it takes to order the rows.)
  const bool can = record.rows_in_values && builder.keys > 0 && n > 1 && n < UINT32_MAX / 2;
  if (!can || !MayOrder(partitioning_, record, gpu_.limits.cache_bytes)) return false;
  if (n * RowBytes(builder.columns) > gpu_.Room() / kOrderedShare) return false;
  const size_t columns = builder.columns.size();
  const size_t all =
      2 * columns + static_cast<size_t>(std::count_if(builder.columns.begin(), builder.columns.end(), IsWide));
  if (all > kMostRadixColumns) return false;
  struct Head {
    RadixSource sources[kMostRadixColumns];
    uint32_t first_tile = 0, rows = 0;
  } head;
  JoinRows ordered;
  RunBuffer memory;
  if (!ordered.TryAllocate(&gpu_, builder.columns, n) ||
      !memory.TryAllocate(&gpu_, sizeof head + kMostRadixParts * sizeof(uint32_t)))
    return false;
  TESSERA_TRY(rows.ClearPadding(gpu_.stream));
  ordered.set_rows(n);
  RadixPartition p;
  const auto move = [&](void* from, void* to, uint32_t width) {
    head.sources[p.columns].codes = static_cast<const uint8_t*>(from);
    head.sources[p.columns].width = width;
    p.to[p.columns++] = {static_cast<uint8_t*>(to), 0, width};
  };
  // (Keys come first, are not wide, and are not NULL.)
  for (size_t c = 0, wide = 0; c < columns; ++c) {
    move(rows.low(c), ordered.low(c), 8);
    const bool is_wide = IsWide(builder.columns[c]);
    if (is_wide) move(rows.high(wide), ordered.high(wide), 8);
    wide += is_wide ? 1 : 0;
    if (is_wide || c >= kMaxSummaries || summaries[c].nulls > 0) {
      move(rows.null(c), ordered.null(c), 1);
    } else {
      CUDA_TRY(cudaMemsetAsync(ordered.null(c), 0, n, gpu_.stream));
    }
  }
  head.rows = p.rows = static_cast<uint32_t>(n);
  // (Pageable memory: the copy is done when the call returns.)
  CUDA_TRY(cudaMemcpyAsync(memory.As<void>(), &head, sizeof head, cudaMemcpyHostToDevice, gpu_.stream));
  const Head* const at = memory.As<Head>();
  p.from = at->sources;
  p.first_tile = &at->first_tile;
  p.source_rows = &at->rows;
  p.next = reinterpret_cast<uint32_t*>(memory.As<Head>() + 1);
  p.sources = 1;
  p.tiles = (p.rows - 1) / kRadixTileRows + 1;
  SetKeys(record, std::vector<uint64_t>(static_cast<size_t>(builder.keys), 0), &p);
  CUDA_TRY(StartRadixPartition(p, gpu_.info.multiprocessors, gpu_.stream));
  swap(ordered, table->rows);
  return true;
}

tessera::Result<DeviceJoins::Making> DeviceJoins::LayOut(Table* table, const vm::Section& builder, bool unique,
                                                         bool outer, const ColumnSummary* summaries) {
  JoinShape& shape = table->shape;
  JoinRecord& record = shape.record;
  const JoinRows& rows = table->rows;
  const uint64_t n = rows.rows();
  const size_t keys = static_cast<size_t>(builder.keys), payload = builder.columns.size() - keys;
  Making making;
  making.table = table;
  JoinBuild& build = making.build;
  build.rows = static_cast<uint32_t>(n);
  build.keys = static_cast<uint32_t>(keys);
  record.rows = build.rows;
  record.keys = static_cast<uint8_t>(keys);

  // Payload: bit fields of the value if they fit and no row has several matches, else the rows themselves.
  size_t wide = 0;
  uint32_t bits = 0;
  bool fits = unique && !outer && keys > 0 && payload <= kMaxPackedPayload && builder.columns.size() <= kMaxSummaries;
  for (size_t c = 0; c < keys + payload; ++c) {
    PayloadShape p;
    p.wide = IsWide(builder.columns[c]);
    if (c < keys) continue;
    p.column = reinterpret_cast<uint64_t>(rows.low(c));
    p.nulls = reinterpret_cast<uint64_t>(rows.null(c));
    p.nullable = true;
    if (p.wide) p.column_high = reinterpret_cast<uint64_t>(rows.high(wide++));
    if (c < kMaxSummaries && !p.wide) {
      p.nullable = summaries[c].nulls != 0;
      p.low = n > summaries[c].nulls ? summaries[c].low : 0;
      p.high = n > summaries[c].nulls ? summaries[c].high : -1;
      if (!p.nullable) p.nulls = 0;
      p.nullable |= outer;
    }
    fits = fits && !p.wide;
    if (fits) {
      // Values count from 1 in the first field, so that the whole is never 0; a NULL comes before them.
      const uint64_t first = (c == keys ? 1 : 0) + (p.nullable ? 1 : 0);
      const uint64_t span = static_cast<uint64_t>(p.high) - static_cast<uint64_t>(p.low);
      const uint64_t most = (p.low > p.high ? 0 : span) + first;
      const uint32_t width = static_cast<uint32_t>(std::bit_width(most));
      fits = (p.low > p.high || span < kMostPlaces) && bits + width <= 32;
      if (fits) {
        p.shift = bits;
        p.mask = static_cast<uint32_t>((uint64_t{1} << width) - 1);
        p.base = static_cast<int64_t>(static_cast<uint64_t>(p.low) - first);
        p.null_field = p.nullable ? (c == keys ? 1 : 0) : -1;
        bits += width;
        // A field of no bits lies nowhere.
        if (width == 0) p.shift = 0;
      }
    }
    shape.payload.push_back(p);
  }
  shape.packed = fits;
  record.rows_in_values = !fits;
  if (keys == 0) {
    record.lookup = JoinLookup::kCross;
    build.rows = 0;
    return making;
  }

  // Keys make one number.
  uint64_t places = 1;
  for (size_t k = 0; k < keys; ++k) {
    const int64_t low = n > 0 ? summaries[k].low : 0, high = n > 0 ? summaries[k].high : 0;
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    build.key[k] = reinterpret_cast<const int64_t*>(rows.low(k));
    build.low[k] = record.low[k] = low;
    record.span[k] = span;
    build.stride[k] = record.stride[k] = places;
    uint64_t product;
    if (k == 0 && keys == 1) {
      record.last = span;
    } else if (span == UINT64_MAX || __builtin_mul_overflow(places, span + 1, &product)) {
      return KeysTooLong();
    } else {
      places = product;
      record.last = places - 1;
    }
  }
  if (!unique) making.next = std::max<uint64_t>(n, 1) * 4;
  build.packed = shape.packed;
  build.payload = static_cast<uint32_t>(payload);
  for (size_t p = 0; p < payload && fits; ++p) {
    const PayloadShape& s = shape.payload[p];
    build.column[p] = reinterpret_cast<const int64_t*>(s.column);
    build.null[p] = reinterpret_cast<const uint8_t*>(s.nulls);
    build.base[p] = s.base;
    build.shift[p] = s.shift;
    build.null_field[p] = static_cast<uint32_t>(s.null_field);
  }

  const bool nothing = unique && !outer && payload == 0;
  const uint64_t width = !fits ? 4 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
  const bool few = record.last < kMostPlaces;
  const uint64_t bits_bytes = few ? RoundUp(record.last / 8 + 1, 16) : UINT64_MAX;
  const uint64_t value_bytes = few ? (record.last + 1) * width : UINT64_MAX;
  const uint64_t most = std::max(DirectBytes(gpu_), n * kDirectBytesPerRow);
  bool with_bits = false;
  if (few && nothing && bits_bytes <= most) {
    record.lookup = JoinLookup::kBits;
    with_bits = true;
  } else if (few && value_bytes <= most) {
    record.lookup = JoinLookup::kDirect;
    record.width = static_cast<uint8_t>(width);
    with_bits = bits_bytes <= kSharedBitsBytes || (value_bytes > kSparseBytes && n < record.last / 2);
    making.values = value_bytes;
  } else {
    const uint64_t slots = std::bit_ceil(std::max<uint64_t>(2 * n, 32));
    if (slots > uint64_t{1} << 31)
      return Status(ErrorCode::kResource, "a join table has more rows than a GPU's hash table");
    const bool narrow = record.last <= UINT32_MAX;
    record.lookup = narrow ? JoinLookup::kHash32 : JoinLookup::kHash64;
    record.slot_mask = static_cast<uint32_t>(slots - 1);
    record.slot_shift = static_cast<uint32_t>((narrow ? 32 : 64) - std::countr_zero(slots));
    making.values = slots * (narrow ? 8 : 16);
  }
  if (with_bits) {
    making.bits = bits_bytes;
    record.bits_bytes = static_cast<uint32_t>(std::min<uint64_t>(bits_bytes, UINT32_MAX / 16 * 16));
  }
  build.lookup = record.lookup;
  build.width = record.width;
  build.slot_shift = record.slot_shift;
  build.slot_mask = record.slot_mask;
  return making;
}

Status DeviceJoins::Fill(std::vector<Making>* tables, RunBuffer* memory) {
  // What has to be cleared comes first.
  uint64_t cleared = 0, bytes = 0;
  for (const Making& m : *tables) cleared += RoundUp(m.bits, 256) + RoundUp(m.values, 256);
  bytes = cleared;
  for (const Making& m : *tables) bytes += RoundUp(m.next, 256);
  if (bytes == 0) return Status::Ok();
  TESSERA_TRY(memory->Allocate(&gpu_, bytes));
  CUDA_TRY(cudaMemsetAsync(memory->As<void>(), 0, cleared, gpu_.stream));
  uint8_t* at = memory->As<uint8_t>();
  auto take = [&at](uint64_t size) {
    uint8_t* part = size == 0 ? nullptr : at;
    at += RoundUp(size, 256);
    return part;
  };
  std::vector<JoinBuild> builds;
  for (Making& m : *tables) {
    JoinRecord& record = m.table->shape.record;
    record.bits = m.build.bits = reinterpret_cast<uint32_t*>(take(m.bits));
    record.values = m.build.values = take(m.values);
  }
  for (Making& m : *tables) {
    m.table->shape.record.next = m.build.next = reinterpret_cast<uint32_t*>(take(m.next));
    builds.push_back(m.build);
  }
  CUDA_TRY(StartBuildTables(builds.data(), builds.size(), gpu_.stream));
  for (Making& m : *tables) {
    if (!m.build.packed) continue;
    // Nobody reads the rows of a table whose values hold all there is.
    JoinRows none;
    none.set_rows(m.table->rows.rows());
    swap(none, m.table->rows);
  }
  return Status::Ok();
}

}  // namespace tessera::kernels
