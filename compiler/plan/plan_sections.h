// Which sections of a program do what a plan says. Private to compiler/: code generation notes it, EXPLAIN shows it.
//
// Start at: PlanSections. Plain data.
#pragma once

#include <map>
#include <utility>

#include "compiler/plan/plan.h"

namespace tessera {

struct PlanSections {
  /// Parts of a block that are sections of their own.
  enum class Part {
    kPipeline,  ///< scans the driver and joins
    kGroups,    ///< makes the groups; the pipeline itself, unless aggregates are DISTINCT
    kAbove,     ///< HAVING and the outputs of groups
    kDistinct,
    kRows,     ///< the block's rows: in order, and up to the limit
    kWindows,  ///< values of windows from their states
  };

  std::map<std::pair<const Plan*, Part>, int> of_block;
  std::map<const JoinStep*, int> of_side;                ///< fills its join table
  std::map<std::pair<const Plan*, int>, int> of_stored;  ///< by the relation that drives their pipeline

  /// Calls f(int*) for each number.
  template <class F>
  void ForEach(F f) {
    for (auto& [part, section] : of_block) f(&section);
    for (auto& [side, section] : of_side) f(&section);
    for (auto& [driver, section] : of_stored) f(&section);
  }
};

}  // namespace tessera
