#include "kernels/plan/selectivity.h"

#include <cmath>

namespace tessera::kernels {

using vm::Section;
using vm::Shape;

namespace {

/// Number of tablets from whose predicates selectivities are estimated.
constexpr size_t kSampledTablets = 16;

/// The fraction of a tablet's rows that pass a predicate, if values are spread evenly.
double PassingShare(const vm::PredicateEncoding& p, const Chunk& chunk) {
  using Kind = vm::PredicateEncoding::Kind;
  const double values = std::max(1.0, static_cast<double>(chunk.max) - static_cast<double>(chunk.min) + 1);
  double selectivity = 1;
  switch (p.kind) {
    case Kind::kAll:
      return 1;
    case Kind::kNone:
      return 0;
    case Kind::kRange:
      selectivity = (static_cast<double>(p.span_high) * 0x1p64 + static_cast<double>(p.span) + 1) / values;
      if (p.negated) selectivity = 1 - selectivity;
      break;
    case Kind::kSet: {
      if (p.on_device) return static_cast<double>(p.share);
      const uint64_t n =
          p.by_row
              ? std::min<uint64_t>(chunk.rows, 4096)
              : std::min<uint64_t>(
                    chunk.type.storage() == StorageClass::kText ? chunk.entries : static_cast<uint64_t>(values), 65536);
      selectivity = static_cast<double>(std::count_if(p.set, p.set + n, [](uint8_t b) { return b != 0; })) /
                    static_cast<double>(std::max<uint64_t>(n, 1));
      break;
    }
    case Kind::kNulls:
      selectivity = static_cast<double>(chunk.null_count) / static_cast<double>(std::max<uint32_t>(chunk.rows, 1));
      if (p.negated) selectivity = 1 - selectivity;
      break;
  }
  return std::clamp(selectivity, 0.0, 1.0);
}

}  // namespace

std::vector<double> PredicateSelectivities(const Section& section,
                                           const std::vector<const vm::TabletEncoding*>& tablets,
                                           const std::vector<const JoinShape*>& joins) {
  std::vector<double> selectivities(section.predicates.size(), 0);
  const size_t step = std::max<size_t>(1, tablets.size() / kSampledTablets);
  size_t sampled = 0;
  for (size_t t = 0; t < tablets.size(); t += step, ++sampled) {
    for (size_t i = 0; i < selectivities.size(); ++i) {
      selectivities[i] +=
          PassingShare(tablets[t]->predicates[i], *tablets[t]->chunks[static_cast<size_t>(section.predicates[i].slot)]);
    }
  }
  for (size_t i = 0; i < selectivities.size(); ++i) {
    selectivities[i] /= static_cast<double>(std::max<size_t>(sampled, 1));
    // Keys may lie far apart, for instance dates written as numbers. The join table's estimate is better.
    const vm::Predicate& p = section.predicates[i];
    if (p.kind == vm::Predicate::Kind::kKeyRange && joins[static_cast<size_t>(p.join)] != nullptr)
      selectivities[i] = joins[static_cast<size_t>(p.join)]->range_selectivity;
  }
  return selectivities;
}

std::vector<FirstUse> FirstUses(const Section& section, uint32_t mask_registers,
                                const std::vector<DeviceInstruction>& code, const std::vector<double>& selectivities,
                                const std::vector<const JoinShape*>& joins) {
  std::vector<FirstUse> uses;
  std::vector<bool> used(section.slots.size());
  bool waited = false;
  WalkLive(mask_registers, code, selectivities, joins, [&](const DeviceInstruction& d, double live) {
    const auto use = [&](uint32_t slot) {
      if (!used[slot]) uses.push_back({slot, live, waited});
      used[slot] = true;
    };
    if (QueuesRows(d) && !waited) {
      waited = true;
      used.assign(used.size(), false);
    }
    if (vm::Info(d.head.op).shape == Shape::Filter) use(static_cast<uint32_t>(section.predicates[d.head.p1].slot));
    if (d.head.source == OperandSource::kSlot || d.head.wide_source == OperandSource::kSlot) use(d.head.slot);
    if (HasSecond(d.head.op) && SecondOf(d).source == OperandSource::kSlot) use(SecondOf(d).slot);
  });
  return uses;
}

}  // namespace tessera::kernels
