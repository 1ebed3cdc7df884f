// Estimates how many rows are live at each instruction of a section's code, from its tablets and join tables. Private
// to kernels/plan/; any thread.
//
// Start at: WalkLive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/plan/join_shape.h"
#include "kernels/plan/launch_code.h"
#include "kernels/plan/lower.h"
#include "vm/encode/section_encoder.h"

namespace tessera::kernels {

/// The fraction of rows that find a match, among those that passed the test of the table's key range.
inline double MatchSelectivity(const JoinShape& join) {
  return std::clamp(join.selectivity / join.range_selectivity, 0.0, 1.0);
}

/// The selectivity of each predicate of the section.
std::vector<double> PredicateSelectivities(const vm::Section& section,
                                           const std::vector<const vm::TabletEncoding*>& tablets,
                                           const std::vector<const JoinShape*>& joins);

/// Calls visit(instruction, fraction of rows that are live before it) in the order of the code.
template <class F>
void WalkLive(uint32_t mask_registers, const std::vector<DeviceInstruction>& code,
              const std::vector<double>& selectivities, const std::vector<const JoinShape*>& joins, F visit) {
  double live = 1;
  std::vector<double> masks(mask_registers, 1);
  for (const DeviceInstruction& d : code) {
    const size_t p1 = d.head.p1;
    visit(d, live);
    switch (vm::Info(d.head.op).shape) {
      case vm::Shape::Filter:
        live *= selectivities[p1];
        continue;
      case vm::Shape::MaskRegister:
        switch (d.head.op) {
          case Op::MaskSave:
            masks[p1] = live;
            break;
          case Op::MaskLoad:
            live = masks[p1];
            break;
          case Op::MaskClear:
            masks[p1] = 0;
            break;
          case Op::MaskOr:
            masks[p1] = std::min(1.0, masks[p1] + live);
            break;
          default:
            live = std::max(live / 4, live - masks[p1]);
            break;
        }
        continue;
      default:
        break;
    }
    const vm::Shape shape = vm::Info(d.head.op).shape;
    if (shape == vm::Shape::Compare || shape == vm::Shape::Test) live /= 2;  // a guess: nothing is known
    if (shape == vm::Shape::Probe && joins[p1] != nullptr) live *= MatchSelectivity(*joins[p1]);
  }
}

struct FirstUse {
  uint32_t slot;
  double live;  ///< fraction of rows that are live there
  bool waited;  ///< the rows come from a queue and have left the ring
};

/// Slots in the order of their first use, before and after the rows wait in a queue.
std::vector<FirstUse> FirstUses(const vm::Section& section, uint32_t mask_registers,
                                const std::vector<DeviceInstruction>& code, const std::vector<double>& selectivities,
                                const std::vector<const JoinShape*>& joins);

}  // namespace tessera::kernels
