#include "kernels/join/probe_partition.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/plan/filter_order.h"

namespace tessera::kernels {
namespace {

/// What an H100 takes, in picoseconds: to probe a sector in L2, and in device memory; an instruction of the program for
/// a row; to find a row's partition; to move a row, and each byte of it; to read a byte of a table.
constexpr double kNearLookUp = 7.5, kFarLookUp = 30, kInstruction = 1.3, kLongInstruction = 10;
constexpr double kFindPart = 2, kMoveRow = 4.5, kMoveByte = 0.7, kReadByte = 0.35;
/// The part of the L2 cache that holds a table, beside everything else that passes through.
constexpr double kCacheShare = 0.6;
/// Bytes of the table in a partition: several partitions are probed at once.
constexpr uint64_t kPartBytes = uint64_t{4} << 20;
constexpr uint32_t kLeastParts = 16;
/// Runs of rows that are sampled before rows are moved.
constexpr size_t kRuns = 16;
constexpr uint32_t kRunRows = 64;
/// Longer dictionaries are not compared.
constexpr uint32_t kMostEntries = 4096;

/// What the instructions of the program take for a row. Memory answers beside them.
double Compute(const LaunchPlan& plan) {
  double sum = 0;
  for (const DeviceInstruction& d : plan.code) {
    if (d.head.op == Op::End || d.head.op == Op::SkipIfNone) continue;
    sum += vm::Info(d.head.op).loop == vm::Loop::Long ? kLongInstruction : kInstruction;
  }
  return sum;
}

/// Picoseconds that the rows of the launch gain, beyond what moving them costs. `payload`: columns of the table's rows
/// that lie in the order of its slots; all of them are taken to be read. `spread`: as Spread.
double Gain(const ProbeStep& l, const JoinRecord& record, size_t payload, double spread, double compute, double rows,
            double row_bytes, double cache_bytes) {
  const double columns = static_cast<double>(payload);
  const double bytes = static_cast<double>(ProbedBytes(record)) + columns * 8 * record.rows;
  const double far = std::max(0.0, 1 - cache_bytes * kCacheShare / std::max(bytes, 1.0));
  const double sectors = l.live * (1 + columns), near = sectors * kNearLookUp;
  const double unordered = near + sectors * far * spread * (kFarLookUp - kNearLookUp);
  const double gain = std::max(unordered, compute) - std::max(near, compute);
  return rows * (gain - kFindPart - kMoveRow - kMoveByte * row_bytes) - bytes * kReadByte;
}

/// A slot's chunks as one. false: they cannot be.
class ColumnUnion {
 public:
  ColumnUnion(const ProbePartitionQuestion& q, size_t slot) : q_(q), slot_(slot) {}

  bool Find(Chunk* out) {
    const Chunk& first = ChunkOf(0);
    text_ = first.type.storage() == StorageClass::kText;
    uint64_t nulls = 0, rows = 0;
    int128_t low = kInt128Max, high = kInt128Min;
    for (size_t t = 0; t < q_.tablets.size(); ++t) {
      const Chunk& c = ChunkOf(t);
      if (IsWide(c.type) || c.width == 16 || c.null_bytes != nullptr || IsOnlyTestedByRow(t)) return false;
      if (text_ && !SharesDictionary(t)) return false;
      rows += c.rows;
      nulls += c.null_count;
      if (c.min > c.max) continue;
      low = std::min(low, c.min);
      high = std::max(high, c.max);
    }
    if (low > high) low = high = 0;
    if (text_) low = 0, high = first.entries;  // (codes as they are; NULL is after them)
    *out = first;
    const uint64_t span = static_cast<uint64_t>(Low64(high - low));
    if (nulls > 0 && !text_ && span == UINT64_MAX) return false;
    const uint64_t last = span + (nulls > 0 && !text_ ? 1 : 0);
    out->encoding = text_ ? Encoding::kDictionary : Encoding::kFrame;
    out->width = last < 256 ? 1 : last < 65536 ? 2 : last <= UINT32_MAX ? 4 : 8;
    out->has_nulls = nulls > 0;
    out->null_code = nulls > 0 ? last : 0;
    out->rows = static_cast<uint32_t>(rows);
    out->null_count = static_cast<uint32_t>(nulls);
    out->base = text_ ? 0 : low;
    if (!text_) out->min = nulls < rows ? low : 0, out->max = nulls < rows ? high : -1;
    out->codes = nullptr;
    out->codes_bytes = 0;
    // A list of numbers becomes a set by code, or a set by row, which would need the rows here.
    for (const vm::Predicate& p : q_.section.predicates) {
      if (static_cast<size_t>(p.slot) == slot_ && p.kind == vm::Predicate::Kind::kIn && !text_ && out->width > 2)
        return false;
    }
    return true;
  }

  /// How the codes of a tablet become those of the union.
  RadixSource Source(size_t tablet, const Chunk& to) const {
    const Chunk& c = ChunkOf(tablet);
    RadixSource s;
    s.all_null = c.null_count == c.rows;
    s.codes = s.all_null ? nullptr : CodesOf(tablet);
    int128_t base = c.base;
    if (s.codes != nullptr) {
      s.width = c.width;
      s.has_null_code = c.null_count > 0;
      s.null_code = c.null_code;
    } else if (c.width != 0) {
      // All rows of the tablet pass its predicates, or none does, and the values are not read: one of them is enough.
      base = c.min;
    }
    s.add =
        text_ && s.codes != nullptr ? 0 : static_cast<uint64_t>(Low64(base)) - static_cast<uint64_t>(Low64(to.base));
    return s;
  }

 private:
  const uint8_t* CodesOf(size_t tablet) const { return q_.codes[tablet * q_.section.slots.size() + slot_]; }
  const Chunk& ChunkOf(size_t tablet) const { return *q_.tablets[tablet]->chunks[slot_]; }
  /// A predicate knows which of the tablet's rows pass, and the column is not here.
  bool IsOnlyTestedByRow(size_t tablet) const {
    if (CodesOf(tablet) != nullptr) return false;
    const std::vector<vm::PredicateEncoding>& encoded = q_.tablets[tablet]->predicates;
    return std::any_of(encoded.begin(), encoded.end(), [&](const vm::PredicateEncoding& b) {
      return b.by_row && static_cast<size_t>(b.slot) == slot_;
    });
  }
  bool SharesDictionary(size_t tablet) const {
    const Chunk &c = ChunkOf(tablet), &first = ChunkOf(0);
    if (c.encoding != Encoding::kDictionary || c.entries > kMostEntries) return false;
    const int64_t *map = q_.tablets[tablet]->slots[slot_].map, *first_map = q_.tablets[0]->slots[slot_].map;
    return (map != nullptr && map == first_map) || vm::SameDictionary(c, first);
  }

  const ProbePartitionQuestion& q_;
  const size_t slot_;
  bool text_ = false;
};

/// How many sectors of the table the rows probe, as a fraction of their number: few, where most have the same keys or
/// neighbours have close ones. Estimated from some runs of rows, one in each of some tablets spread over the launch.
double Spread(const ProbePartitionQuestion& q, const std::vector<uint32_t>& slots, const JoinRecord& record) {
  const bool direct = record.probe == ProbeKind::kBits || record.probe == ProbeKind::kDirect;
  const uint64_t bits = record.probe == ProbeKind::kBits ? 1 : 8 * record.width;
  std::vector<uint64_t> sectors;
  const size_t step = std::max<size_t>(1, q.tablets.size() / kRuns);
  for (size_t t = 0; t < q.tablets.size(); t += step) {
    const uint32_t first = q.tablets[t]->rows / 2, end = std::min(first + kRunRows, q.tablets[t]->rows);
    for (uint32_t row = first; row < end; ++row) {
      uint64_t number = 0;
      for (size_t k = 0; k < slots.size(); ++k) {
        const Chunk& c = *q.tablets[t]->chunks[slots[k]];
        uint64_t code = 0;
        if (c.codes != nullptr && c.width <= 8) memcpy(&code, c.codes + size_t{c.width} * row, c.width);
        const uint64_t value = static_cast<uint64_t>(Low64(c.base)) + code;
        number += (value - static_cast<uint64_t>(record.low[k])) * record.stride[k];
      }
      sectors.push_back(direct ? number * bits / (8 * 32) : number);
    }
  }
  const double rows = static_cast<double>(sectors.size());
  std::sort(sectors.begin(), sectors.end());
  sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
  return static_cast<double>(sectors.size()) / rows;
}

/// The join table whose probes gain most; -1: none gains.
int Choose(const ProbePartitionQuestion& q) {
  double rows = 0, row_bytes = 0, most = 0;
  const double compute = Compute(q.plan);
  for (const vm::TabletEncoding* t : q.tablets) rows += t->rows;
  const std::vector<uint32_t> widths = CodeWidths(q.tablets, q.section.slots.size());
  for (size_t i = 0; i < widths.size(); ++i) {
    if (q.lowered.slots.values[i] || q.lowered.slots.codes[i]) row_bytes += widths[i];
  }
  int choice = -1;
  for (const ProbeStep& l : ProbeSteps(q.section, q.lowered, q.plan, q.tablets, q.joins)) {
    const JoinRecord& record = q.plan.joins[l.join];
    const std::vector<uint32_t>& keys = q.lowered.joins.probe_slots[l.join];
    const bool numbers = std::all_of(keys.begin(), keys.end(), [&](uint32_t slot) {
      const SqlType& type = q.tablets[0]->chunks[slot]->type;
      return type.storage() == StorageClass::kInt;
    });
    if (keys.empty() || !numbers || record.probe == ProbeKind::kNestedLoop || record.hashed != 0) continue;
    const JoinShape& shape = *q.joins[l.join];
    const bool payload = shape.rows_by_slot && record.rows_in_values && q.lowered.joins.reads_cursors[l.join];
    const auto gain_if = [&](double spread) {
      return Gain(l, record, payload ? shape.payload.size() : 0, spread, compute, rows, row_bytes,
                  static_cast<double>(q.cache_bytes));
    };
    double gain = q.always ? l.live : gain_if(1);
    if (gain > most && !q.always) gain = gain_if(Spread(q, keys, record));
    if (gain <= most) continue;
    most = gain;
    choice = l.join;
  }
  return choice;
}

}  // namespace

bool MayOrder(vm::JoinPartitioning setting, const JoinRecord& record, uint64_t cache_bytes) {
  if (setting != vm::JoinPartitioning::kAuto) return setting == vm::JoinPartitioning::kOn;
  return static_cast<double>(ProbedBytes(record)) > static_cast<double>(cache_bytes) * kCacheShare;
}

void SetKeys(const JoinRecord& record, const std::vector<uint64_t>& first_values, RadixPartition* p) {
  const uint64_t wanted = std::bit_ceil(ProbedBytes(record) / kPartBytes);
  const uint64_t parts = std::clamp<uint64_t>(wanted, kLeastParts, kMostRadixParts);
  uint32_t bits = 64;  // of what is shifted
  if (record.probe == ProbeKind::kBits || record.probe == ProbeKind::kDirect)
    bits = static_cast<uint32_t>(std::bit_width(record.last));
  if (record.probe == ProbeKind::kHash32) bits = 32;
  const uint32_t part_bits = std::min(bits, static_cast<uint32_t>(std::countr_zero(parts)));
  p->key = {record.probe, bits - part_bits, 1u << part_bits};
  p->keys = static_cast<uint32_t>(first_values.size());
  p->number_add = 0;
  for (size_t k = 0; k < p->keys; ++k) {
    p->number_stride[k] = record.stride[k];
    p->number_add += (first_values[k] - static_cast<uint64_t>(record.low[k])) * record.stride[k];
  }
}

Result<ProbePartition> PlanProbePartition(const ProbePartitionQuestion& q) {
  ProbePartition none, p;
  p.join = Choose(q);
  if (p.join < 0) return none;
  const JoinRecord& record = q.plan.joins[static_cast<size_t>(p.join)];
  const size_t slots = q.section.slots.size(), tablets = q.tablets.size();
  p.slots = q.lowered.joins.probe_slots[static_cast<size_t>(p.join)];
  const size_t keys = p.slots.size();
  for (uint32_t i = 0; i < slots; ++i) {
    const bool key = std::find(p.slots.begin(), p.slots.end(), i) != p.slots.end();
    if (!key && (q.lowered.slots.values[i] || q.lowered.slots.codes[i])) p.slots.push_back(i);
  }
  if (p.slots.size() > kMostRadixColumns) return none;
  uint64_t rows = 0;
  RadixPartition& radix = p.radix;
  for (const vm::TabletEncoding* t : q.tablets) {
    rows += t->rows;
    p.first_tiles.push_back(radix.tiles);
    p.tablet_rows.push_back(t->rows);
    radix.tiles += (t->rows + kRadixTileRows - 1) / kRadixTileRows;
  }
  if (rows == 0 || rows > UINT32_MAX / 2) return none;
  radix.rows = static_cast<uint32_t>(rows);
  radix.sources = static_cast<uint32_t>(tablets);
  radix.columns = static_cast<uint32_t>(p.slots.size());
  p.chunks.resize(slots);
  p.sources.resize(tablets * p.slots.size());
  const uint64_t tile_rows = (rows + kTileRows - 1) / kTileRows * kTileRows;
  for (size_t c = 0; c < p.slots.size(); ++c) {
    ColumnUnion column(q, p.slots[c]);
    Chunk& chunk = p.chunks[p.slots[c]];
    if (!column.Find(&chunk)) return none;
    for (size_t t = 0; t < tablets; ++t) p.sources[t * p.slots.size() + c] = column.Source(t, chunk);
    p.bytes += tile_rows * chunk.width;
  }
  if (p.bytes > q.room) return none;
  std::vector<ChunkPointer> chunks;
  for (size_t i = 0; i < slots; ++i) {
    Chunk& chunk = p.chunks[i];
    if (chunk.width == 0) {  // it is not read
      chunk.type = q.tablets[0]->chunks[i]->type;
      chunk.rows = radix.rows;
      chunk.max = 0;
    }
    chunks.emplace_back(ChunkPointer(), &chunk);
  }
  TESSERA_ASSIGN(p.encoded, q.encoder.EncodeChunks(radix.rows, std::move(chunks), *q.tablets[0]));
  const bool by_row = std::any_of(p.encoded.predicates.begin(), p.encoded.predicates.end(),
                                  [](const vm::PredicateEncoding& b) { return b.by_row; });
  if (p.encoded.skip || by_row) return none;
  std::vector<uint64_t> first_values;
  for (size_t k = 0; k < keys; ++k) first_values.push_back(static_cast<uint64_t>(Low64(p.chunks[p.slots[k]].base)));
  SetKeys(record, first_values, &radix);
  return p;
}

std::string Describe(const ProbePartition& p) {
  return ", rows in " + std::to_string(p.radix.key.parts) + " partitions by the slots of t" + std::to_string(p.join);
}

}  // namespace tessera::kernels
