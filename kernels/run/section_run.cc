#include "kernels/run/section_run.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/join/product_kernels.h"
#include "kernels/launch/vm_kernel.h"
#include "kernels/plan/describe.h"
#include "kernels/plan/tablet_record.h"
#include "vm/aggregate.h"
#include "vm/lane_error.h"
#include "vm/meaning.h"
#include "vm/thread_pool.h"

namespace tessera::kernels {
namespace {

/// A launch takes tablets until this much had to be copied for them, so that the next copies run beside it.
constexpr uint64_t kCopiedPerLaunch = uint64_t{256} << 20;
/// Rows of one launch: counters of blocks have 32 bits, and so do the halves of sums.
constexpr uint64_t kRowsPerLaunch = uint64_t{1} << 31;
/// A cursor of a block that rests. (No launch has so many tiles, and what is added to it does not wrap around.)
constexpr uint32_t kBehindAllTiles = 1u << 31;
constexpr uint64_t kFirstBuildRows = 1 << 20;
/// Direct groups in device memory have copies as long as all together are no more than that.
constexpr uint32_t kCopiedGroups = 1 << 16, kMaxCopies = 16;
/// Records, and as much of states, that come with the counters of a launch.
constexpr uint64_t kEagerBytes = 32 << 10;

/// Units of a product for each block that runs, rows of the join table in a unit, and how many units there may be.
/// Parts are shorter where units can be left out, as shorter ones have closer ranges.
constexpr uint64_t kUnitsPerBlock = 8;
constexpr uint64_t kLeastPartRows = 16, kMostPartRows = 1024, kMostPrunedRows = 32;
constexpr uint64_t kMostUnits = uint64_t{1} << 30, kMostTriedUnits = uint64_t{1} << 27;
/// Up to so many units are listed without being counted before.
constexpr uint64_t kListedAtOnce = uint64_t{1} << 22;
/// dp: buckets of the outer rows, if the lists of their units fit; blocks of all child grids beyond one a grid, and
/// what those may take of registers in device memory. (On an H100, 350,000 rows a side: 171 buckets 236.6 ms, 64 224,
/// 32 220, 16 217, 8 216. Where blocks of several grids share a multiprocessor, so do their parameters its constant
/// cache.)
constexpr uint32_t kBuckets = 16, kChildBlocks = 32768;
constexpr uint64_t kChildScratch = uint64_t{256} << 20;
/// The part of the free memory that lists of units may have.
constexpr uint64_t kListShare = 32;

/// The part of the free memory that a launch's rows in the order of a table's places may have. Its columns, which have
/// fewer bytes, get a smaller one, if launches do not become small by that.
constexpr uint64_t kPartitionedShare = 8, kMovedShare = 10;

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

}  // namespace

TabletsAhead BindAhead(const vm::SectionContext& context, const std::vector<vm::KeyRange>& key_ranges) {
  const vm::SectionBinder binder(*context.program, context.section, context.strings, key_ranges);
  TabletsAhead ahead{context.section, context.table, {}};
  ahead.slow = BindTablets(binder, *context.table, 0, nullptr, &ahead.tablets);
  return ahead;
}

SectionRun::SectionRun(GpuDevice* gpu, const vm::SectionContext& context, DeviceJoins* joins, int build)
    : gpu_(*gpu),
      context_(context),
      joins_(*joins),
      build_(build),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      keys_(section_.sink == Section::Sink::kGroups ? static_cast<uint32_t>(section_.keys) : 0),
      lowered_(LowerProgram(*context.program, context.section, context.strings)),
      groups_(&gpu_, context_, section_, lowered_),
      binder_(*context.program, context.section, context.strings, joins->key_ranges()),
      row_output_(gpu, context) {
  for (const SqlType& t : section_.columns) result_.columns.push_back({t, {}, {}, {}});
  if (section_.sink == Section::Sink::kRows && section_.order.empty() && section_.limit >= 0) {
    enough_ = static_cast<uint64_t>(section_.limit) + static_cast<uint64_t>(section_.offset);
  }
  totals_.resize(lowered_.folds.size());
  for (size_t k = 0; k < totals_.size(); ++k) totals_[k] = {lowered_.folds[k].low, lowered_.folds[k].high, 0, 0};
}

SectionRun::~SectionRun() {
  for (Batch& b : batches_) {
    gpu_.cache.Abandon(&b.copies);
    gpu_.cache.Unpin(&b.pinned);
  }
  for (const PassPlan& p : parted_) joins_.DropPart(p.join);
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
  TESSERA_TRY(PlanParts());
  TESSERA_TRY(PrepareSink());
  for (uint64_t pass = 0; pass < passes_ && !enough_reached_; ++pass) {
    TESSERA_TRY(StartPass(pass));
    TESSERA_TRY(RunPass());
  }
  return Status::Ok();
}

Status SectionRun::PlanParts() {
  for (size_t join = 0; join < context_.program->joins.size(); ++join) {
    const bool probed = std::any_of(section_.code.begin(), section_.code.end(), [&](const vm::Instruction& in) {
      return (in.op == Opcode::Probe || in.op == Opcode::ProbeOuter) && in.p1 == join;
    });
    const JoinParts* parts = joins_.parts(static_cast<int>(join));
    if (!probed || parts == nullptr) continue;
    TESSERA_ASSIGN(const PassPlan plan,
                   PlanPasses(*context_.program, context_.section, static_cast<int>(join), *parts));
    parted_.push_back(plan);
    passes_ *= parts->parts.size();
  }
  loaded_.assign(parted_.size(), SIZE_MAX);
  if (passes_ > 1) context_.statistics->join_passes = passes_;
  return Status::Ok();
}

Status SectionRun::StartPass(uint64_t pass) {
  pass_ = pass;
  if (parted_.empty()) return Status::Ok();
  uint64_t rest = pass;
  vm::Program program = *context_.program;
  added_code_ = 0;
  for (size_t i = parted_.size(); i-- > 0;) {
    const PassPlan& plan = parted_[i];
    const std::vector<JoinPart>& parts = joins_.parts(plan.join)->parts;
    const size_t number = rest % parts.size();
    rest /= parts.size();
    if (loaded_[i] != number) TESSERA_TRY(joins_.LoadPart(*context_.program, plan.join, number));
    loaded_[i] = number;
    if (plan.filtered) added_code_ += AddPartFilter(context_.section, plan, parts[number], &program);
  }
  if (added_code_ > 0) lowered_ = LowerProgram(program, context_.section, context_.strings);
  // They were bound to the last pass's ranges of keys.
  bound_.clear();
  return Status::Ok();
}

Status SectionRun::RunPass() {
  vm::SectionStatistics& stats = *context_.statistics;
  if (section_.source_kind == Section::Source::kJoin) {
    Batch& batch = batches_[0];
    batch = Batch();
    CollectRows(&batch);
    if (batch.tablets[0].rows == 0) return Status::Ok();
    TESSERA_TRY(Prepare(&batch, 0));
    TESSERA_TRY(Start(&batch));
    return Finish(&batch);
  }
  const TableInfo& table = *context_.table;
  stats.tablets = table.tablets.size();
  size_t number = 0, next = 0;
  while (next < table.tablets.size() && !enough_reached_) {
    const size_t place = number % kBatches;
    Batch& batch = batches_[place];
    TESSERA_TRY(Collect(&batch, &next));
    if (batch.tablets.empty()) continue;
    if (lowered_.product >= 0) TESSERA_TRY(FinishAll());  // they share the lists of units
    if (enough_reached_) break;
    TESSERA_TRY(Prepare(&batch, static_cast<int>(place)));
    in_flight_.push_back(&batch);
    ++number;
    // Where columns are on their way, those of the next tablets get in line before a launch waits for its own.
    if (!first_started_ && gpu_.cache.AreIssued(in_flight_.front()->copies)) {
      first_started_ = true;
      TESSERA_TRY(Start(in_flight_.front()));
    }
    if (in_flight_.size() == kBatches) TESSERA_TRY(FinishFirst());
  }
  return FinishAll();
}

Status SectionRun::FinishFirst() {
  Batch* batch = in_flight_.front();
  in_flight_.pop_front();
  if (!std::exchange(first_started_, false)) TESSERA_TRY(Start(batch));
  return Finish(batch);
}

Status SectionRun::FinishAll() {
  while (!in_flight_.empty() && !enough_reached_) TESSERA_TRY(FinishFirst());
  in_flight_.clear();
  first_started_ = false;
  return Status::Ok();
}

tessera::Result<vm::RowSet> SectionRun::Result() {
  TellJoins();
  if (section_.sink == Section::Sink::kRows) {
    TESSERA_ASSIGN(result_, row_output_.Finish(rows_used_));
    std::string& plan = context_.statistics->device_plan;
    const std::string order = row_output_.Describe();
    if (!plan.empty() && !order.empty()) plan += ", " + order;
  } else if (keys_ > 0) {
    GroupWords eager;
    if (groups_.used() <= eager_.n) {
      eager = eager_;
      eager.n = groups_.used();
    }
    return groups_.Rows(eager);
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
  const bool may_partition = MayPartition();
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
      if (pass_ == 0) ++stats.tablets_skipped;
      ++*next;
      continue;
    }
    const uint64_t size = FindNeeds(bound);
    if (bytes + size > LaunchShare(may_partition)) {
      if (!batch->tablets.empty()) break;
      TESSERA_TRY(FinishAll());  // a tablet that is larger than that has the place of all
      if (enough_reached_) break;
    }
    bytes += size;
    rows += bound.rows;
    NoteKeys(bound);
    batch->tablets.push_back(std::move(bound));
    batch->numbers.push_back(*next);
    const Status uploaded = Upload(batch, batch->tablets.size() - 1, &copied);
    if (!uploaded.ok()) {
      // CUDA has less memory than the budget: what there is has to do for the tablets before this one, or for this one.
      const bool alone = batch->tablets.size() == 1 && in_flight_.empty();
      if (uploaded.code() != ErrorCode::kResource || alone) return uploaded;
      bound = std::move(batch->tablets.back());
      batch->tablets.pop_back();
      batch->numbers.pop_back();
      batch->codes.resize(batch->tablets.size() * slots);
      batch->nulls.resize(batch->tablets.size() * slots);
      if (!batch->tablets.empty()) break;
      TESSERA_TRY(FinishAll());
      continue;
    }
    if (pass_ == 0) {
      stats.rows_in += batch->tablets.back().rows;
      stats.bytes_read += batch->tablets.back().encoded_bytes;
    }
    ++*next;
  }
  if (copied > 0) {
    TESSERA_ASSIGN(batch->copies, gpu_.cache.StartCopies(context_.pool == nullptr ? 1 : context_.pool->threads()));
    stats.bytes_transferred += copied;
  }
  return Status::Ok();
}

uint64_t SectionRun::LaunchShare(bool may_partition) const {
  // All batches in flight hold pieces. What else is needed on the way, a section's groups, the rows of a join table,
  // or those that are ordered, grows into what is left.
  const uint64_t room = gpu_.Room(), moved = room / kMovedShare;
  if (may_partition && moved >= kCopiedPerLaunch) return moved;
  if (keys_ > 0 || IsBuild()) return room / 2 / kBatches;
  return (room - std::min(room / 2, row_output_.reserved_bytes())) / kBatches;
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
  if (pass_ == 0) context_.statistics->rows_in += bound.rows;
  batch->numbers.push_back(0);
  batch->tablets.push_back(std::move(bound));
}

Status SectionRun::Prepare(Batch* batch, int arena_number) {
  std::vector<const vm::BoundTablet*> tablets;
  for (const vm::BoundTablet& t : batch->tablets) tablets.push_back(&t);
  DeviceLimits limits = gpu_.limits;
  if (keys_ > 0) limits.groups = groups_.Limit() / 2;  // (what is claimed from here on has to fit, too)
  const bool wants_dp =
      lowered_.product >= 0 &&
      context_.program->joins[static_cast<size_t>(lowered_.product)].strategy == vm::JoinStrategy::kDp;
  if (wants_dp) limits.shared_per_multiprocessor -= kKeeperBytes;
  TESSERA_ASSIGN(batch->plan, PlanLaunch(section_, lowered_, tablets, joins_.shapes(), limits, context_.profile));
  batch->partitioned = &partitioned_[arena_number];
  TESSERA_TRY(PlanPartition(batch, tablets));
  ProbePartition& partition = batch->partition;
  const bool partitioned = partition.join >= 0;
  if (partitioned) {
    tablets = {&batch->tablets[0]};
    TESSERA_ASSIGN(batch->plan, PlanLaunch(section_, lowered_, tablets, joins_.shapes(), limits, context_.profile));
  }
  batch->turn = 0;
  const LaunchPlan& plan = batch->plan;
  Launch& launch = batch->launch;
  launch = Launch();
  for (const vm::BoundTablet& t : batch->tablets) launch.tiles += (t.rows + kTileRows - 1) / kTileRows;
  const bool dp = wants_dp && plan.joins[static_cast<size_t>(lowered_.product)].rows > 0;
  if (dp) batch->plan.variant = plan.variant == Variant::kPairs ? Variant::kDpPairs : Variant::kDp;
  TESSERA_ASSIGN(const int per_multiprocessor, gpu_.BlocksPerMultiprocessor(plan.variant, plan.layout.bytes));
  batch->blocks = static_cast<uint32_t>(per_multiprocessor * gpu_.info.multiprocessors);
  if (lowered_.product >= 0) TESSERA_TRY(PrepareProduct(batch, launch.tiles));
  batch->blocks = std::min(launch.tiles, batch->blocks);
  partition.radix.blocks = batch->blocks;

  Arena& arena = gpu_.arena(static_cast<size_t>(static_cast<int>(kBatches) * (build_ + 1) + arena_number));
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
  const size_t sources = arena.Add(partition.sources.size() * sizeof(RadixSource));
  const size_t source_tiles = arena.Add(partition.tablet_rows.size() * sizeof(uint32_t));
  const size_t source_rows = arena.Add(partition.tablet_rows.size() * sizeof(uint32_t));
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
  TESSERA_TRY(gpu_.Evicting([&] { return arena.Allocate(); }));
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
  if (partitioned) {
    copy(sources, partition.sources);
    copy(source_tiles, partition.first_tiles);
    copy(source_rows, partition.tablet_rows);
    partition.radix.from = arena.Device<RadixSource>(sources);
    partition.radix.first_tile = arena.Device<uint32_t>(source_tiles);
    partition.radix.source_rows = arena.Device<uint32_t>(source_rows);
  }
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
  stats.device_plan = Describe(plan) + (partitioned ? Describe(partition) : "") + ", " +
                      std::to_string(per_multiprocessor) + " blocks a multiprocessor";
  return Status::Ok();
}

bool SectionRun::MayPartition() const {
  // (Where a LIMIT ends the section most rows may not be looked up at all.)
  if (section_.source_kind == Section::Source::kJoin || lowered_.product >= 0 || enough_ != UINT64_MAX) return false;
  for (size_t j = 0; j < lowered_.probe_slots.size(); ++j) {
    const JoinShape* shape = joins_.shapes()[j];
    if (lowered_.probe_slots[j].empty() || shape == nullptr) continue;
    if (MayOrder(context_.join_partitioning, shape->record, gpu_.limits.cache_bytes)) return true;
  }
  return false;
}

Status SectionRun::PlanPartition(Batch* batch, const std::vector<const vm::BoundTablet*>& tablets) {
  RunBuffer* const memory = batch->partitioned;
  memory->Free();
  batch->partition = {};
  if (!MayPartition()) return Status::Ok();
  const bool always = context_.join_partitioning == vm::JoinPartitioning::kOn;
  TESSERA_ASSIGN(ProbePartition p,
                 PlanProbePartition({section_, lowered_, batch->plan, tablets, batch->codes, joins_.shapes(), binder_,
                                     gpu_.limits.cache_bytes, gpu_.Room() / kPartitionedShare, always}));
  if (p.join < 0) return Status::Ok();
  RadixPartition& radix = p.radix;
  const uint32_t tiles = (radix.rows + kTileRows - 1) / kTileRows;
  const uint64_t next_bytes = kMostRadixParts * sizeof(uint32_t);
  if (!memory->TryAllocate(&gpu_, p.bytes + next_bytes + tiles * sizeof(uint32_t))) return Status::Ok();
  uint8_t* at = memory->As<uint8_t>();
  batch->codes.assign(section_.slots.size(), nullptr);
  batch->nulls.assign(section_.slots.size(), nullptr);
  for (size_t c = 0; c < p.slots.size(); ++c) {
    const Chunk& chunk = p.chunks[p.slots[c]];
    radix.to[c] = {at, chunk.null_code, chunk.width};
    batch->codes[p.slots[c]] = at;
    at += uint64_t{tiles} * kTileRows * chunk.width;
  }
  radix.next = reinterpret_cast<uint32_t*>(at);
  radix.tile_places = reinterpret_cast<uint32_t*>(at + next_bytes);
  batch->tablets.clear();
  batch->tablets.push_back(std::move(p.bound));
  batch->partition = std::move(p);
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
  // A slice of a run is applied at once: its matches must not be more than the output or the groups have room for.
  const bool keeps_little = section_.sink == Section::Sink::kGroups && keys_ == 0;
  if (keeps_little) launch.most_units = static_cast<uint32_t>(std::clamp<uint64_t>(kMostPartRows / part_rows, 1, 32));
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
  const uint64_t room = std::max<uint64_t>(1, gpu_.Room() / kListShare / sizeof(uint32_t) / parts);  // tiles
  b.bucket_tiles = static_cast<uint32_t>(std::clamp<uint64_t>((tiles + kBuckets - 1) / kBuckets, 1, room));
  b.buckets = (tiles + b.bucket_tiles - 1) / b.bucket_tiles;
  b.bucket_units = b.bucket_tiles * parts;
  b.generation = static_cast<uint32_t>(std::min<uint64_t>({b.buckets, room / b.bucket_tiles, kGenerationBuckets}));
  const uint64_t scratch = kChildScratch / std::max<uint64_t>(batch->plan.scratch_bytes, 1);
  b.child_blocks =
      static_cast<uint32_t>(std::clamp<uint64_t>(std::min<uint64_t>(batch->launch.tiles, scratch), 1, kChildBlocks));
  b.variant = batch->plan.variant;
  b.multiprocessors = static_cast<uint32_t>(gpu_.info.multiprocessors);
  TESSERA_TRY(Renew(&units_, uint64_t{b.generation} * b.bucket_units * sizeof(uint32_t)));
  b.search.units = units_.As<uint32_t>();
  TESSERA_TRY(Renew(&buckets_, b.generation * (sizeof(ChildGrid) + sizeof(uint32_t))));
  b.grids = buckets_.As<ChildGrid>();
  b.counts = reinterpret_cast<uint32_t*>(b.grids + b.generation);
  CUDA_TRY(cudaMemsetAsync(b.counts, 0, b.generation * sizeof(uint32_t), gpu_.stream));
  *gpu_.host_found.As<Found>() = Found();
  b.progress = &found_.As<Found>()->progress;
  batch->blocks = b.buckets + b.child_blocks;
  batch->launch.tiles = batch->blocks;  // (of which each takes at least one unit)
  return Status::Ok();
}

Status SectionRun::Start(Batch* batch) {
  // Sums of halves hold 2^32 rows.
  uint64_t rows = 0;
  for (const vm::BoundTablet& t : batch->tablets) rows += t.rows;
  if (keys_ > 0 && rows_since_normalise_ + rows > uint64_t{1} << 32) {
    TESSERA_TRY(groups_.Normalise());
    rows_since_normalise_ = 0;
  }
  rows_since_normalise_ += rows;
  // Direct groups enter the table when a block ends: there must be room for all of them.
  const uint64_t direct = batch->plan.direct ? batch->plan.direct_groups : 0, spills = groups_.spills();
  while (groups_.table().max_groups < groups_.used() + direct) {
    TESSERA_TRY(groups_.Grow());
    if (groups_.spills() > spills && groups_.table().max_groups < direct)
      return {ErrorCode::kResource, "groups that are numbered by their keys do not fit the GPU", "Use --device host."};
  }
  TESSERA_TRY(gpu_.ReserveEvicting(&gpu_.scratch, batch->blocks * batch->plan.scratch_bytes));
  TESSERA_TRY(gpu_.host_results.Reserve(batch->control + sizeof(Control) + 2 * kEagerBytes));
  TESSERA_TRY(gpu_.cache.Finish(&batch->copies, gpu_.stream, &context_.statistics->transfer_milliseconds));
  SetCounters(batch);
  if (!batch->plan.marks.empty()) TESSERA_TRY(ClearMarks(batch));
  TESSERA_TRY(batch->arena->Send(batch->control, gpu_.stream));
  if (IsBuild() && !deferred_) TESSERA_TRY(SendCounters(batch));
  return StartLaunch(batch);
}

void SectionRun::SetCounters(Batch* batch) {
  if (deferred_) return;  // they are cleared with those of the other builds
  Control& control = IsBuild() ? HostControl(*batch) : *reinterpret_cast<Control*>(batch->arena->Host(batch->control));
  memset(&control, 0, sizeof control);
  control.groups = groups_.used();
  control.rows = rows_used_;
  control.rows_valid = UINT64_MAX;
}

Status SectionRun::SendCounters(Batch* batch) {
  const void* from = IsBuild() ? &HostControl(*batch) : static_cast<void*>(batch->arena->Host(batch->control));
  CUDA_TRY(StartSend({{DeviceControl(*batch), from, sizeof(Control)}}, gpu_.stream));
  return Status::Ok();
}

Status SectionRun::StartAgain(Batch* batch) {
  if (batch->turn > 0) TESSERA_TRY(SendTurn(batch));
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
  launch.groups = groups_.table();
  launch.groups.initial_state = initial;
  const bool far = launch.direct && launch.private_groups == 0;
  if (far) {
    launch.direct_copies = std::clamp(kCopiedGroups / launch.direct_groups, 1u, kMaxCopies);
    const uint64_t numbers = uint64_t{launch.direct_groups} * launch.direct_copies;
    const uint64_t states = numbers * lowered_.state_words * 8;
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
  if (RadixPartition& radix = batch->partition.radix; radix.rows > 0) {
    CUDA_TRY(StartRadixPartition(radix, gpu_.info.multiprocessors, gpu_.stream));
    radix.rows = 0;
  }
  TESSERA_TRY(LaunchKernel(batch));
  if (far) {
    GroupTable table = groups_.table();
    table.initial_state = initial;
    CUDA_TRY(StartEnterDirectGroups(launch, table, gpu_.stream));
  }
  if (deferred_) return Status::Ok();
  CUDA_TRY(cudaEventRecord(gpu_.end, gpu_.stream));
  const Sending counters = {&HostControl(*batch), launch.control, sizeof(Control)};
  if (IsBuild()) {
    CUDA_TRY(StartSend({counters}, gpu_.stream));
  } else if (keys_ == 0) {
    // Of child grids not every block that there is room for has been launched.
    const uint64_t partial_bytes = lowered_.folds.size() * sizeof(Partial);
    const uint32_t* used = IsDp(batch->plan.variant) ? &batch->buckets.progress->blocks : nullptr;
    CUDA_TRY(StartSend(
        {counters, {gpu_.host_results.As<void>(), launch.partials, batch->blocks * partial_bytes, used, partial_bytes}},
        gpu_.stream));
  } else {
    // Most sections make few groups, and these come with the counters.
    const GroupTable& table = groups_.table();
    const uint64_t most = launch.direct ? uint64_t{groups_.used()} + launch.direct_groups : table.max_groups;
    eager_.n = std::min<uint64_t>(most, kEagerBytes / 8 / std::max(table.record_words, table.state_words));
    eager_.record_step = table.record_words;
    eager_.state_step = table.state_words;
    uint64_t* const records = gpu_.host_results.As<uint64_t>() + (batch->control + sizeof(Control)) / 8;
    uint64_t* const states = records + eager_.n * table.record_words;
    eager_.records = records;
    eager_.states = states;
    const uint64_t record_bytes = table.record_words * 8, state_bytes = table.state_words * 8;
    const uint32_t* made = &launch.control->groups;
    CUDA_TRY(StartSend({counters,
                        {records, table.records, eager_.n * record_bytes, made, record_bytes},
                        {states, table.states, eager_.n * state_bytes, made, state_bytes}},
                       gpu_.stream));
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
      return vm::LaneErrorStatus(static_cast<vm::LaneError>(control.error_code),
                                 section_.code[control.error_address - added_code_]);
    }
    if (batch->turn > 0) TESSERA_TRY(FetchCursors(batch));
    groups_.set_used(std::min(control.groups, groups_.table().max_groups));
    rows_used_ = std::min<uint64_t>(control.rows, control.rows_valid);
    const bool dp = IsDp(batch->plan.variant);
    const BucketProgress progress = dp ? gpu_.host_found.As<Found>()->progress : BucketProgress();
    CUDA_TRY(static_cast<cudaError_t>(progress.error));
    if (section_.sink == Section::Sink::kGroups && keys_ == 0)
      TESSERA_TRY(MergePartials(dp ? progress.blocks : batch->blocks));
    if ((control.reasons & kEnough) != 0) {
      enough_reached_ = true;
      break;
    }
    if (lowered_.repeats && keys_ > 0) rows_since_normalise_ = uint64_t{1} << 32;  // until the next launch
    if (control.reasons == 0 && dp && progress.first < batch->buckets.buckets)
      return {ErrorCode::kInternal, "the GPU did not go on with a join", "Use another join_strategy."};
    if (control.reasons == 0 && !HasUnfinished(*batch)) break;
    const uint64_t wanted = control.rows_wanted;
    if ((control.reasons & kGrow) != 0) TESSERA_TRY(GrowGroups(batch));
    if (lowered_.repeats && keys_ > 0) TESSERA_TRY(groups_.Normalise());
    if ((control.reasons & kOutputFull) != 0) {
      if (IsBuild()) {
        TESSERA_TRY(GrowBuild(wanted));
      } else {
        TESSERA_TRY(row_output_.MakeRoom(&rows_used_, wanted));
        output_ = row_output_.output();
      }
    }
    TESSERA_TRY(StartAgain(batch));
  }
  gpu_.cache.Unpin(&batch->pinned);
  batch->partitioned->Free();
  if (!batch->plan.marks.empty()) TESSERA_TRY(AddMarks(*batch));
  if (batch->finds_units) {
    const UnitTotals& totals = gpu_.host_found.As<Found>()->totals;
    vm::SectionStatistics& stats = *context_.statistics;
    stats.child_grids += totals.child_grids;
    stats.pruned_pairs += stats.pairs - totals.pairs;
    stats.pairs = totals.pairs;
  }
  return Status::Ok();
}

Status SectionRun::ClearMarks(Batch* batch) {
  const size_t bytes = batch->plan.marks.size() * sizeof(Mark);
  TESSERA_TRY(Renew(&marks_, bytes));
  CUDA_TRY(cudaMemsetAsync(marks_.As<void>(), 0, bytes, gpu_.stream));
  batch->launch.marks = marks_.As<Mark>();
  batch->launch.mark_count = static_cast<uint32_t>(batch->plan.marks.size());
  return Status::Ok();
}

Status SectionRun::AddMarks(const Batch& batch) {
  std::vector<Mark> marks(batch.plan.marks.size());
  CUDA_TRY(cudaMemcpyAsync(marks.data(), marks_.As<void>(), marks.size() * sizeof(Mark), cudaMemcpyDeviceToHost,
                           gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  for (size_t m = 0; m < marks.size(); ++m) {
    cycles_ += marks[m].cycles;
    const int join = batch.plan.marks[m];
    if (join < 0) continue;
    auto at = std::find_if(joined_.begin(), joined_.end(), [&](const auto& j) { return j.first == join; });
    if (at == joined_.end()) at = joined_.insert(at, {join, Mark()});
    at->second.rows += marks[m].rows;
    at->second.cycles += marks[m].cycles;
  }
  return Status::Ok();
}

void SectionRun::TellJoins() {
  vm::SectionStatistics& stats = *context_.statistics;
  for (const auto& [join, mark] : joined_) {
    const double share = static_cast<double>(mark.cycles) / static_cast<double>(std::max<uint64_t>(cycles_, 1));
    const int builder = context_.program->joins[static_cast<size_t>(join)].section;
    stats.joined.push_back(
        {context_.program->sections[static_cast<size_t>(builder)].label, mark.rows, share * stats.kernel_milliseconds});
  }
}

Status SectionRun::GrowGroups(Batch* batch) {
  const uint64_t spills = groups_.spills();
  TESSERA_TRY(groups_.Grow());
  if (groups_.spills() == spills) return Status::Ok();
  const Status too_many{ErrorCode::kResource, "the groups of a join's product do not fit the GPU",
                        "Give --gpu-memory more, or use SET join_strategy = auto or --device host."};
  if (IsDp(batch->plan.variant)) return too_many;  // a child grid's cursors are not its blocks'
  if (batch->turn == 0) {
    const uint32_t warps = batch->blocks * kWarps;
    batch->at.assign(warps, 0);
    batch->running.assign(batch->blocks, true);
    batch->next_turn = 0;
    batch->turn = std::clamp(groups_.table().max_groups / kTileRows, 1u, batch->blocks);
    TESSERA_TRY(FetchCursors(batch));
    batch->moved = false;
    return Status::Ok();
  }
  const bool moved = std::exchange(batch->moved, false);
  // The matches of a slice may make more groups than it has rows.
  if (!moved && batch->turn == 1) return too_many;
  if (!moved) batch->turn = std::max(1u, batch->turn / 4);
  return Status::Ok();
}

Status SectionRun::FetchCursors(Batch* batch) {
  std::vector<uint32_t> now(batch->at.size());
  CUDA_TRY(cudaMemcpyAsync(now.data(), batch->launch.cursors, now.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost,
                           gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  for (size_t i = 0; i < now.size(); ++i) {
    if (!batch->running[i / kWarps]) continue;
    batch->moved |= now[i] != batch->at[i];
    batch->at[i] = now[i];
  }
  return Status::Ok();
}

bool SectionRun::IsUnfinished(const Batch& batch, uint32_t block) const {
  const uint32_t tiles =
      batch.launch.unit_count == nullptr ? batch.launch.tiles : gpu_.host_found.As<Found>()->totals.count;
  const uint32_t* at = batch.at.data() + block * kWarps;
  return *std::min_element(at, at + kWarps) < FirstTileOf(block + 1, batch.blocks, tiles);
}

bool SectionRun::HasUnfinished(const Batch& batch) const {
  for (uint32_t b = 0; batch.turn > 0 && b < batch.blocks; ++b) {
    if (IsUnfinished(batch, b)) return true;
  }
  return false;
}

Status SectionRun::SendTurn(Batch* batch) {
  batch->running.assign(batch->blocks, false);
  std::vector<uint32_t> cursors(batch->at.size(), kBehindAllTiles);
  uint32_t chosen = 0;
  for (uint32_t n = 0; n < batch->blocks && chosen < batch->turn; ++n) {
    const uint32_t b = (batch->next_turn + n) % batch->blocks;
    if (!IsUnfinished(*batch, b)) continue;
    batch->running[b] = true;
    std::copy_n(batch->at.begin() + b * kWarps, kWarps, cursors.begin() + b * kWarps);
    // Those that do not finish come again first: what they have begun is in the table.
    if (chosen++ == 0) batch->next_turn = b;
  }
  // (Pageable memory: the copy is done when the call returns.)
  CUDA_TRY(cudaMemcpyAsync(batch->launch.cursors, cursors.data(), cursors.size() * sizeof(uint32_t),
                           cudaMemcpyHostToDevice, gpu_.stream));
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
      vm::WithFold(op, [&]<class M>() { Merge<M>(&totals_[k], p, &lane); });
    }
    if (lane.error != vm::LaneError::kNone) return vm::LaneErrorStatus(lane.error, {});
  }
  return Status::Ok();
}

Status SectionRun::FinishTotals() {
  ResizeColumns(1, &result_);
  const std::vector<size_t> columns = vm::AggregateColumns(section_);
  for (size_t k = 0; k < totals_.size(); ++k) {
    const Partial& t = totals_[k];
    uint64_t words[] = {static_cast<uint64_t>(t.low), static_cast<uint64_t>(t.high), t.third};
    const bool count = vm::Info(section_.aggregates[k].op).role == vm::Role::Count;
    if (count) words[0] = t.count;
    SetAggregate(&result_.columns[columns[k]], columns[k + 1] - columns[k], 0, words, !count && t.count == 0,
                 result_.rows);
  }
  return Status::Ok();
}

Status SectionRun::PrepareSink() {
  output_.columns = static_cast<uint32_t>(section_.columns.size());
  if (section_.sink == Section::Sink::kRows) {
    TESSERA_TRY(row_output_.Open());
    output_ = row_output_.output();
    return Status::Ok();
  }
  if (keys_ == 0) return Status::Ok();
  return groups_.Open();
}

Status SectionRun::Renew(RunBuffer* buffer, uint64_t bytes) {
  buffer->Free();
  return buffer->Allocate(&gpu_, bytes);
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

Status SectionRun::GrowBuild(uint64_t wanted) {
  const uint64_t rows = std::max<uint64_t>(2 * uint64_t{output_.capacity}, rows_used_ + wanted);
  const bool stays = !CanPart(*context_.program, section_.join);
  if (stays || rows * RowBytes(section_.columns) <= joins_.MostRowBytes()) {
    const Status status = AllocateBuild(rows);
    if (stays || status.ok() || status.code() != ErrorCode::kResource) return status;
  }
  TESSERA_TRY(DrainBuild());
  return wanted <= output_.capacity ? Status::Ok() : AllocateBuild(wanted);
}

Status SectionRun::DrainBuild() {
  TESSERA_ASSIGN(vm::RowSet rows, Download(&gpu_, section_.columns, build_rows_, rows_used_));
  rows_on_host_ += rows_used_;
  rows_used_ = 0;
  if (rows.rows > 0) host_rows_.push_back(std::move(rows));
  return Status::Ok();
}

Status SectionRun::StartBuild() {
  TESSERA_TRY(PlanParts());
  TESSERA_TRY(StartPass(0));
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
  const uint64_t row_bytes = RowBytes(section_.columns), most_bytes = joins_.MostRowBytes();
  if (next < table.tablets.size() || repeats || rows > kDeferredBuildRows || rows * row_bytes > most_bytes ||
      passes_ > 1) {
    // The rest, or rows without a bound: one launch after the other, with what was collected as the first.
    TESSERA_TRY(AllocateBuild(std::clamp<uint64_t>(most_bytes / row_bytes, kSliceRows, kFirstBuildRows)));
    for (uint64_t pass = 0;;) {
      if (!batch.tablets.empty()) {
        TESSERA_TRY(Prepare(&batch, 0));
        TESSERA_TRY(Start(&batch));
        TESSERA_TRY(Finish(&batch));
      }
      if (next == table.tablets.size()) {
        if (++pass == passes_) return Status::Ok();
        TESSERA_TRY(StartPass(pass));
        next = 0;
      }
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
      return vm::LaneErrorStatus(static_cast<vm::LaneError>(control.error_code),
                                 section_.code[control.error_address - added_code_]);
    }
    rows_used_ = control.rows;
    gpu_.cache.Unpin(&batches_[0].pinned);
    partitioned_[0].Free();
    if (!batches_[0].plan.marks.empty()) TESSERA_TRY(AddMarks(batches_[0]));
  }
  if (host_rows_.empty()) {
    build_rows_.set_rows(rows_used_);
    return Status::Ok();
  }
  TESSERA_TRY(DrainBuild());
  JoinRows none;
  swap(none, build_rows_);
  return Status::Ok();
}

}  // namespace tessera::kernels
