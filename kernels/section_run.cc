#include "kernels/section_run.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <unordered_map>

#include "kernels/product_kernels.h"
#include "kernels/vm_kernel.h"
#include "vm/lane_error.h"
#include "vm/meaning.h"
#include "vm/thread_pool.h"

namespace tessera::kernels {
namespace {

/// A launch takes tablets until this much had to be copied for them, so that the next copies run beside it.
constexpr uint64_t kCopiedPerLaunch = uint64_t{256} << 20;
/// Rows of one launch: counters of blocks have 32 bits, and so do the halves of sums.
constexpr uint64_t kRowsPerLaunch = uint64_t{1} << 31;
constexpr uint32_t kFirstGroups = 1 << 15;
constexpr uint32_t kMaxGroups = 0xF0000000u;
constexpr uint64_t kFirstBuildRows = 1 << 20;
/// Direct groups in device memory have copies as long as all together are no more than that.
constexpr uint32_t kCopiedGroups = 1 << 16, kMaxCopies = 16;
constexpr uint64_t kGroupsPerCopy = 1 << 17;
/// Records, and as much of states, that come with the counters of a launch.
constexpr uint64_t kEagerBytes = 32 << 10;

/// Units of a product for each block that runs, rows of the join table in a unit, and how many units there may be.
/// Parts are shorter where units can be left out, as shorter ones have closer ranges.
constexpr uint64_t kUnitsPerBlock = 8;
constexpr uint64_t kLeastPartRows = 16, kMostPartRows = 1024, kMostPrunedRows = 32;
constexpr uint64_t kMostUnits = uint64_t{1} << 30, kMostTriedUnits = uint64_t{1} << 27;
/// Up to so many units are listed without being counted before.
constexpr uint64_t kListedAtOnce = uint64_t{1} << 22;
/// dp: buckets of the outer rows, units for a block of a child grid, blocks of all child grids beyond one a grid.
constexpr uint64_t kKeptPairs = uint64_t{1} << 30;  ///< from so many on BucketLaunch::keepers are worth their time
constexpr uint32_t kMostBuckets = 4096, kUnitsPerChildBlock = 4, kChildBlocks = 8192;

using vm::Opcode;
using vm::Section;

/// Binding a tablet takes a microsecond, and waking threads fifty; but one that is read for the first time is checked,
/// which takes much longer. From one on that took so long several threads bind, so many at a time: bound tablets are
/// small.
constexpr auto kSlowBinding = std::chrono::microseconds(100);
constexpr size_t kMostShared = 4096, kBinders = 6;
/// A build of up to so many rows takes room for all of them and runs without being waited for.
constexpr uint64_t kDeferredBuildRows = 1 << 26;

/// Binds tablets from `first` on, until one takes so long that several threads should do it: true.
bool BindTablets(const vm::SectionBinder& binder, const TableInfo& table, size_t first, const vm::BoundTablet* like,
                 std::vector<tessera::Result<vm::BoundTablet>>* bound) {
  const size_t end = std::min(table.tablets.size(), first + kMostShared);
  bound->reserve(end - first);
  auto start = std::chrono::steady_clock::now();
  for (size_t i = first; i < end; ++i) {
    const tessera::Result<vm::BoundTablet>& b = bound->emplace_back(binder.Bind(*table.tablets[i], like));
    if (b.ok() && !b->skip) like = &*b;
    const auto now = std::chrono::steady_clock::now();
    if (now - start > kSlowBinding) return true;
    start = now;
  }
  return false;
}

bool IsCount(Opcode op) { return op == Opcode::CountRows || op == Opcode::Count || op == Opcode::CountW; }

}  // namespace

TabletsAhead BindAhead(const vm::SectionContext& context, const std::vector<vm::KeyRange>& key_ranges) {
  const vm::SectionBinder binder(*context.program, context.section, context.strings, key_ranges);
  TabletsAhead ahead{context.section, context.table, {}};
  ahead.slow = BindTablets(binder, *context.table, 0, nullptr, &ahead.tablets);
  return ahead;
}

SectionRun::SectionRun(GpuDevice* gpu, const vm::SectionContext& context, const DeviceJoins& joins, int build)
    : gpu_(*gpu),
      context_(context),
      joins_(joins),
      build_(build),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      keys_(section_.sink == Section::Sink::kGroups ? static_cast<uint32_t>(section_.keys) : 0),
      lowered_(LowerProgram(*context.program, context.section, context.strings)),
      binder_(*context.program, context.section, context.strings, joins.key_ranges()),
      row_output_(gpu, context) {
  for (const SqlType& t : section_.columns) result_.columns.push_back({t, {}, {}, {}});
  if (section_.sink == Section::Sink::kRows && section_.order.empty() && section_.limit >= 0) {
    enough_ = static_cast<uint64_t>(section_.limit) + static_cast<uint64_t>(section_.offset);
  }
  totals_.resize(lowered_.folds.size());
  for (size_t k = 0; k < totals_.size(); ++k) totals_[k] = {lowered_.folds[k].low, lowered_.folds[k].high, 0, 0};
}

SectionRun::~SectionRun() {
  gpu_.cache.AbandonPending();
  for (Batch& b : batches_) gpu_.cache.Unpin(&b.pinned);
}

Status SectionRun::Take(TabletsAhead ahead) {
  bound_ = std::move(ahead.tablets);
  binding_is_slow_ = ahead.slow;
  for (tessera::Result<vm::BoundTablet>& b : bound_) {
    if (b.ok() && !b->skip) TESSERA_TRY(binder_.BindKeyRanges(&*b));
  }
  return Status::Ok();
}

Status SectionRun::AllTablets() {
  vm::SectionStatistics& stats = *context_.statistics;
  TESSERA_TRY(PrepareSink());
  if (section_.source_kind == Section::Source::kJoin) {
    Batch& batch = batches_[0];
    CollectRows(&batch);
    if (batch.tablets[0].rows == 0) return Status::Ok();
    TESSERA_TRY(Prepare(&batch, 0));
    TESSERA_TRY(Start(&batch));
    return Finish(&batch);
  }
  const TableInfo& table = *context_.table;
  stats.tablets = table.tablets.size();
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

tessera::Result<vm::RowSet> SectionRun::Result() {
  if (section_.sink == Section::Sink::kRows) {
    TESSERA_ASSIGN(result_, row_output_.Finish(rows_used_));
    std::string& plan = context_.statistics->device_plan;
    const std::string order = row_output_.Describe();
    if (!plan.empty() && !order.empty()) plan += ", " + order;
  } else if (keys_ > 0) {
    TESSERA_TRY(FetchGroups());
  } else {
    TESSERA_TRY(FinishTotals());
  }
  return std::move(result_);
}

tessera::Result<vm::BoundTablet>& SectionRun::Bind(size_t number, const vm::BoundTablet* like) {
  const TableInfo& table = *context_.table;
  if (number >= bound_from_ && number < bound_from_ + bound_.size()) return bound_[number - bound_from_];
  bound_.clear();
  bound_from_ = number;
  const size_t threads = context_.pool == nullptr ? 1 : static_cast<size_t>(context_.pool->threads());
  const size_t count = std::min(table.tablets.size() - number, kMostShared),
               workers = std::min({threads, kBinders, count});
  if (!binding_is_slow_ || workers == 1) {
    binding_is_slow_ = BindTablets(binder_, table, number, like, &bound_);
    return bound_[0];
  }
  for (size_t i = 0; i < count; ++i) bound_.emplace_back(Cancelled());
  context_.pool->Run(static_cast<int>(workers), [&](int worker) {
    const size_t w = static_cast<size_t>(worker);
    const vm::BoundTablet* as = nullptr;
    for (size_t i = w * count / workers; i < (w + 1) * count / workers; ++i) {
      bound_[i] = binder_.Bind(*table.tablets[number + i], as);
      if (bound_[i].ok() && !bound_[i]->skip) as = &*bound_[i];
    }
  });
  return bound_[0];
}

Status SectionRun::Collect(Batch* batch, size_t* next) {
  const TableInfo& table = *context_.table;
  vm::SectionStatistics& stats = *context_.statistics;
  batch->numbers.clear();
  batch->tablets.clear();
  batch->codes.clear();
  batch->nulls.clear();
  uint64_t copied = 0, bytes = 0, rows = 0;
  const size_t slots = section_.slots.size(), most = std::min(table.tablets.size() - *next, kMostShared);
  batch->tablets.reserve(most);
  batch->numbers.reserve(most);
  batch->codes.reserve(most * slots);
  batch->nulls.reserve(most * slots);
  batch->pinned.reserve(most * slots);
  while (*next < table.tablets.size() && copied < kCopiedPerLaunch) {
    if (IsCancelled()) return Cancelled();
    const std::shared_ptr<const Tablet>& tablet = table.tablets[*next];
    if (rows + tablet->rows() > kRowsPerLaunch) break;
    tessera::Result<vm::BoundTablet>& found = Bind(*next, batch->tablets.empty() ? nullptr : &batch->tablets.back());
    TESSERA_TRY(found.status());
    vm::BoundTablet& bound = *found;
    if (bound.skip) {
      ++stats.tablets_skipped;
      ++*next;
      continue;
    }
    // Two launches may hold pieces at once: half of the budget for each, but for what ORDER BY takes.
    const uint64_t size = FindNeeds(bound);
    if (!batch->tablets.empty() && bytes + size > (gpu_.cache.budget() - row_output_.reserved_bytes()) / 2) break;
    bytes += size;
    rows += bound.rows;
    NoteKeys(bound);
    batch->tablets.push_back(std::move(bound));
    batch->numbers.push_back(*next);
    TESSERA_TRY(Upload(batch, batch->tablets.size() - 1, &copied));
    stats.rows_in += batch->tablets.back().rows;
    stats.bytes_read += batch->tablets.back().encoded_bytes;
    ++*next;
  }
  if (copied > 0) {
    // Copies run beside kernels; what counts is how long the host was busy with them.
    const auto start = std::chrono::steady_clock::now();
    TESSERA_TRY(gpu_.cache.CopyPending(context_.pool));
    stats.transfer_milliseconds +=
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    stats.bytes_transferred += copied;
  }
  return Status::Ok();
}

void SectionRun::NoteKeys(const vm::BoundTablet& bound) {
  if (!IsBuild() || lowered_.first_build_key < 0) return;
  const Chunk& chunk = *bound.chunks[static_cast<size_t>(lowered_.first_build_key)];
  if (chunk.type.id == TypeId::kText || chunk.min > chunk.max || chunk.min < INT64_MIN || chunk.max > INT64_MAX) return;
  const int64_t low = static_cast<int64_t>(chunk.min), high = static_cast<int64_t>(chunk.max);
  source_keys_ = {true, source_keys_.known ? std::min(source_keys_.low, low) : low,
                  source_keys_.known ? std::max(source_keys_.high, high) : high};
}

uint64_t SectionRun::FindNeeds(const vm::BoundTablet& bound) {
  needs_.assign(bound.slots.size(), {});
  for (size_t i = 0; i < bound.slots.size(); ++i) {
    const vm::BoundSlot& b = bound.slots[i];
    if (lowered_.slot_values[i] && !b.all_null) needs_[i] = {b.width != 0, b.null_bytes != nullptr};
  }
  for (const vm::BoundPredicate& p : bound.predicates) {
    using Kind = vm::BoundPredicate::Kind;
    Needs& needs = needs_[static_cast<size_t>(p.slot)];
    needs.codes |= p.kind == Kind::kRange || (p.kind == Kind::kSet && !p.by_row);
    needs.nulls |= p.kind == Kind::kNulls;
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < bound.slots.size(); ++i) {
    if (needs_[i].codes) bytes += bound.chunks[i]->codes_bytes;
    if (needs_[i].nulls) bytes += bound.chunks[i]->rows;
  }
  return bytes;
}

Status SectionRun::Upload(Batch* batch, size_t at, uint64_t* copied) {
  const std::shared_ptr<const Tablet>& tablet = context_.table->tablets[batch->numbers[at]];
  const vm::BoundTablet& bound = batch->tablets[at];
  const size_t first = at * bound.slots.size();
  batch->codes.resize(first + bound.slots.size());
  batch->nulls.resize(first + bound.slots.size());
  TESSERA_ASSIGN(ColumnCache::TabletPieces * pieces, gpu_.cache.Find(tablet));
  for (size_t i = 0; i < bound.slots.size(); ++i) {
    const int column = section_.slots[i].column;
    const Chunk& chunk = *bound.chunks[i];
    if (needs_[i].codes) {
      TESSERA_ASSIGN(batch->codes[first + i], gpu_.cache.Fetch(pieces, column, ColumnCache::Stream::kCodes, chunk.codes,
                                                               chunk.codes_bytes, &batch->pinned, copied));
    }
    if (needs_[i].nulls) {
      TESSERA_ASSIGN(batch->nulls[first + i], gpu_.cache.Fetch(pieces, column, ColumnCache::Stream::kNulls,
                                                               chunk.null_bytes, chunk.rows, &batch->pinned, copied));
    }
  }
  return Status::Ok();
}

void SectionRun::CollectRows(Batch* batch) {
  const JoinRows& rows = joins_.rows(section_.source);
  const JoinShape& shape = *joins_.shapes()[static_cast<size_t>(section_.source)];
  const size_t slots = section_.slots.size();
  vm::BoundTablet bound;
  bound.rows = static_cast<uint32_t>(rows.rows());
  row_chunks_.resize(slots);
  for (size_t i = 0; i < slots; ++i) {
    const vm::Slot& slot = section_.slots[i];
    const PayloadShape& column = shape.payload[static_cast<size_t>(slot.column)];
    Chunk& chunk = row_chunks_[i];
    chunk.type = slot.type;
    chunk.width = 8;
    chunk.rows = bound.rows;
    chunk.min = column.low;
    chunk.max = column.high;
    bound.chunks.push_back(&chunk);
    vm::BoundSlot b;
    b.decode = vm::Decode::kRaw;
    b.width = 8;
    b.codes = reinterpret_cast<const uint8_t*>(column.column);
    b.null_bytes = reinterpret_cast<const uint8_t*>(column.nulls);
    bound.slots.push_back(b);
    batch->codes.push_back(b.codes);
    batch->nulls.push_back(b.null_bytes);
  }
  context_.statistics->rows_in += bound.rows;
  batch->numbers.push_back(0);
  batch->tablets.push_back(std::move(bound));
}

Status SectionRun::Prepare(Batch* batch, int arena_number) {
  std::vector<const vm::BoundTablet*> tablets;
  for (const vm::BoundTablet& t : batch->tablets) tablets.push_back(&t);
  TESSERA_ASSIGN(batch->plan, PlanLaunch(section_, lowered_, tablets, joins_.shapes(), gpu_.limits));
  const LaunchPlan& plan = batch->plan;
  Launch& launch = batch->launch;
  launch = Launch();
  for (const vm::BoundTablet& t : batch->tablets) launch.tiles += (t.rows + kTileRows - 1) / kTileRows;
  const bool dp = lowered_.product >= 0 && plan.joins[static_cast<size_t>(lowered_.product)].rows > 0 &&
                  context_.program->joins[static_cast<size_t>(lowered_.product)].strategy == vm::JoinStrategy::kDp;
  if (dp) batch->plan.variant = plan.variant == Variant::kPairs ? Variant::kDpPairs : Variant::kDp;
  TESSERA_ASSIGN(const int per_multiprocessor, gpu_.BlocksPerMultiprocessor(plan.variant, plan.layout.bytes));
  batch->blocks = static_cast<uint32_t>(per_multiprocessor * gpu_.info.multiprocessors);
  if (lowered_.product >= 0) TESSERA_TRY(PrepareProduct(batch, launch.tiles));
  batch->blocks = std::min(launch.tiles, batch->blocks);

  Arena& arena = gpu_.arena(static_cast<size_t>(2 * (build_ + 1) + arena_number));
  arena.Clear();
  batch->arena = &arena;
  const size_t n = tablets.size();
  // First what comes back, then what is sent; the counters are both.
  const size_t partials = arena.Add(keys_ == 0 ? batch->blocks * lowered_.folds.size() * sizeof(Partial) : 0);
  batch->control = arena.Add(sizeof(Control));
  const size_t cursors = arena.Add(batch->blocks * kWarps * sizeof(uint32_t));
  const size_t code = arena.Add(plan.code.size() * sizeof(DeviceInstruction));
  const size_t folds = arena.Add(plan.folds.size() * sizeof(DeviceInstruction));
  const size_t staged = arena.Add(plan.staged.size() * sizeof(StagedSlot));
  const size_t records = arena.Add(n * plan.record_bytes);
  const size_t first_tile = arena.Add(n * sizeof(uint32_t));
  const size_t rows = arena.Add(n * sizeof(uint32_t));
  const size_t places = arena.Add(lowered_.outputs.size() * sizeof(uint32_t));
  const size_t highs = arena.Add(lowered_.outputs.size() * sizeof(uint32_t));
  const size_t initial = arena.Add(lowered_.initial_state.size() * sizeof(uint64_t));
  const size_t joins = arena.Add(plan.joins.size() * sizeof(JoinRecord));
  // Maps and sets of each tablet; those that tablets share travel once.
  struct Piece {
    size_t bytes, offset;
  };
  std::unordered_map<const void*, Piece> pieces;
  auto add = [&](const void* from, size_t bytes) {
    auto [piece, is_new] = pieces.try_emplace(from);
    if (is_new) piece->second = {bytes, arena.Add(bytes)};
  };
  for (const vm::BoundTablet& t : batch->tablets) {
    for (size_t i = 0; i < t.slots.size(); ++i) {
      if (t.slots[i].map != nullptr) add(t.slots[i].map, t.slots[i].map_entries * 8);
      if (t.slots[i].map_null != nullptr) add(t.slots[i].map_null, t.slots[i].map_entries);
    }
    for (size_t i = 0; i < t.predicates.size(); ++i) {
      if (t.predicates[i].set != nullptr) add(t.predicates[i].set, t.predicates[i].set_bytes);
    }
  }
  TESSERA_TRY(arena.Allocate());
  memset(arena.Host(cursors), 0, batch->blocks * kWarps * sizeof(uint32_t));
  const auto copy = [&](size_t to, const auto& from) {
    std::copy(from.begin(), from.end(),
              reinterpret_cast<typename std::decay_t<decltype(from)>::pointer>(arena.Host(to)));
  };
  copy(code, plan.code);
  copy(folds, plan.folds);
  copy(staged, plan.staged);
  copy(initial, lowered_.initial_state);
  copy(joins, plan.joins);
  for (const auto& [from, piece] : pieces) memcpy(arena.Host(piece.offset), from, piece.bytes);
  uint32_t tiles = 0;
  std::vector<const int64_t*> maps;
  std::vector<const uint8_t*> map_nulls, sets;
  uint32_t* tile_numbers = reinterpret_cast<uint32_t*>(arena.Host(first_tile));
  for (size_t t = 0; t < n; ++t) {
    const vm::BoundTablet& bound = batch->tablets[t];
    const size_t slots = bound.slots.size();
    maps.assign(slots, nullptr);
    map_nulls.assign(slots, nullptr);
    sets.assign(bound.predicates.size(), nullptr);
    const TabletAddresses a{batch->codes.data() + t * slots, batch->nulls.data() + t * slots, maps.data(),
                            map_nulls.data(), sets.data()};
    for (size_t i = 0; i < bound.slots.size(); ++i) {
      if (bound.slots[i].map != nullptr) maps[i] = arena.Device<int64_t>(pieces[bound.slots[i].map].offset);
      if (bound.slots[i].map_null != nullptr)
        map_nulls[i] = arena.Device<uint8_t>(pieces[bound.slots[i].map_null].offset);
    }
    for (size_t i = 0; i < bound.predicates.size(); ++i) {
      if (bound.predicates[i].set != nullptr) sets[i] = arena.Device<uint8_t>(pieces[bound.predicates[i].set].offset);
    }
    FillRecord(bound, plan, a, arena.Host(records) + t * plan.record_bytes);
    tile_numbers[t] = tiles;
    reinterpret_cast<uint32_t*>(arena.Host(rows))[t] = bound.rows;
    tiles += (bound.rows + kTileRows - 1) / kTileRows;
  }

  launch.partials = arena.Device<Partial>(partials);
  launch.cursors = arena.Device<uint32_t>(cursors);
  launch.code = arena.Device<DeviceInstruction>(code);
  launch.code_length = static_cast<uint32_t>(plan.code.size());
  launch.slots = static_cast<uint32_t>(section_.slots.size());
  launch.records = arena.Device<uint8_t>(records);
  launch.record_bytes = plan.record_bytes;
  launch.record_staged = plan.record_staged;
  // Direct groups are there before the launch begins: nothing can run full.
  launch.two_passes = lowered_.two_passes && !plan.direct;
  launch.tablets = static_cast<uint32_t>(n);
  launch.first_tile = arena.Device<uint32_t>(first_tile);
  launch.tablet_rows = arena.Device<uint32_t>(rows);
  launch.repeats = lowered_.repeats;
  launch.staged_count = static_cast<uint32_t>(plan.staged.size());
  launch.staged = arena.Device<StagedSlot>(staged);
  launch.layout = plan.layout;
  launch.aggregates = static_cast<uint32_t>(plan.folds.size());
  launch.folds = arena.Device<DeviceInstruction>(folds);
  launch.joins = static_cast<uint32_t>(plan.joins.size());
  launch.join_records = arena.Device<JoinRecord>(joins);
  launch.keys = keys_;
  std::copy(std::begin(plan.resume), std::end(plan.resume), launch.resume);
  std::copy(plan.carried_from.begin(), plan.carried_from.end(), launch.carried_from);
  for (uint32_t q = 0; q < kQueues; ++q) {
    launch.carried[q] = static_cast<uint32_t>(plan.carried_to[q].size());
    std::copy(plan.carried_to[q].begin(), plan.carried_to[q].end(), launch.carried_to[q]);
  }
  launch.private_groups = plan.private_groups;
  launch.direct = plan.direct;
  launch.direct_groups = plan.direct_groups;
  std::copy(std::begin(plan.direct_keys), std::end(plan.direct_keys), launch.direct_keys);
  for (size_t k = 0; k < lowered_.keys.size(); ++k) launch.key_places[k] = plan.places[lowered_.keys[k]];
  if (IsBuild()) launch.build_keys = static_cast<uint32_t>(section_.keys);
  for (uint32_t k = 0; k < launch.build_keys; ++k) launch.key_places[k] = plan.places[k];
  launch.groups.initial_state = arena.Device<uint64_t>(initial);
  launch.output.places = arena.Device<uint32_t>(places);
  launch.output.highs = arena.Device<uint32_t>(highs);
  uint32_t wide = 0;
  for (size_t c = 0; c < lowered_.outputs.size(); ++c) {
    reinterpret_cast<uint32_t*>(arena.Host(places))[c] = plan.places[lowered_.outputs[c]];
    reinterpret_cast<uint32_t*>(arena.Host(highs))[c] = wide;
    if (IsWide(section_.columns[c])) ++wide;
  }
  vm::SectionStatistics& stats = *context_.statistics;
  const auto bytes_of = [&](uint32_t slot) {
    uint64_t bytes = 0;
    for (const vm::BoundTablet& t : batch->tablets) bytes += uint64_t{t.rows} * t.slots[slot].width;
    return bytes;
  };
  for (const StagedSlot& column : plan.staged) stats.bytes_staged += bytes_of(column.slot);
  for (const LaunchPlan::OnDemand& column : plan.on_demand) {
    stats.bytes_on_demand += static_cast<uint64_t>(column.touched * static_cast<double>(bytes_of(column.slot)));
  }
  stats.device_plan = Describe(plan) + ", " + std::to_string(per_multiprocessor) + " blocks a multiprocessor";
  return Status::Ok();
}

Status SectionRun::PrepareProduct(Batch* batch, uint32_t tiles) {
  Launch& launch = batch->launch;
  const vm::JoinTable& join = context_.program->joins[static_cast<size_t>(lowered_.product)];
  const uint32_t rows = batch->plan.joins[static_cast<size_t>(lowered_.product)].rows;
  const bool dp = IsDp(batch->plan.variant);
  const bool pruned = section_.source_kind == Section::Source::kJoin && (dp || join.order >= 0);
  // Enough units for all blocks to end together, and not more than can be numbered.
  const uint64_t even = uint64_t{rows} * tiles / (uint64_t{batch->blocks} * kUnitsPerBlock);
  uint64_t part_rows =
      std::clamp<uint64_t>(std::bit_floor(even), kLeastPartRows, pruned ? kMostPrunedRows : kMostPartRows);
  while (tiles * ((rows + part_rows - 1) / part_rows) > (pruned ? kMostTriedUnits : kMostUnits)) part_rows *= 2;
  launch.product = static_cast<uint32_t>(lowered_.product);
  launch.part_rows = static_cast<uint32_t>(part_rows);
  launch.parts = std::max<uint32_t>(1, static_cast<uint32_t>((rows + part_rows - 1) / part_rows));
  launch.tiles = tiles * launch.parts;
  uint64_t outer_rows = 0;
  for (const vm::BoundTablet& t : batch->tablets) outer_rows += t.rows;
  context_.statistics->pairs += outer_rows * rows;
  return pruned && rows > 0 ? FindUnits(batch, launch.part_rows) : Status::Ok();
}

Status SectionRun::FindUnits(Batch* batch, uint32_t part_rows) {
  Launch& launch = batch->launch;
  const vm::RangeProgram& program = lowered_.ranges;
  UnitSearch search;
  search.count = static_cast<int32_t>(program.steps.size());
  search.may_skip = program.all_from >= 0;
  search.outer = joins_.Pieces(*context_.program, section_.source, kTileRows);
  search.inner = joins_.Pieces(*context_.program, lowered_.product, part_rows);
  const uint64_t outer_bytes = uint64_t{search.outer.pieces()} * search.outer.columns * sizeof(vm::KnownRange);
  const uint64_t inner_bytes = uint64_t{search.inner.pieces()} * search.inner.columns * sizeof(vm::KnownRange);
  TESSERA_TRY(Renew(&ranges_, outer_bytes + inner_bytes));
  search.outer.ranges = ranges_.As<vm::KnownRange>();
  search.inner.ranges = search.outer.ranges + uint64_t{search.outer.pieces()} * search.outer.columns;
  CUDA_TRY(StartRanges(joins_.rows(section_.source).columns(), search.outer, gpu_.stream));
  CUDA_TRY(StartRanges(joins_.rows(lowered_.product).columns(), search.inner, gpu_.stream));
  TESSERA_TRY(Renew(&found_, sizeof(Found)));
  TESSERA_TRY(gpu_.host_found.Reserve(sizeof(Found)));
  CUDA_TRY(cudaMemsetAsync(found_.As<void>(), 0, sizeof(Found), gpu_.stream));
  search.totals = &found_.As<Found>()->totals;
  if (!program.steps.empty()) {
    TESSERA_TRY(Renew(&steps_, program.steps.size() * sizeof(vm::RangeStep)));
    // (Pageable memory: the copy is done when the call returns.)
    CUDA_TRY(cudaMemcpyAsync(steps_.As<void>(), program.steps.data(), program.steps.size() * sizeof(vm::RangeStep),
                             cudaMemcpyHostToDevice, gpu_.stream));
    search.steps = steps_.As<vm::RangeStep>();
  }
  batch->finds_units = true;
  if (IsDp(batch->plan.variant)) {
    batch->buckets.search = search;
    return PrepareBuckets(batch);
  }
  uint64_t room = launch.tiles;
  if (room > kListedAtOnce) {
    // What is found decides how much memory it takes.
    CUDA_TRY(StartListUnits(search, gpu_.stream));
    UnitTotals totals;
    CUDA_TRY(cudaMemcpyAsync(&totals, search.totals, sizeof totals, cudaMemcpyDeviceToHost, gpu_.stream));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    room = std::max<uint64_t>(totals.count, 1);
    CUDA_TRY(cudaMemsetAsync(search.totals, 0, sizeof(UnitTotals), gpu_.stream));
  }
  TESSERA_TRY(Renew(&units_, room * sizeof(uint32_t)));
  search.units = units_.As<uint32_t>();
  CUDA_TRY(StartListUnits(search, gpu_.stream));
  launch.units = search.units;
  launch.unit_count = &search.totals->count;
  return Status::Ok();
}

Status SectionRun::PrepareBuckets(Batch* batch) {
  BucketLaunch& b = batch->buckets;
  const uint32_t tiles = b.search.outer.pieces(), parts = b.search.inner.pieces();
  b.bucket_tiles = (tiles + kMostBuckets - 1) / kMostBuckets;
  b.buckets = (tiles + b.bucket_tiles - 1) / b.bucket_tiles;
  const uint64_t most = uint64_t{b.bucket_tiles} * parts;  // units of a bucket
  b.unit_room = static_cast<uint32_t>(std::max(most, std::min<uint64_t>(kListedAtOnce, uint64_t{tiles} * parts)));
  b.units_per_block = kUnitsPerChildBlock;
  b.most_blocks = batch->blocks;
  b.own_blocks = 1 + kChildBlocks / 2 / b.buckets;
  b.spare_blocks = kChildBlocks / 2;
  b.variant = batch->plan.variant;
  const bool large = uint64_t{b.search.outer.rows} * b.search.inner.rows >= kKeptPairs;
  b.keepers = large ? 2 * static_cast<uint32_t>(gpu_.info.multiprocessors) : 0;
  TESSERA_TRY(Renew(&units_, uint64_t{b.unit_room} * sizeof(uint32_t)));
  b.search.units = units_.As<uint32_t>();
  TESSERA_TRY(Renew(&buckets_, b.buckets * (sizeof(ChildGrid) + sizeof(BucketState))));
  b.grids = buckets_.As<ChildGrid>();
  b.states = reinterpret_cast<BucketState*>(b.grids + b.buckets);
  CUDA_TRY(cudaMemsetAsync(b.states, 0, b.buckets * sizeof(BucketState), gpu_.stream));
  Found& found = *gpu_.host_found.As<Found>();
  found = Found();
  found.progress.first_waiting = kNowhere;
  CUDA_TRY(cudaMemcpyAsync(found_.As<void>(), &found, sizeof found, cudaMemcpyHostToDevice, gpu_.stream));
  b.progress = &found_.As<Found>()->progress;
  batch->blocks = b.buckets + kChildBlocks;
  batch->launch.tiles = batch->blocks;  // (of which each takes at least one unit)
  return Status::Ok();
}

Status SectionRun::Start(Batch* batch) {
  // Sums of halves hold 2^32 rows.
  uint64_t rows = 0;
  for (const vm::BoundTablet& t : batch->tablets) rows += t.rows;
  if (keys_ > 0 && rows_since_normalise_ + rows > uint64_t{1} << 32) {
    TESSERA_TRY(Normalise());
    rows_since_normalise_ = 0;
  }
  rows_since_normalise_ += rows;
  // Direct groups enter the table when a block ends: there must be room for all of them.
  while (batch->plan.direct && groups_.max_groups < uint64_t{groups_used_} + batch->plan.direct_groups)
    TESSERA_TRY(GrowGroups());
  TESSERA_TRY(gpu_.ReserveEvicting(&gpu_.scratch, batch->blocks * batch->plan.scratch_bytes));
  // Not every block that there is room for will be launched.
  if (IsDp(batch->plan.variant) && batch->control > 0)
    CUDA_TRY(cudaMemsetAsync(batch->launch.partials, 0, batch->control, gpu_.stream));
  TESSERA_TRY(gpu_.host_results.Reserve(batch->control + sizeof(Control) + 2 * kEagerBytes));
  TESSERA_TRY(gpu_.cache.Finish(gpu_.stream));
  SetCounters(batch);
  TESSERA_TRY(batch->arena->Send(batch->control, gpu_.stream));
  if (IsBuild() && !deferred_) TESSERA_TRY(SendCounters(batch));
  return StartLaunch(batch);
}

void SectionRun::SetCounters(Batch* batch) {
  if (deferred_) return;  // they are cleared with those of the other builds
  Control& control = IsBuild() ? HostControl(*batch) : *reinterpret_cast<Control*>(batch->arena->Host(batch->control));
  memset(&control, 0, sizeof control);
  control.groups = groups_used_;
  control.rows = rows_used_;
  control.rows_valid = UINT64_MAX;
}

Status SectionRun::SendCounters(Batch* batch) {
  const void* from = IsBuild() ? &HostControl(*batch) : static_cast<void*>(batch->arena->Host(batch->control));
  CUDA_TRY(cudaMemcpyAsync(DeviceControl(*batch), from, sizeof(Control), cudaMemcpyHostToDevice, gpu_.stream));
  return Status::Ok();
}

Status SectionRun::StartAgain(Batch* batch) {
  SetCounters(batch);
  TESSERA_TRY(SendCounters(batch));
  return StartLaunch(batch);
}

Status SectionRun::LaunchKernel(Batch* batch) {
  if (IsDp(batch->plan.variant)) {
    const uint32_t first = gpu_.host_found.As<Found>()->progress.first;
    if (first >= batch->buckets.buckets) return Status::Ok();
    batch->buckets.launch = batch->launch;
    CUDA_TRY(StartBuckets(batch->buckets, first, gpu_.stream));
    batch->buckets.again = true;
    return Status::Ok();
  }
  void* arguments[] = {&batch->launch};
  CUDA_TRY(cudaLaunchKernel(VmKernelFor(batch->plan.variant), dim3(batch->blocks), dim3(kThreads + 32), arguments,
                            batch->plan.layout.bytes, gpu_.stream));
  return Status::Ok();
}

Status SectionRun::StartLaunch(Batch* batch) {
  Launch& launch = batch->launch;
  launched_ = launch.control = DeviceControl(*batch);
  launch.scratch = gpu_.scratch.As<uint8_t>();
  launch.scratch_bytes = batch->plan.scratch_bytes;
  const uint64_t* initial = launch.groups.initial_state;
  launch.groups = groups_;
  launch.groups.initial_state = initial;
  const bool far = launch.direct && launch.private_groups == 0;
  if (far) {
    launch.direct_copies = std::clamp(kCopiedGroups / launch.direct_groups, 1u, kMaxCopies);
    const uint64_t numbers = uint64_t{launch.direct_groups} * launch.direct_copies;
    const uint64_t states = numbers * groups_.state_words * 8;
    TESSERA_TRY(Renew(&direct_groups_, states + numbers));
    launch.groups.states = direct_groups_.As<uint64_t>();
    launch.touched = direct_groups_.As<uint8_t>() + states;
  }
  launch.output.low = output_.low;
  launch.output.high = output_.high;
  launch.output.null = output_.null;
  launch.output.capacity = output_.capacity;
  launch.output.columns = output_.columns;
  launch.enough = enough_ == UINT64_MAX ? ~0ull : enough_ - row_output_.drained();
  if (!deferred_) CUDA_TRY(cudaEventRecord(gpu_.begin, gpu_.stream));
  if (far) CUDA_TRY(StartClearDirectGroups(launch, gpu_.stream));
  TESSERA_TRY(LaunchKernel(batch));
  if (far) {
    GroupTable table = groups_;
    table.initial_state = initial;
    CUDA_TRY(StartEnterDirectGroups(launch, table, gpu_.stream));
  }
  if (deferred_) return Status::Ok();
  CUDA_TRY(cudaEventRecord(gpu_.end, gpu_.stream));
  auto fetch = [&](void* to, const void* from, uint64_t bytes) -> Status {
    CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, gpu_.stream));
    return Status::Ok();
  };
  if (IsBuild()) {
    TESSERA_TRY(fetch(&HostControl(*batch), launch.control, sizeof(Control)));
  } else {
    TESSERA_TRY(fetch(gpu_.host_results.As<void>(), launch.partials, batch->control + sizeof(Control)));
  }
  if (keys_ > 0) {
    // Most sections make few groups, and these come with the counters.
    const uint64_t most = launch.direct ? uint64_t{groups_used_} + launch.direct_groups : groups_.max_groups;
    eager_groups_ = std::min<uint64_t>(most, kEagerBytes / 8 / std::max(groups_.record_words, groups_.state_words));
    eager_records_ = gpu_.host_results.As<uint64_t>() + (batch->control + sizeof(Control)) / 8;
    TESSERA_TRY(fetch(eager_records_, groups_.records, eager_groups_ * groups_.record_words * 8));
    TESSERA_TRY(fetch(eager_records_ + eager_groups_ * groups_.record_words, groups_.states,
                      eager_groups_ * groups_.state_words * 8));
  }
  if (batch->finds_units) {
    CUDA_TRY(cudaMemcpyAsync(gpu_.host_found.As<void>(), found_.As<void>(), sizeof(Found), cudaMemcpyDeviceToHost,
                             gpu_.stream));
  }
  return Status::Ok();
}

Status SectionRun::Wait() {
  Status status = gpu_.Wait(launched_, context_.cancel);
  if (!status.ok()) return status;
  float milliseconds = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, gpu_.begin, gpu_.end));
  context_.statistics->kernel_milliseconds += static_cast<double>(milliseconds);
  return Status::Ok();
}

Status SectionRun::Finish(Batch* batch) {
  for (;;) {
    TESSERA_TRY(Wait());
    const Control& control = HostControl(*batch);
    if ((control.reasons & kFailed) != 0) {
      return vm::LaneErrorStatus(static_cast<vm::LaneError>(control.error_code), section_.code[control.error_address]);
    }
    groups_used_ = std::min(control.groups, groups_.max_groups);
    rows_used_ = std::min<uint64_t>(control.rows, control.rows_valid);
    if (section_.sink == Section::Sink::kGroups && keys_ == 0) TESSERA_TRY(MergePartials(batch->blocks));
    if ((control.reasons & kEnough) != 0) {
      enough_reached_ = true;
      break;
    }
    if (lowered_.repeats && keys_ > 0) rows_since_normalise_ = uint64_t{1} << 32;  // until the next launch
    if (control.reasons == 0) break;
    const uint64_t wanted = control.rows_wanted;
    if ((control.reasons & kGrow) != 0) TESSERA_TRY(GrowGroups());
    if (lowered_.repeats && keys_ > 0) TESSERA_TRY(Normalise());
    if ((control.reasons & kOutputFull) != 0) {
      if (IsBuild()) {
        TESSERA_TRY(AllocateBuild(std::max<uint64_t>(2 * uint64_t{output_.capacity}, rows_used_ + wanted)));
      } else {
        TESSERA_TRY(row_output_.MakeRoom(&rows_used_, wanted));
        output_ = row_output_.output();
      }
    }
    TESSERA_TRY(StartAgain(batch));
  }
  gpu_.cache.Unpin(&batch->pinned);
  if (batch->finds_units) {
    const UnitTotals& totals = gpu_.host_found.As<Found>()->totals;
    vm::SectionStatistics& stats = *context_.statistics;
    stats.child_grids += totals.child_grids;
    stats.pruned_pairs += stats.pairs - totals.pairs;
    stats.pairs = totals.pairs;
  }
  return Status::Ok();
}

Status SectionRun::MergePartials(uint32_t blocks) {
  const Partial* partials = gpu_.host_results.As<Partial>();
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

Status SectionRun::FinishTotals() {
  ResizeResult(1);
  for (size_t k = 0; k < totals_.size(); ++k) {
    const Partial& t = totals_[k];
    SetAggregate(k, 0, IsCount(section_.aggregates[k].op) ? static_cast<int64_t>(t.count) : t.low, t.high,
                 t.count != 0);
  }
  return Status::Ok();
}

void SectionRun::ResizeResult(uint64_t rows) {
  result_.rows = rows;
  for (vm::RowColumn& c : result_.columns) {
    c.low.resize(rows);
    if (IsWide(c.type)) c.high.resize(rows);
  }
}

void SectionRun::SetNull(vm::RowColumn* c, uint64_t row) {
  c->null.resize(result_.rows);
  c->null[row] = 1;
}

void SectionRun::SetAggregate(size_t k, uint64_t row, int64_t low, int64_t high, bool seen) {
  vm::RowColumn& c = result_.columns[static_cast<size_t>(keys_) + k];
  c.low[row] = low;
  if (IsWide(c.type)) c.high[row] = high;
  if (!seen && !IsCount(section_.aggregates[k].op)) SetNull(&c, row);
}

Status SectionRun::PrepareSink() {
  output_.columns = static_cast<uint32_t>(section_.columns.size());
  if (IsBuild()) return AllocateBuild(kFirstBuildRows);
  if (section_.sink == Section::Sink::kRows) {
    TESSERA_TRY(row_output_.Open());
    output_ = row_output_.output();
    return Status::Ok();
  }
  if (keys_ == 0) return Status::Ok();
  groups_.record_words = lowered_.record_words;
  groups_.state_words = lowered_.state_words;
  groups_.lock_word = lowered_.lock_word;
  return AllocateGroups(kFirstGroups);
}

Status SectionRun::AllocateGroups(uint64_t max_groups) {
  const uint64_t slots = std::bit_ceil(2 * max_groups);
  Status status = gpu_.ReserveEvicting(&gpu_.group_slots, slots * 8);
  if (status.ok()) status = Extend(&gpu_.group_records, groups_.record_words, max_groups);
  if (status.ok()) status = Extend(&gpu_.group_states, groups_.state_words, max_groups);
  if (!status.ok()) return TooManyGroups(max_groups, status);
  groups_.max_groups = static_cast<uint32_t>(max_groups);
  groups_.slot_mask = slots - 1;
  groups_.slots = gpu_.group_slots.As<uint64_t>();
  groups_.records = gpu_.group_records.As<uint64_t>();
  groups_.states = gpu_.group_states.As<uint64_t>();
  CUDA_TRY(cudaMemsetAsync(groups_.slots, 0, slots * 8, gpu_.stream));
  return Status::Ok();
}

Status SectionRun::Extend(DeviceBuffer* buffer, uint64_t words, uint64_t groups) {
  if (groups * words * 8 <= buffer->bytes()) return Status::Ok();
  DeviceBuffer larger;
  TESSERA_TRY(gpu_.ReserveEvicting(&larger, groups * words * 8));
  if (groups_used_ > 0) {
    CUDA_TRY(cudaMemcpyAsync(larger.As<void>(), buffer->As<void>(), groups_used_ * words * 8, cudaMemcpyDeviceToDevice,
                             gpu_.stream));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  }
  swap(larger, *buffer);
  return Status::Ok();
}

Status SectionRun::TooManyGroups(uint64_t groups, const Status& why) const {
  if (why.code() != ErrorCode::kResource) return why;
  return {ErrorCode::kResource,
          "the group table does not fit the GPU: " + std::to_string(groups) + " groups (" + why.message() + ")",
          "Use --device host."};
}

Status SectionRun::GrowGroups() {
  if (groups_.max_groups >= kMaxGroups / 8)
    return {ErrorCode::kResource, "more groups than a GPU's group table has", "Use --device host."};
  TESSERA_TRY(AllocateGroups(uint64_t{groups_.max_groups} * 8));
  CUDA_TRY(StartRehash(groups_, groups_used_, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return Status::Ok();
}

Status SectionRun::Renew(RunBuffer* buffer, uint64_t bytes) {
  buffer->Free();
  return buffer->Allocate(&gpu_, bytes);
}

Status SectionRun::Normalise() {
  if (groups_used_ == 0 || (lowered_.narrow_sums.empty() && lowered_.wide_sums.empty())) return Status::Ok();
  std::vector<uint32_t> words = lowered_.narrow_sums;
  words.insert(words.end(), lowered_.wide_sums.begin(), lowered_.wide_sums.end());
  DeviceBuffer device_words;
  TESSERA_TRY(device_words.Reserve(words.size() * sizeof(uint32_t)));
  CUDA_TRY(cudaMemcpyAsync(device_words.As<void>(), words.data(), words.size() * sizeof(uint32_t),
                           cudaMemcpyHostToDevice, gpu_.stream));
  CUDA_TRY(StartNormalise(groups_, groups_used_, device_words.As<uint32_t>(), static_cast<uint32_t>(words.size()),
                          static_cast<uint32_t>(lowered_.narrow_sums.size()), gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return Status::Ok();
}

Status SectionRun::FetchGroups() {
  ResizeResult(groups_used_);
  if (groups_used_ > 0 && groups_used_ <= eager_groups_)
    return DecodeGroups(eager_records_, eager_records_ + eager_groups_ * groups_.record_words, 0, groups_used_);
  for (uint64_t first = 0; first < groups_used_; first += kGroupsPerCopy) {
    const uint64_t n = std::min(kGroupsPerCopy, groups_used_ - first);
    const uint64_t record_bytes = n * groups_.record_words * 8, state_bytes = n * groups_.state_words * 8;
    TESSERA_TRY(gpu_.host_rows.Reserve(record_bytes + state_bytes));
    CUDA_TRY(cudaMemcpyAsync(gpu_.host_rows.As<uint8_t>(), groups_.records + first * groups_.record_words, record_bytes,
                             cudaMemcpyDeviceToHost, gpu_.stream));
    CUDA_TRY(cudaMemcpyAsync(gpu_.host_rows.As<uint8_t>() + record_bytes, groups_.states + first * groups_.state_words,
                             state_bytes, cudaMemcpyDeviceToHost, gpu_.stream));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    const uint64_t* records = gpu_.host_rows.As<uint64_t>();
    TESSERA_TRY(DecodeGroups(records, records + n * groups_.record_words, first, n));
  }
  return Status::Ok();
}

Status SectionRun::DecodeGroups(const uint64_t* records, const uint64_t* states, uint64_t first, uint64_t n) {
  size_t word = 1;
  for (size_t k = 0; k < static_cast<size_t>(keys_); ++k) {
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

Status SectionRun::AllocateBuild(uint64_t rows) {
  if (rows >= UINT32_MAX)
    return {ErrorCode::kResource, "the build side of a join has more than 2^32 - 2 rows",
            "Filter it, or swap the tables of the join."};
  JoinRows larger;
  TESSERA_TRY(larger.Allocate(&gpu_, section_.columns, rows));
  TESSERA_TRY(larger.CopyFrom(build_rows_, rows_used_, gpu_.stream));
  swap(larger, build_rows_);
  output_.capacity = static_cast<uint32_t>(build_rows_.capacity());
  output_.low = build_rows_.low(0);
  output_.high = build_rows_.high(0);
  output_.null = build_rows_.null(0);
  return Status::Ok();
}

Status SectionRun::StartBuild() {
  const TableInfo& table = *context_.table;
  context_.statistics->tablets = table.tablets.size();
  output_.columns = static_cast<uint32_t>(section_.columns.size());
  Batch& batch = batches_[0];
  size_t next = 0;
  TESSERA_TRY(Collect(&batch, &next));
  bool repeats = false;
  for (const vm::Instruction& in : section_.code) repeats |= in.op == Opcode::Next || in.op == Opcode::NextOuter;
  uint64_t rows = 0;
  for (const vm::BoundTablet& t : batch.tablets) rows += t.rows;
  if (next < table.tablets.size() || repeats || rows > kDeferredBuildRows) {
    // The rest, or rows without a bound: one launch after the other, with what was collected as the first.
    TESSERA_TRY(AllocateBuild(kFirstBuildRows));
    for (;;) {
      if (!batch.tablets.empty()) {
        TESSERA_TRY(Prepare(&batch, 0));
        TESSERA_TRY(Start(&batch));
        TESSERA_TRY(Finish(&batch));
      }
      if (next == table.tablets.size()) return Status::Ok();
      TESSERA_TRY(Collect(&batch, &next));
    }
  }
  // No row more than there are can come: nothing can run full, and nobody has to wait here.
  TESSERA_TRY(AllocateBuild(std::max<uint64_t>(rows, 1)));
  memset(&HostControl(batch), 0, sizeof(Control));
  if (batch.tablets.empty()) return Status::Ok();
  TESSERA_TRY(Prepare(&batch, 0));
  deferred_ = true;
  return Start(&batch);
}

Status SectionRun::FinishBuild() {
  const Control& control = HostControl(batches_[0]);
  if (deferred_) {
    if ((control.reasons & kFailed) != 0) {
      return vm::LaneErrorStatus(static_cast<vm::LaneError>(control.error_code), section_.code[control.error_address]);
    }
    rows_used_ = control.rows;
    gpu_.cache.Unpin(&batches_[0].pinned);
  }
  build_rows_.set_rows(rows_used_);
  return Status::Ok();
}

}  // namespace tessera::kernels
