#include "kernels/plan/filter_order.h"

#include <algorithm>

#include "kernels/plan/launch_code.h"
#include "kernels/plan/selectivity.h"

namespace tessera::kernels {

using vm::Section;

namespace {

/// Rough costs per row; reading a byte of a staged column costs 1. An H100 reads some 2,000 G random bits a second in
/// shared memory, 200 G values in L2, 40 G in device memory.
constexpr double kFilterCost = 0.7, kSharedProbeCost = 1.5, kCachedProbeCost = 15, kFarProbeCost = 60;
constexpr uint64_t kCachedBytes = uint64_t{24} << 20;
/// Greatest size of a block's copies of bitmaps, in bytes. Beyond this, the occupancy lost outweighs the saving.
constexpr uint32_t kMaxSharedBits = 24 << 10;
/// A bitmap that is not in shared memory is tested only if it saves most accesses to a large table.
constexpr double kSparse = 0.5;
/// A test of the key range that more than this fraction of rows pass is dropped: the probe does it anyway.
constexpr double kUselessRange = 0.5;

/// Rows wait in a queue where at most this fraction of the rows before is left.
constexpr double kFewRows = 0.35;
/// ... or this one, if the program goes on with at least this many instructions that could read staged columns.
constexpr double kVeryFewRows = 0.15;
constexpr size_t kManyInstructions = 6;

uint64_t ValueBytes(const JoinRecord& r) {
  switch (r.probe) {
    case ProbeKind::kDirect:
      return (r.last + 1) * r.width;
    case ProbeKind::kHash32:
      return (uint64_t{r.slot_mask} + 1) * 8;
    case ProbeKind::kHash64:
      return (uint64_t{r.slot_mask} + 1) * 16;
    default:
      return 0;
  }
}

}  // namespace

std::vector<JoinRecord> PlanJoins(const std::vector<DeviceInstruction>& code,
                                  const std::vector<const JoinShape*>& joins) {
  std::vector<JoinRecord> records(joins.size());
  std::vector<size_t> small;
  std::vector<bool> probed(joins.size());
  for (const DeviceInstruction& d : code) {
    if (Probes(d)) probed[d.head.p1] = true;
  }
  for (size_t j = 0; j < joins.size(); ++j) {
    if (!probed[j]) continue;
    JoinRecord& r = records[j] = joins[j]->record;
    if (r.bits == nullptr) continue;
    const bool only_bits = r.probe == ProbeKind::kBits;
    if (only_bits || MatchSelectivity(*joins[j]) < kSparse) small.push_back(j);
    if (!only_bits && (joins[j]->selectivity > kSparse || ValueBytes(r) < kCachedBytes)) r.bits = nullptr;
  }
  std::stable_sort(small.begin(), small.end(),
                   [&](size_t a, size_t b) { return joins[a]->record.bits_bytes < joins[b]->record.bits_bytes; });
  uint32_t bytes = 0;
  for (size_t j : small) {
    const JoinRecord& r = joins[j]->record;
    if (bytes + r.bits_bytes > kMaxSharedBits) break;
    bytes += r.bits_bytes;
    records[j].bits = r.bits;
    records[j].shared_bits = 0;  // the layout sets its offset
  }
  return records;
}

double OrderFilters(const Section& section, const std::vector<double>& selectivities,
                    const std::vector<uint32_t>& widths, const std::vector<const JoinShape*>& joins,
                    const std::vector<JoinRecord>& records, bool queue, std::vector<DeviceInstruction>* code) {
  struct Item {
    DeviceInstruction instruction;
    double rank, selectivity;
  };
  std::vector<Item> items;
  size_t end = 0;
  const DeviceInstruction* skip = nullptr;
  for (; end < code->size(); ++end) {
    const DeviceInstruction& d = (*code)[end];
    const size_t p1 = d.head.p1;
    double cost = 0, selectivity = 1;
    if (d.head.op == Op::SkipIfNone) {
      if (skip != nullptr && skip->p3 != d.p3) break;
      skip = &d;
      continue;
    }
    if (d.head.op == Op::Filter) {
      selectivity = selectivities[p1];
      cost = kFilterCost + widths[static_cast<size_t>(section.predicates[p1].slot)];
      const vm::Predicate& p = section.predicates[p1];
      if (p.kind == vm::Predicate::Kind::kKeyRange && selectivity > kUselessRange) continue;
    } else if (d.head.op == Op::Probe && d.head.source == OperandSource::kSlot && records[p1].next == nullptr) {
      selectivity = MatchSelectivity(*joins[p1]);
      const JoinRecord& r = records[p1];
      cost = widths[d.head.slot];
      if (r.shared_bits != kNowhere) cost += kSharedProbeCost;
      if (r.shared_bits == kNowhere || r.probe != ProbeKind::kBits) {
        const uint64_t bytes = ProbedBytes(r);
        cost +=
            (bytes < kCachedBytes ? kCachedProbeCost : kFarProbeCost) * (r.shared_bits != kNowhere ? selectivity : 1);
      }
    } else {
      break;
    }
    items.push_back({d, cost / std::max(1 - selectivity, 1e-3), selectivity});
  }
  double live = 1;
  DeviceInstruction to_end;
  if (skip == nullptr) {
    for (const Item& i : items) live *= i.selectivity;
    if (!queue || live > kVeryFewRows || code->size() - end < kManyInstructions) return live;
    to_end = code->back();
    to_end.p3 = static_cast<int32_t>(to_end.address);
    to_end.head.op = Op::SkipIfNone;
    to_end.address = items.back().instruction.address;
    skip = &to_end;
    live = 1;
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.rank < b.rank; });
  std::vector<DeviceInstruction> out;
  uint32_t queues = 0;
  double most = kFewRows;
  size_t probes = 0;
  auto skip_or_queue = [&] {
    out.push_back(*skip);
    if (!queue || live > most || queues == kQueues || probes > kMaxCarried) return;
    out.back().head.p1 = 1;
    ++queues;
    most = live * kFewRows;
  };
  for (const Item& i : items) {
    if (!out.empty() && i.instruction.head.op == Op::Probe) skip_or_queue();
    out.push_back(i.instruction);
    probes += i.instruction.head.op == Op::Probe ? 1 : 0;
    live *= i.selectivity;
  }
  skip_or_queue();
  out.insert(out.end(), code->begin() + static_cast<std::ptrdiff_t>(end), code->end());
  *code = std::move(out);
  return live;
}

std::vector<uint32_t> CodeWidths(const std::vector<const vm::TabletEncoding*>& tablets, size_t slots) {
  std::vector<uint32_t> widths(slots);
  for (const vm::TabletEncoding* t : tablets) {
    // Predicates read the chunk's codes, instructions the slot's: row numbers, where a text is only handed on.
    for (size_t i = 0; i < slots; ++i)
      widths[i] = std::max<uint32_t>({widths[i], t->chunks[i]->width, t->slots[i].width});
  }
  return widths;
}

uint64_t ProbedBytes(const JoinRecord& record) {
  return record.probe == ProbeKind::kBits ? record.bits_bytes : ValueBytes(record);
}

}  // namespace tessera::kernels
