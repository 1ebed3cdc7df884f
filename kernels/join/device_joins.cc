#include "kernels/join/device_joins.h"

#include <algorithm>
#include <utility>

#include "kernels/join/order_rows.h"

namespace tessera::kernels {
namespace {

uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/// Hashes of keys that are tried until no two keys of a table have the same one. (The second one is seldom asked.)
constexpr int kMostHashes = 8;

}  // namespace

bool CanPart(const vm::Program& program, int join) {
  return program.joins[static_cast<size_t>(join)].order < 0 && BuilderOf(program, join).keys > 0;
}

PieceRanges CutPieces(const vm::Program& program, int join, uint64_t rows, uint32_t piece_rows) {
  const std::vector<SqlType>& columns = BuilderOf(program, join).columns;
  PieceRanges pieces;
  pieces.rows = static_cast<uint32_t>(rows);
  pieces.piece_rows = piece_rows;
  pieces.columns = static_cast<uint32_t>(std::min<size_t>(columns.size(), kMaxRangeColumns));
  for (uint32_t c = 0; c < pieces.columns; ++c) {
    const StorageClass storage = columns[c].storage();
    if (storage == StorageClass::kInt) pieces.kinds[c] = RangeKind::kInteger;
    if (storage == StorageClass::kFloat) pieces.kinds[c] = RangeKind::kFloat;
  }
  return pieces;
}

void DeviceJoins::Resize(size_t joins) {
  tables_.resize(joins);
  shapes_.resize(joins);
  key_ranges_.resize(joins);
  parted_.resize(joins);
}

// ---- Building -------------------------------------------------------------------------------------------------------

Status DeviceJoins::LayOut(const vm::Program& program, const vm::ProgramTraits& traits, const BuiltRows& built,
                           TableBatch* batch) {
  TESSERA_ASSIGN(const TableLayout layout, MakeTable(program, traits, built));
  if (batch->bytes + layout.bytes() > FreeBytes() && CanPart(program, built.join))
    return MoveToHost(program, built.join, built.source_rows, batch);
  batch->bytes += layout.bytes();
  batch->on_device.push_back({built.join, built.source_rows, layout});
  return Status::Ok();
}

Status DeviceJoins::FillTables(const vm::Program& program, TableBatch* batch, ThreadPool* pool) {
  std::vector<TableBatch::Entry>& entries = batch->on_device;
  for (;;) {
    std::vector<TableLayout*> layouts;
    for (TableBatch::Entry& e : entries) layouts.push_back(&e.layout);
    const Status filled = Fill(layouts, &memory_.emplace_back());
    if (filled.ok()) break;
    // CUDA has less memory than the budget: without the largest table, then.
    auto largest = entries.end();
    for (auto e = entries.begin(); e != entries.end(); ++e) {
      const bool larger = largest == entries.end() || e->layout.bytes() > largest->layout.bytes();
      if (larger && CanPart(program, e->join)) largest = e;
    }
    if (filled.code() != ErrorCode::kResource || largest == entries.end()) return filled;
    TESSERA_TRY(MoveToHost(program, largest->join, largest->source_rows, batch));
    entries.erase(largest);
  }
  for (TableBatch::HostEntry& e : batch->on_host) {
    TESSERA_TRY(CutTable(program, e.join, std::move(e.rows), e.source_rows, pool));
  }
  return Status::Ok();
}

Status DeviceJoins::MoveToHost(const vm::Program& program, int join, uint64_t source_rows, TableBatch* batch) {
  std::unique_ptr<DeviceTable>& table = tables_[static_cast<size_t>(join)];
  TESSERA_ASSIGN(vm::RowSet rows,
                 DownloadRows(&gpu_, BuilderOf(program, join).columns, table->rows, table->rows.rows()));
  TableBatch::HostEntry& entry = batch->on_host.emplace_back();
  entry.join = join;
  entry.source_rows = source_rows;
  entry.rows.push_back(std::move(rows));
  shapes_[static_cast<size_t>(join)] = nullptr;
  table.reset();
  return Status::Ok();
}

Status DeviceJoins::Put(const vm::Program& program, const vm::ProgramTraits& traits, int join, const vm::RowSet& from,
                        uint64_t source_rows, vm::JoinPartitioning partitioning) {
  partitioning_ = partitioning;
  const vm::Section& builder = BuilderOf(program, join);
  if (CanPart(program, join) && MostTableBytes(builder, from.rows, direct_bytes()) > FreeBytes())
    return CutTable(program, join, {from}, source_rows, nullptr);
  DeviceRows rows;
  TESSERA_TRY(UploadRows(&gpu_, builder.columns, from, 0, from.rows, &rows));
  const std::vector<ColumnSummary> summaries = Summarize(from, 0, from.rows);
  TESSERA_ASSIGN(TableLayout layout, MakeTable(program, traits, {join, &rows, summaries.data(), source_rows, {}}));
  return Fill({&layout}, &memory_.emplace_back());
}

Result<TableLayout> DeviceJoins::MakeTable(const vm::Program& program, const vm::ProgramTraits& traits,
                                           const BuiltRows& built) {
  const size_t join = static_cast<size_t>(built.join);
  const vm::JoinSpec& info = program.joins[join];
  const vm::Section& builder = BuilderOf(program, built.join);
  auto table = std::make_unique<DeviceTable>();
  swap(table->rows, *built.rows);
  if (info.order >= 0) {
    TESSERA_TRY(SortTableRows(&gpu_, builder.columns, static_cast<size_t>(info.order), built.summaries, &table->rows));
  }
  const vm::JoinTraits& uses = traits.join(built.join);
  const auto lay_out = [&] {
    return LayOutTable(table.get(), builder, {info.unique, uses.has_outer, uses.has_loop}, built.summaries,
                       direct_bytes());
  };
  TESSERA_ASSIGN(TableLayout layout, lay_out());
  TESSERA_ASSIGN(const bool by_slot, OrderRowsBySlots(&gpu_, builder, built.summaries, partitioning_, table.get()));
  if (by_slot) {
    table->shape = {};
    TESSERA_ASSIGN(layout, lay_out());
  }
  table->shape.rows_by_slot = by_slot;
  EstimateShares(builder, built, table.get());
  tables_[join] = std::move(table);
  shapes_[join] = &tables_[join]->shape;
  return layout;
}

void DeviceJoins::EstimateShares(const vm::Section& builder, const BuiltRows& built, DeviceTable* table) {
  JoinShape& shape = table->shape;
  const double n = static_cast<double>(table->rows.rows());
  const double source_rows = static_cast<double>(built.source_rows);
  shape.selectivity = std::clamp(n / std::max(source_rows, 1.0), 1e-9, 1.0);
  shape.range_selectivity = 1;
  if (builder.keys != 1 || IsWide(builder.columns[0])) return;
  const ColumnSummary& key = built.summaries[0];
  if (builder.columns[0].storage() == StorageClass::kInt)
    key_ranges_[static_cast<size_t>(built.join)] = {true, n > 0 ? key.low : 0, n > 0 ? key.high : -1};
  if (!built.source_keys.known || n == 0) return;
  // How much denser the keys lie in their range than those of the whole table do in theirs.
  const double range = static_cast<double>(key.high) - static_cast<double>(key.low) + 1;
  const double all = static_cast<double>(built.source_keys.high) - static_cast<double>(built.source_keys.low) + 1;
  const double denser = n / range / (source_rows / all);
  shape.range_selectivity = std::clamp(shape.selectivity / std::max(denser, 1e-9), shape.selectivity, 1.0);
}

Status DeviceJoins::Fill(const std::vector<TableLayout*>& layouts, RunBuffer* memory) {
  // What has to be cleared comes first.
  uint64_t cleared = 0, bytes = 0;
  for (const TableLayout* l : layouts)
    cleared += RoundUp(l->bits, 256) + RoundUp(l->values, 256) + RoundUp(l->collided, 256);
  bytes = cleared;
  for (const TableLayout* l : layouts) bytes += RoundUp(l->next, 256);
  if (bytes == 0) return Status::Ok();
  TESSERA_TRY(memory->Allocate(&gpu_, bytes));
  uint8_t* at = memory->As<uint8_t>();
  const auto take = [&at](uint64_t size) {
    uint8_t* start = size == 0 ? nullptr : at;
    at += RoundUp(size, 256);
    return start;
  };
  for (TableLayout* l : layouts) {
    JoinRecord& record = l->table->shape.record;
    record.bits = l->build.bits = reinterpret_cast<uint32_t*>(take(l->bits));
    record.values = l->build.values = take(l->values);
    l->build.collided = reinterpret_cast<uint32_t*>(take(l->collided));
  }
  for (TableLayout* l : layouts) {
    l->table->shape.record.next = l->build.next = reinterpret_cast<uint32_t*>(take(l->next));
  }
  for (int turn = 0;; ++turn) {
    CUDA_TRY(cudaMemsetAsync(memory->As<void>(), 0, cleared, gpu_.stream));
    std::vector<JoinBuild> builds;
    for (const TableLayout* l : layouts) builds.push_back(l->build);
    CUDA_TRY(StartBuildTables(builds.data(), builds.size(), gpu_.stream));
    TESSERA_ASSIGN(const bool again, HashAgain(layouts));
    if (!again) break;
    if (turn == kMostHashes) return Status(ErrorCode::kResource, "different keys of a join table have the same hash");
  }
  for (TableLayout* l : layouts) {
    if (!l->build.packed) continue;
    // Rows of a table whose values hold all there is are not read.
    DeviceRows none;
    none.set_rows(l->table->rows.rows());
    swap(none, l->table->rows);
  }
  return Status::Ok();
}

Result<bool> DeviceJoins::HashAgain(const std::vector<TableLayout*>& layouts) {
  bool again = false;
  for (TableLayout* l : layouts) {
    if (l->build.collided == nullptr) continue;
    uint32_t collided = 0;
    CUDA_TRY(cudaMemcpyAsync(&collided, l->build.collided, sizeof collided, cudaMemcpyDeviceToHost, gpu_.stream));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    if (collided == 0) continue;
    again = true;
    const auto seed = AddToKeyNumber(static_cast<uint64_t>(l->build.low[0]), 1);
    l->table->shape.record.low[0] = l->build.low[0] = static_cast<int64_t>(seed);
  }
  return again;
}

// ---- Tables in spill partitions -------------------------------------------------------------------------------------

uint64_t DeviceJoins::FreeBytes() const {
  const uint64_t budget = gpu_.cache.budget();
  uint64_t taken = gpu_.cache.claimed();
  for (const std::unique_ptr<Parted>& p : parted_) taken += p == nullptr ? 0 : p->bytes;
  return std::max(budget / 2 - std::min(budget / 2, taken), budget / 8);
}

Status DeviceJoins::CutTable(const vm::Program& program, int join, std::vector<vm::RowSet> rows, uint64_t source_rows,
                             ThreadPool* pool) {
  const vm::Section& builder = BuilderOf(program, join);
  const uint64_t bytes = FreeBytes(), direct = direct_bytes();
  // The most rows that fit: a power of two, as slots are, or what fits beside twice as many slots.
  uint64_t most = 1;
  while (MostTableBytes(builder, 2 * most, direct) <= bytes) most *= 2;
  for (uint64_t step = most / 2; step > 0; step /= 2) {
    if (MostTableBytes(builder, most + step, direct) <= bytes) most += step;
  }
  auto parted = std::make_unique<Parted>();
  parted->source_rows = source_rows;
  parted->bytes = MostTableBytes(builder, most, direct);
  TESSERA_ASSIGN(parted->parts, CutJoin(std::move(rows), builder, most, pool));
  parted_[static_cast<size_t>(join)] = std::move(parted);
  return Status::Ok();
}

Status DeviceJoins::LoadPart(const vm::Program& program, const vm::ProgramTraits& traits, int join, size_t number) {
  DropPart(join);
  Parted& parted = *parted_[static_cast<size_t>(join)];
  const JoinPartition& part = parted.parts.parts[number];
  DeviceRows rows;
  TESSERA_TRY(UploadRows(&gpu_, BuilderOf(program, join).columns, parted.parts.rows, part.first, part.rows, &rows));
  TESSERA_ASSIGN(TableLayout layout,
                 MakeTable(program, traits, {join, &rows, part.columns.data(), parted.source_rows, {}}));
  return Fill({&layout}, &parted.memory);
}

void DeviceJoins::DropPart(int join) {
  parted_[static_cast<size_t>(join)]->memory.Free();
  shapes_[static_cast<size_t>(join)] = nullptr;
  tables_[static_cast<size_t>(join)].reset();
}

}  // namespace tessera::kernels
