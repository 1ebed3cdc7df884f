// Cutting a source into units.

#include "vm/run/scan.h"

#include <algorithm>

#include "vm/machine/entry_machine.h"
#include "vm/shares/portion.h"

namespace tessera::vm {
namespace {

/// The rows of an earlier section, as a tablet.
TabletEncoding EncodeRows(const Section& s, const RowSet& rows) {
  TabletEncoding out;
  out.rows = static_cast<uint32_t>(rows.rows);
  for (const Slot& slot : s.slots) {
    const RowColumn& c = rows.columns[static_cast<size_t>(slot.column)];
    SlotEncoding b;
    b.decode = Decode::kRaw;
    b.width = 8;
    b.wide = slot.type.storage() == StorageClass::kWide;
    b.codes = reinterpret_cast<const uint8_t*>(c.low.data());
    if (b.wide) b.map = c.high.data();
    if (!c.null.empty()) b.null_bytes = c.null.data();
    out.slots.push_back(b);
  }
  return out;
}

/// Rows of a series that are cut at a time, and of a tablet of them.
constexpr int64_t kSeriesRound = int64_t{1} << 26, kSeriesTablet = int64_t{1} << 16;

// (A function, not a lambda where it is called: g++ would take that for a constant, and evaluate it.)
std::vector<uint16_t> CodesOfSeries() {
  std::vector<uint16_t> codes(kSeriesTablet + 64);  // loops may read a few codes more
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  return codes;
}

/// The numbers of `rows` rows of a series, from `first` on, as a tablet. All tablets share their codes.
TabletEncoding EncodeSeries(const Section& s, int64_t first, int64_t rows) {
  static const std::vector<uint16_t> kCodes = CodesOfSeries();
  TabletEncoding out;
  out.rows = static_cast<uint32_t>(rows);
  SlotEncoding number;
  number.decode = Decode::kFrame;
  number.width = sizeof(uint16_t);
  number.base = static_cast<uint64_t>(first);
  number.codes = reinterpret_cast<const uint8_t*>(kCodes.data());
  out.slots.assign(s.slots.size(), number);
  return out;
}

/// Adds the blocks of some rows of a tablet. `tile`: the number of the tablet's first tile.
void CutRows(const TabletPart& part, uint32_t block_rows, uint64_t tile, std::vector<Block>* blocks) {
  for (uint32_t at = 0; at < part.rows;) {
    const uint32_t first = part.first + at, count = std::min(block_rows, part.rows - at);
    blocks->push_back({tile + first / kTileRows, part.tablet, first, count});
    at += count;
  }
}

/// Cuts the source. `rows`: the rows of each of its tablets. `tile`: the number of its first tile. Returns that after
/// its last. A block has the number of its first tile, for ranks may cut a tablet anywhere between tiles. Where pairs are
/// compared, a tile is enough work for a unit.
uint64_t CutSource(const Section& s, const SectionTraits& traits, const Portion& portion,
                   const std::vector<uint32_t>& rows, uint64_t tile, ScanUnits* units) {
  const uint32_t block_rows =
      traits.ComparesPairs() ? kTileRows : static_cast<uint32_t>(RowsByWidth(portion.unit_rows(), s));
  auto part = portion.parts().begin();
  for (size_t t = 0; t < rows.size(); ++t) {
    if (!portion.by_tablets()) CutRows({t, 0, rows[t]}, block_rows, tile, &units->blocks);
    for (; part != portion.parts().end() && part->tablet == t; ++part) CutRows(*part, block_rows, tile, &units->blocks);
    tile += (uint64_t{rows[t]} + kTileRows - 1) / kTileRows;
  }
  units->first = portion.first_unit();
  units->step = portion.unit_step();
  return tile;
}

/// The ranges of the columns that the steps read, over rows [first, first + count).
std::vector<KnownRange> RangesOf(const RangeProgram& program, RangeSource source, const RowSet& rows, size_t first,
                                 size_t count) {
  std::vector<KnownRange> out(rows.columns.size());
  for (const RangeStep& step : program.steps) {
    if (step.source == source && out[step.index].unknown)
      out[step.index] = RangeOfColumn(rows.columns[step.index], first, count);
  }
  return out;
}

/// Cuts the rows of the join table that the section probes as a grid.
void CutGrid(const RunState& state, ScanUnits* units) {
  if (units->grid < 0) return;
  units->grid_rows = static_cast<uint32_t>(state.joins.rows(units->grid).rows);
  units->ranges = std::max<uint64_t>(1, (uint64_t{units->grid_rows} + kRangeRows - 1) / kRangeRows);
}

/// No tablet of the stored table is encoded.
void BeginTablets(Scan* scan) {
  scan->tablets = std::vector<LazyTablet>(scan->table->tablets.size());
  scan->ahead.reset();
  const ScanUnits& units = scan->units;
  // (A grid comes back to each tablet for every range, up to its end.)
  for (size_t u = 0; u < units.size() && units.grid < 0; ++u)
    ++scan->tablets[units.blocks[units.At(u).block].tablet].units_left;
}

/// Finds the value ranges of a grid's blocks and row ranges, if both sides are sorted; otherwise they would prune
/// hardly anything.
void FindRanges(const RunState& state, Scan* scan) {
  const Section& s = state.section(scan->number);
  const ScanUnits& units = scan->units;
  if (units.grid < 0 || s.source_kind != Section::Source::kJoin || state.join(units.grid).order < 0) return;
  GridPruning& pruning = scan->pruning;
  pruning.program = MakeRangeProgram(state.program, scan->number, state.traits.section(scan->number), units.grid);
  if (pruning.program.steps.empty()) return;
  const RowSet &outer = state.joins.rows(s.source), &inner = state.joins.rows(units.grid);
  for (const Block& b : units.blocks)
    pruning.outer.push_back(RangesOf(pruning.program, RangeSource::kOuter, outer, b.first, b.rows));
  for (uint64_t range = 0; range < units.ranges; ++range) {
    const size_t first = range * kRangeRows, count = std::min<size_t>(kRangeRows, inner.rows - first);
    pruning.inner.push_back(RangesOf(pruning.program, RangeSource::kInner, inner, first, count));
  }
}

}  // namespace

namespace {

/// How many groups the only reader of a section takes, whichever: it has a LIMIT without order, and no aggregate needs all
/// rows. UINT64_MAX: all.
uint64_t EnoughGroups(const RunState& state, int number) {
  const Section& s = state.section(number);
  if (s.sink != Section::Sink::kGroups || s.keys == 0 || !s.aggregates.empty()) return UINT64_MAX;
  uint64_t enough = UINT64_MAX;
  int readers = 0;
  for (size_t i = static_cast<size_t>(number) + 1; i < state.program.sections.size(); ++i) {
    const Section& reader = state.program.sections[i];
    if (reader.source_kind != Section::Source::kSection || reader.source != number) continue;
    ++readers;
    const bool takes_any = state.traits.section(static_cast<int>(i)).only_moves &&
                           reader.sink == Section::Sink::kRows && reader.after.order.empty() &&
                           reader.after.fold.kind == Section::Fold::kNone;
    if (takes_any && reader.after.limit >= 0) enough = reader.after.Needed();
  }
  return readers == 1 ? enough : UINT64_MAX;
}

}  // namespace

Status PrepareScan(RunState* state, int number, Scan* scan) {
  const Section& s = state->section(number);
  const SectionTraits& traits = state->traits.section(number);
  scan->number = number;
  scan->place = state->turns << 40;
  scan->counts.joined = std::make_unique<JoinCounter[]>(state->program.joins.size());
  scan->top = std::make_unique<TopRows>(s, traits);
  scan->first_of_keys = std::make_unique<FirstOfKeys>(s);
  scan->enough_groups = EnoughGroups(*state, number);
  ScanUnits& units = scan->units;
  units.grid = traits.grid;
  CutGrid(*state, &units);
  if (s.source_kind == Section::Source::kTable) {
    scan->table = state->SourceTable(s);
    scan->encoder = std::make_unique<SectionEncoder>(state->program, number, traits, &state->strings, &MakeEntryMachine,
                                                     state->joins.key_ranges(), true);
    if (state->options.settings.decompression == Decompression::kPartial) scan->encoder->ReadByTiles();
    std::vector<uint32_t> rows;
    uint64_t first = 0;
    for (const auto& tablet : scan->table->tablets) {
      rows.push_back(tablet->rows());
      scan->first_rows.push_back(first);
      first += tablet->rows();
    }
    CutSource(s, traits, Portion(*scan->table, s, state->options.exchange), rows, 0, &units);
    BeginTablets(scan);
    return Status::Ok();
  }
  return RenewSource(state, scan);
}

Status RenewSource(RunState* state, Scan* scan) {
  const Section& s = state->section(scan->number);
  scan->machines.clear();
  scan->units.blocks.clear();
  if (s.source_kind == Section::Source::kSeries) {
    scan->series_end = 0;
    CutNextOfSeries(state, scan);
    return Status::Ok();
  }
  scan->tablets = std::vector<LazyTablet>(1);
  TabletEncoding& encoded = scan->tablets[0].encoded;
  encoded.rows = 1;
  if (s.source_kind == Section::Source::kSection || s.source_kind == Section::Source::kJoin) {
    const RowSet& from =
        s.source_kind == Section::Source::kJoin ? state->joins.rows(s.source) : state->result(s.source);
    if (from.rows > UINT32_MAX - kUnitRows)
      return {ErrorCode::kResource, "an intermediate result has more than 2^32 rows"};
    encoded = EncodeRows(s, from);
  }
  // Every rank has the rows of a join table, unless each has its share. Those of a section are the rank's own.
  const Exchange* const exchange = state->options.exchange;
  const bool replicated = s.source_kind == Section::Source::kJoin && !state->in_shares[static_cast<size_t>(s.source)];
  const uint64_t first = exchange == nullptr || replicated ? 0 : static_cast<uint64_t>(exchange->rank()) << 32;
  scan->next_tile = CutSource(s, state->traits.section(scan->number), Portion(replicated ? exchange : nullptr),
                              {encoded.rows}, first + scan->next_tile, &scan->units) -
                    first;
  FindRanges(*state, scan);
  return Status::Ok();
}

bool CutNextOfSeries(RunState* state, Scan* scan) {
  const Section& s = state->section(scan->number);
  if (s.source_kind != Section::Source::kSeries || scan->series_end == s.source_rows) return false;
  const int64_t begin = scan->series_end, end = begin + std::min(kSeriesRound, s.source_rows - begin);
  const auto tablets = static_cast<size_t>((end - begin + kSeriesTablet - 1) / kSeriesTablet);
  scan->machines.clear();
  scan->units.blocks.clear();
  scan->first_rows.clear();
  scan->tablets = std::vector<LazyTablet>(tablets);
  std::vector<uint32_t> rows;
  for (LazyTablet& tablet : scan->tablets) {
    const int64_t first = begin + static_cast<int64_t>(rows.size()) * kSeriesTablet;
    tablet.encoded = EncodeSeries(s, first + 1, std::min(kSeriesTablet, end - first));
    rows.push_back(tablet.encoded.rows);
    scan->first_rows.push_back(static_cast<uint64_t>(first));
  }
  scan->next_tile =
      CutSource(s, state->traits.section(scan->number), Portion(nullptr), rows, scan->next_tile, &scan->units);
  scan->series_end = end;
  scan->done = static_cast<double>(begin) / static_cast<double>(s.source_rows);
  scan->round = static_cast<double>(end - begin) / static_cast<double>(s.source_rows);
  return true;
}

void RenewJoin(RunState* state, Scan* scan) {
  scan->counted = scan->counts.rows_in > 0;
  scan->machines.clear();
  CutGrid(*state, &scan->units);
  if (scan->table != nullptr) return BeginTablets(scan);
  scan->pruning = GridPruning();
  FindRanges(*state, scan);
}

void AddScan(const Scan& scan, RunState* state, SectionStatistics* stats) {
  const ScanCounts& counts = scan.counts;
  stats->rows_in = counts.rows_in;
  stats->pairs = counts.pairs;
  stats->pruned_pairs = counts.pruned_pairs;
  stats->joined.clear();
  for (const ProbeTrait& p : state->traits.section(scan.number).probes) {
    if (p.counted == kNoInstruction || counts.joined == nullptr) continue;
    const JoinCounter& counter = counts.joined[static_cast<size_t>(p.join)];
    const double fraction =
        counts.cycles == 0 ? 0 : static_cast<double>(counter.cycles) / static_cast<double>(counts.cycles);
    stats->joined.push_back(
        {state->section(state->join(p.join).section).label, counter.rows, fraction * counts.milliseconds});
  }
  if (scan.table == nullptr) return;
  size_t last = SIZE_MAX;
  for (size_t b = 0; b < scan.units.blocks.size(); ++b) {
    if (scan.units.blocks[b].tablet == last || !scan.units.HasBlock(b)) continue;
    last = scan.units.blocks[b].tablet;
    const TabletEncoding& encoded = scan.tablets[last].encoded;
    ++stats->tablets;
    if (encoded.skip) {
      ++stats->tablets_skipped;
    } else {
      stats->bytes_read += encoded.encoded_bytes;
      stats->bytes_decoded += encoded.decoded_bytes;
    }
  }
  stats->bytes_decoded += counts.decoded_bytes;
  state->mine.read_work += static_cast<double>(counts.read_nanoseconds) * 1e-6;
}

}  // namespace tessera::vm
