#include "kernels/run/launch_builder.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/launch/vm_kernel.h"
#include "kernels/plan/cut_tiles.h"
#include "kernels/plan/describe.h"
#include "kernels/plan/group_layout.h"
#include "kernels/plan/tablet_record.h"

namespace tessera::kernels {
namespace {

/// A column of which a smaller part of the sectors is read stays on the host, if it has to cross the link: single sectors
/// cross at 22 GB a second where copies move 53 (one H100), so that a part of 0.4 takes as long as all.
constexpr double kSparseShare = 0.3;
/// The part of the budget that the rows may take for which an output has room only so that none that waits in a queue is
/// without.
constexpr uint64_t kSpareShare = 32;
/// Numbers of groups that take the device some microseconds to clear and look through once more.
constexpr uint32_t kFewGroups = 1 << 19;
/// Of the budget, for each of them: far more than they take.
constexpr uint64_t kBytesPerFewGroup = 1024;
/// The part of the free memory that a launch's rows in the order of a table's slots may have.
constexpr uint64_t kPartitionedShare = 8;

using vm::Section;

uint32_t TilesOf(uint32_t rows) { return (rows + kTileRows - 1) / kTileRows; }

/// How many blocks of the plan's kernel run on a multiprocessor at once.
tessera::Result<int> BlocksPerMultiprocessor(GpuDevice* gpu, const LaunchPlan& plan) {
  return gpu->BlocksPerMultiprocessor(VmKernelFor(plan.variant), kThreads + 32, plan.layout.bytes, [&] {
    return IsDp(plan.variant) ? PrepareBuckets(plan.variant, gpu->limits.shared_per_block) : cudaSuccess;
  });
}

/// Maps and sets of the tablets of a launch in its arena. Those that tablets share travel once.
class SharedPieces {
 public:
  void Add(const void* from, size_t bytes, Arena* arena) {
    auto [piece, is_new] = pieces_.try_emplace(from);
    if (is_new) piece->second = {bytes, arena->Add(bytes)};
  }
  void Copy(const Arena& arena) const {
    for (const auto& [from, piece] : pieces_) memcpy(arena.Host(piece.offset), from, piece.bytes);
  }
  template <class T>
  const T* Device(const Arena& arena, const T* from) const {
    return arena.Device<T>(pieces_.at(from).offset);
  }

 private:
  struct Piece {
    size_t bytes, offset;
  };
  std::unordered_map<const void*, Piece> pieces_;
};

template <class T>
void CopyTo(uint8_t* to, const std::vector<T>& from) {
  std::copy(from.begin(), from.end(), reinterpret_cast<T*>(to));
}

}  // namespace

/// Where things are in the arena.
struct LaunchBuilder::Offsets {
  size_t partials = 0, control = 0, cursors = 0, code = 0, folds = 0, staged = 0;
  size_t records = 0, first_tile = 0, tablet_rows = 0;  ///< per tablet
  size_t output_registers = 0, output_highs = 0;
  size_t initial_state = 0, joins = 0;
  size_t sources = 0, source_tiles = 0, source_rows = 0;  ///< of a partition
  size_t text_jobs = 0, text_patterns = 0;
  SharedPieces pieces;
};

LaunchBuilder::LaunchBuilder(GpuDevice* gpu, const vm::SectionContext& context, const LoweredProgram& lowered,
                             const DeviceJoins& joins, const vm::SectionEncoder& encoder, GridLaunch* grid)
    : gpu_(*gpu),
      context_(context),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      lowered_(lowered),
      joins_(joins),
      encoder_(encoder),
      grid_(*grid) {}

bool LaunchBuilder::MayPartition() const {
  const bool limited =
      section_.sink == Section::Sink::kRows && section_.after.order.empty() && section_.after.limit >= 0;
  // (What is moved is not of one chunk, so no texts of chunks can be handed on.)
  if (section_.source_kind != Section::Source::kTable || grid_.is_needed() || limited || encoder_.hands_on())
    return false;
  for (size_t j = 0; j < lowered_.joins.probe_slots.size(); ++j) {
    const JoinShape* shape = joins_.shapes()[j];
    if (lowered_.joins.probe_slots[j].empty() || shape == nullptr) continue;
    if (MayOrder(context_.settings.join_partitioning, shape->record, gpu_.limits.cache_bytes)) return true;
  }
  return false;
}

bool LaunchBuilder::MayCut(const std::vector<vm::TabletEncoding>& tablets) const {
  // Rows of a join table are made in one launch, and rows that change places for their probes gain by being many.
  if (section_.sink == Section::Sink::kJoin || grid_.is_needed() || MayPartition()) return false;
  if (section_.sink != Section::Sink::kGroups || section_.keys == 0) return true;
  // Groups that are numbered are entered after the first launch without a look at their keys, which other launches
  // need.
  std::vector<const vm::TabletEncoding*> all;
  for (const vm::TabletEncoding& t : tablets) all.push_back(&t);
  const uint64_t most = std::min<uint64_t>(kFewGroups, gpu_.cache.budget() / kBytesPerFewGroup);
  DirectKey keys[kMaxDirectKeys];
  return PlanDirect(lowered_, all, joins_.shapes(), static_cast<uint32_t>(most), keys) != 0;
}

std::vector<SparseSlot> LaunchBuilder::SparseSlots(const vm::TabletEncoding& tablet) const {
  std::vector<SparseSlot> sparse;
  if (MayPartition()) return sparse;  // rows that change places are read whole
  const Result<LaunchPlan> plan = PlanLaunch(section_, lowered_, {&tablet}, joins_.shapes(), gpu_.limits, false);
  if (!plan.ok()) return sparse;  // the launch says why
  // A column may be read before rows wait and after that, and in the ring as well.
  std::vector<double> touched(section_.slots.size());
  for (const PlannedColumns::OnDemand& column : plan->columns.on_demand) touched[column.slot] += column.touched;
  for (const StagedSlot& column : plan->columns.staged) touched[column.slot] = 1;
  for (const PlannedColumns::OnDemand& column : plan->columns.on_demand) {
    if (touched[column.slot] > kSparseShare) continue;
    sparse.resize(section_.slots.size());
    sparse[column.slot] = {true, touched[column.slot], MayBeBits(section_, *plan, column.slot)};
  }
  return sparse;
}

bool LaunchBuilder::CanReadBits(const Batch& batch) const {
  const std::vector<BitStream>& bits = batch.input.bits;
  const size_t slots = section_.slots.size();
  for (size_t slot = 0; slot < slots; ++slot) {
    bool any = false;
    for (size_t i = slot; i < bits.size(); i += slots) any |= bits[i].at != nullptr;
    if (any && !MayBeBits(section_, batch.plan, static_cast<uint32_t>(slot))) return false;
  }
  return true;
}

tessera::Result<bool> LaunchBuilder::Build(uint64_t most_groups, Arena* arena, Batch* batch) {
  TESSERA_TRY(PlanBatch(most_groups, batch));
  if (!CanReadBits(*batch)) return false;
  TESSERA_TRY(AllocateTextSets(batch));
  arena->Clear();
  batch->arena = arena;
  const Offsets at = LayOutArena(arena, *batch);
  batch->control = at.control;
  TESSERA_TRY(gpu_.Evicting([&] { return arena->Allocate(); }));
  FillArena(at, batch);
  FillRecords(at, batch);
  FillTextFilter(at, batch);
  FillLaunch(at, batch);
  FillColumns(at, batch);
  AddStatistics(*batch);
  return true;
}

// ---- Planning -------------------------------------------------------------------------------------------------------

Status LaunchBuilder::PlanBatch(uint64_t most_groups, Batch* batch) {
  std::vector<const vm::TabletEncoding*> tablets;
  for (const vm::TabletEncoding& t : batch->input.tablets) tablets.push_back(&t);
  DeviceLimits limits = gpu_.limits;
  limits.groups = most_groups;
  limits.rows = gpu_.cache.budget() / kSpareShare / std::max<uint64_t>(RowBytes(section_.columns), 1);
  const bool wants_dp = grid_.WantsDp();
  if (wants_dp) limits.shared_per_multiprocessor -= kKeeperBytes;
  const auto plan_launch = [&] {
    return PlanLaunch(section_, lowered_, tablets, joins_.shapes(), limits, context_.profile);
  };
  TESSERA_ASSIGN(batch->plan, plan_launch());
  TESSERA_TRY(PartitionRows(tablets, batch));
  if (batch->partition.join >= 0) {
    tablets = {&batch->input.tablets[0]};
    TESSERA_ASSIGN(batch->plan, plan_launch());
  }
  batch->turns.End();
  batch->launch = Launch();
  LaunchPlan& plan = batch->plan;
  uint32_t& tiles = batch->launch.input.tiles;
  for (const vm::TabletEncoding& t : batch->input.tablets) tiles += TilesOf(t.rows);
  if (wants_dp && plan.joins[static_cast<size_t>(lowered_.joins.grid)].rows > 0)
    plan.variant = plan.variant == Variant::kPairs ? Variant::kDpPairs : Variant::kDp;
  TESSERA_ASSIGN(per_multiprocessor_, BlocksPerMultiprocessor(&gpu_, plan));
  batch->blocks = static_cast<uint32_t>(per_multiprocessor_ * gpu_.info.multiprocessors);
  if (grid_.is_needed()) {
    TESSERA_TRY(grid_.CutUnits(tiles, batch));
  } else if (lowered_.machine.repeats && HasAll(plan.variant) && batch->partition.join < 0) {
    CutTiles(context_.traits->section(context_.section), batch->blocks, &batch->launch.input, &plan.joins);
  }
  batch->blocks = std::min(tiles, batch->blocks);
  batch->partition.radix.blocks = batch->blocks;
  return Status::Ok();
}

Status LaunchBuilder::PartitionRows(const std::vector<const vm::TabletEncoding*>& tablets, Batch* batch) {
  TabletBatch& input = batch->input;
  RunBuffer* const memory = &batch->partitioned;
  memory->Free();
  batch->partition = {};
  if (!MayPartition()) return Status::Ok();
  const bool always = context_.settings.join_partitioning == vm::JoinPartitioning::kOn;
  TESSERA_ASSIGN(ProbePartition p,
                 PlanProbePartition({section_, lowered_, batch->plan, tablets, input.codes, joins_.shapes(), encoder_,
                                     gpu_.limits.cache_bytes, gpu_.Room() / kPartitionedShare, always}));
  if (p.join < 0) return Status::Ok();
  RadixPartition& radix = p.radix;
  const uint32_t tiles = TilesOf(radix.rows);
  const uint64_t next_bytes = kMostRadixParts * sizeof(uint32_t);
  if (!memory->TryAllocate(&gpu_, p.bytes + next_bytes + tiles * sizeof(uint32_t))) return Status::Ok();
  uint8_t* at = memory->As<uint8_t>();
  input.codes.assign(section_.slots.size(), nullptr);
  input.nulls.assign(section_.slots.size(), nullptr);
  for (size_t c = 0; c < p.slots.size(); ++c) {
    const Chunk& chunk = p.chunks[p.slots[c]];
    radix.to[c] = {at, chunk.null_code, chunk.width};
    input.codes[p.slots[c]] = at;
    at += uint64_t{tiles} * kTileRows * chunk.width;
  }
  radix.next = reinterpret_cast<uint32_t*>(at);
  radix.tile_places = reinterpret_cast<uint32_t*>(at + next_bytes);
  input.tablets.clear();
  input.tablets.push_back(std::move(p.encoded));
  batch->partition = std::move(p);
  return Status::Ok();
}

// ---- The arena ------------------------------------------------------------------------------------------------------

LaunchBuilder::Offsets LaunchBuilder::LayOutArena(Arena* arena, const Batch& batch) const {
  const LaunchPlan& plan = batch.plan;
  const ProbePartition& partition = batch.partition;
  const size_t n = batch.input.tablets.size();
  const bool has_totals = section_.sink != Section::Sink::kGroups || section_.keys == 0;
  Offsets at;
  // First what comes back, then what is sent; the counters are both.
  at.partials = arena->Add(has_totals ? batch.blocks * lowered_.partials * sizeof(Partial) : 0);
  at.control = arena->Add(sizeof(Control));
  at.cursors = arena->Add(batch.blocks * kWarps * sizeof(uint32_t));
  at.code = arena->Add(plan.code.size() * sizeof(DeviceInstruction));
  at.folds = arena->Add(plan.folds.size() * sizeof(DeviceInstruction));
  at.staged = arena->Add(plan.columns.staged.size() * sizeof(StagedSlot));
  at.records = arena->Add(n * plan.record.bytes);
  at.first_tile = arena->Add(n * sizeof(uint32_t));
  at.tablet_rows = arena->Add(n * sizeof(uint32_t));
  at.output_registers = arena->Add(lowered_.outputs.size() * sizeof(uint32_t));
  at.output_highs = arena->Add(lowered_.outputs.size() * sizeof(uint32_t));
  at.initial_state = arena->Add(lowered_.groups.initial_state.size() * sizeof(uint64_t));
  at.joins = arena->Add(plan.joins.size() * sizeof(JoinRecord));
  at.sources = arena->Add(partition.sources.size() * sizeof(RadixSource));
  at.source_tiles = arena->Add(partition.tablet_rows.size() * sizeof(uint32_t));
  at.source_rows = arena->Add(partition.tablet_rows.size() * sizeof(uint32_t));
  at.text_jobs = arena->Add(batch.input.texts.size() * sizeof(TextJob));
  at.text_patterns = arena->Add(lowered_.slots.text_tests.patterns().size() * sizeof(TextPattern));
  for (const vm::TabletEncoding& t : batch.input.tablets) {
    for (const vm::SlotEncoding& slot : t.slots) {
      if (slot.map != nullptr) at.pieces.Add(slot.map, slot.map_entries * 8, arena);
      if (slot.made_bytes > 0) at.pieces.Add(slot.codes, slot.made_bytes, arena);
      if (slot.map_null != nullptr) at.pieces.Add(slot.map_null, slot.map_entries, arena);
    }
    for (const vm::PredicateEncoding& p : t.predicates) {
      if (p.set != nullptr) at.pieces.Add(p.set, p.set_bytes, arena);
    }
  }
  return at;
}

void LaunchBuilder::FillArena(const Offsets& at, Batch* batch) const {
  const Arena& arena = *batch->arena;
  const LaunchPlan& plan = batch->plan;
  memset(arena.Host(at.cursors), 0, batch->blocks * kWarps * sizeof(uint32_t));
  CopyTo(arena.Host(at.code), plan.code);
  CopyTo(arena.Host(at.folds), plan.folds);
  CopyTo(arena.Host(at.staged), plan.columns.staged);
  CopyTo(arena.Host(at.initial_state), lowered_.groups.initial_state);
  CopyTo(arena.Host(at.joins), plan.joins);
  at.pieces.Copy(arena);
  ProbePartition& partition = batch->partition;
  if (partition.join < 0) return;
  CopyTo(arena.Host(at.sources), partition.sources);
  CopyTo(arena.Host(at.source_tiles), partition.first_tiles);
  CopyTo(arena.Host(at.source_rows), partition.tablet_rows);
  partition.radix.from = arena.Device<RadixSource>(at.sources);
  partition.radix.first_tile = arena.Device<uint32_t>(at.source_tiles);
  partition.radix.source_rows = arena.Device<uint32_t>(at.source_rows);
}

void LaunchBuilder::FillRecords(const Offsets& at, Batch* batch) const {
  const Arena& arena = *batch->arena;
  const TabletBatch& input = batch->input;
  uint32_t* const first_tile = reinterpret_cast<uint32_t*>(arena.Host(at.first_tile));
  uint32_t* const tablet_rows = reinterpret_cast<uint32_t*>(arena.Host(at.tablet_rows));
  uint32_t tiles = 0;
  std::vector<const uint8_t*> codes;
  std::vector<const int64_t*> maps;
  std::vector<const uint8_t*> map_nulls, sets;
  const std::vector<BitStream> no_bits(section_.slots.size());
  auto text = input.texts.begin();
  for (size_t t = 0; t < input.tablets.size(); ++t) {
    const vm::TabletEncoding& encoded = input.tablets[t];
    const size_t slots = encoded.slots.size();
    const auto codes_of = input.codes.begin() + static_cast<ptrdiff_t>(t * slots);
    codes.assign(codes_of, codes_of + static_cast<ptrdiff_t>(slots));
    maps.assign(slots, nullptr);
    map_nulls.assign(slots, nullptr);
    sets.assign(encoded.predicates.size(), nullptr);
    for (size_t i = 0; i < slots; ++i) {
      const vm::SlotEncoding& slot = encoded.slots[i];
      if (slot.map != nullptr) maps[i] = at.pieces.Device(arena, slot.map);
      if (slot.made_bytes > 0) codes[i] = at.pieces.Device(arena, slot.codes);
      if (!input.highs.empty()) maps[i] = input.highs[i];
      if (slot.map_null != nullptr) map_nulls[i] = at.pieces.Device(arena, slot.map_null);
    }
    for (size_t i = 0; i < encoded.predicates.size(); ++i) {
      if (encoded.predicates[i].set != nullptr) sets[i] = at.pieces.Device(arena, encoded.predicates[i].set);
    }
    for (; text != input.texts.end() && text->tablet == t; ++text) sets[text->predicate] = text->set;
    const TabletAddresses addresses{codes.data(),
                                    input.nulls.data() + t * slots,
                                    input.bits.empty() ? no_bits.data() : input.bits.data() + t * slots,
                                    maps.data(),
                                    map_nulls.data(),
                                    sets.data()};
    FillRecord(encoded, batch->plan, addresses, arena.Host(at.records) + t * batch->plan.record.bytes);
    first_tile[t] = tiles;
    tablet_rows[t] = encoded.rows;
    tiles += TilesOf(encoded.rows);
  }
}

// ---- Texts -----------------------------------------------------------------------------------------------------------

Status LaunchBuilder::AllocateTextSets(Batch* batch) const {
  batch->text_sets.Free();
  const auto padded = [](uint32_t rows) { return (uint64_t{rows} + 127) / 128 * 128; };
  TabletBatch& input = batch->input;
  uint64_t bytes = 0;
  for (const TextPiece& piece : input.texts) bytes += padded(input.tablets[piece.tablet].rows);
  if (bytes == 0) return Status::Ok();
  TESSERA_TRY(batch->text_sets.Allocate(&gpu_, bytes));
  uint8_t* at = batch->text_sets.As<uint8_t>();
  for (TextPiece& piece : input.texts) {
    piece.set = at;
    at += padded(input.tablets[piece.tablet].rows);
  }
  return Status::Ok();
}

void LaunchBuilder::FillTextFilter(const Offsets& at, Batch* batch) const {
  const TabletBatch& input = batch->input;
  TextFilter& filter = batch->text_filter;
  filter = {};
  if (input.texts.empty()) return;
  const Arena& arena = *batch->arena;
  CopyTo(arena.Host(at.text_patterns), lowered_.slots.text_tests.patterns());
  TextJob* const jobs = reinterpret_cast<TextJob*>(arena.Host(at.text_jobs));
  const size_t slots = section_.slots.size();
  for (const TextPiece& piece : input.texts) {
    const vm::TabletEncoding& tablet = input.tablets[piece.tablet];
    const size_t slot = static_cast<size_t>(tablet.predicates[piece.predicate].slot);
    TextJob job;
    job.offsets = reinterpret_cast<const uint64_t*>(piece.offsets);
    job.texts = reinterpret_cast<const char*>(piece.texts);
    job.text_bytes = tablet.chunks[slot]->text_bytes;
    job.null_bytes = input.nulls[piece.tablet * slots + slot];
    job.set = piece.set;
    job.rows = tablet.rows;
    job.first_block = filter.blocks;
    lowered_.slots.text_tests.SetPatterns(piece.predicate, &job);
    jobs[filter.count++] = job;
    filter.blocks += (tablet.rows + kTextBlockRows - 1) / kTextBlockRows;
  }
  filter.jobs = arena.Device<TextJob>(at.text_jobs);
  filter.patterns = arena.Device<TextPattern>(at.text_patterns);
}

// ---- The launch -----------------------------------------------------------------------------------------------------

void LaunchBuilder::FillLaunch(const Offsets& at, Batch* batch) const {
  const Arena& arena = *batch->arena;
  const LaunchPlan& plan = batch->plan;
  Launch& launch = batch->launch;
  launch.aggregates.partials = arena.Device<Partial>(at.partials);
  launch.state.cursors = arena.Device<uint32_t>(at.cursors);
  launch.code.instructions = arena.Device<DeviceInstruction>(at.code);
  launch.code.length = static_cast<uint32_t>(plan.code.size());
  launch.code.slots = static_cast<uint32_t>(section_.slots.size());
  launch.input.records = arena.Device<uint8_t>(at.records);
  launch.input.record_bytes = plan.record.bytes;
  launch.input.record_staged = plan.record.staged;
  // Direct groups are there before the launch begins: nothing can run full.
  launch.input.two_passes = lowered_.machine.two_passes && !plan.groups.direct;
  launch.input.tablets = static_cast<uint32_t>(batch->input.tablets.size());
  launch.input.first_tile = arena.Device<uint32_t>(at.first_tile);
  launch.input.tablet_rows = arena.Device<uint32_t>(at.tablet_rows);
  launch.repeats = lowered_.machine.repeats;
  launch.input.staged_count = static_cast<uint32_t>(plan.columns.staged.size());
  launch.input.staged = arena.Device<StagedSlot>(at.staged);
  launch.input.prefetched_count = static_cast<uint32_t>(plan.columns.prefetched.size());
  std::ranges::copy(plan.columns.prefetched, launch.input.prefetched);
  launch.layout = plan.layout;
  launch.aggregates.count = static_cast<uint32_t>(plan.folds.size());
  launch.aggregates.block_partials = lowered_.partials;
  launch.folds = arena.Device<DeviceInstruction>(at.folds);
  launch.joins.count = static_cast<uint32_t>(plan.joins.size());
  launch.joins.records = arena.Device<JoinRecord>(at.joins);
  launch.queues.entries = plan.queues.entries;
  std::copy(std::begin(plan.queues.resume), std::end(plan.queues.resume), launch.queues.resume);
  std::copy(plan.queues.carried_from.begin(), plan.queues.carried_from.end(), launch.queues.carried_from);
  for (uint32_t q = 0; q < kQueues; ++q) {
    launch.queues.carried[q] = static_cast<uint32_t>(plan.queues.carried_to[q].size());
    std::copy(plan.queues.carried_to[q].begin(), plan.queues.carried_to[q].end(), launch.queues.carried_to[q]);
  }
  launch.private_groups = plan.groups.private_groups;
  launch.direct.active = plan.groups.direct;
  launch.direct.groups = plan.groups.domain;
  const uint64_t under_way = uint64_t{batch->blocks} * kWarps * RowsUnderWay(plan.layout.stages);
  launch.spare = plan.queues.spare == 0 ? 0 : static_cast<uint32_t>(std::min(batch->input.rows(), under_way));
  std::copy(std::begin(plan.groups.keys), std::end(plan.groups.keys), launch.direct.keys);
  launch.groups.initial_state = arena.Device<uint64_t>(at.initial_state);
}

/// The columns that leave the section: keys, and those that are emitted.
void LaunchBuilder::FillColumns(const Offsets& at, Batch* batch) const {
  const Arena& arena = *batch->arena;
  const LaunchPlan& plan = batch->plan;
  Launch& launch = batch->launch;
  if (section_.sink == Section::Sink::kGroups) launch.keys.of_groups = static_cast<uint32_t>(section_.keys);
  for (size_t k = 0; k < lowered_.keys.registers.size(); ++k)
    launch.keys.registers[k] = plan.registers[lowered_.keys.registers[k]];
  if (section_.sink == Section::Sink::kJoin) launch.keys.of_build = static_cast<uint32_t>(section_.keys);
  for (uint32_t k = 0; k < launch.keys.of_build; ++k) launch.keys.registers[k] = plan.registers[k];
  launch.output.registers = arena.Device<uint32_t>(at.output_registers);
  launch.output.highs = arena.Device<uint32_t>(at.output_highs);
  uint32_t* const registers = reinterpret_cast<uint32_t*>(arena.Host(at.output_registers));
  uint32_t* const highs = reinterpret_cast<uint32_t*>(arena.Host(at.output_highs));
  uint32_t wide = 0;
  for (size_t c = 0; c < lowered_.outputs.size(); ++c) {
    registers[c] = plan.registers[lowered_.outputs[c]];
    highs[c] = wide;
    if (IsWide(section_.columns[c])) ++wide;
  }
}

void LaunchBuilder::AddStatistics(const Batch& batch) const {
  const LaunchPlan& plan = batch.plan;
  vm::SectionStatistics& stats = *context_.statistics;
  const auto bytes_of = [&](uint32_t slot) {
    uint64_t bytes = 0;
    for (const vm::TabletEncoding& t : batch.input.tablets) bytes += uint64_t{t.rows} * t.slots[slot].width;
    return bytes;
  };
  for (const StagedSlot& column : plan.columns.staged) stats.bytes_staged += bytes_of(column.slot);
  for (const PlannedColumns::OnDemand& column : plan.columns.on_demand) {
    stats.bytes_on_demand += static_cast<uint64_t>(column.touched * static_cast<double>(bytes_of(column.slot)));
  }
  stats.device_plan =
      Describe(plan) + (batch.partition.join >= 0 ? Describe(batch.partition) : "") + ", " +
      std::to_string(per_multiprocessor_) + " blocks a multiprocessor" +
      (batch.launch.input.whole_tiles == 0
           ? ""
           : ", tiles in " + std::to_string(batch.launch.input.tiles / batch.launch.input.whole_tiles) + " parts") +
      (batch.input.texts.empty() ? "" : ", texts tested on the GPU");
}

}  // namespace tessera::kernels
