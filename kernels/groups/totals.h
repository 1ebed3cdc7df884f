// The aggregates of a section without GROUP BY: partial states of blocks, added up on the host. Private to kernels/.
//
// Start at: Totals::Merge, Rows.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/launch/sinks.h"
#include "kernels/plan/lower.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {

class Totals {
 public:
  Totals(const vm::Section& section, const LoweredProgram& lowered);
  /// Adds `partials`, which are [block][aggregate]. Errors: a sum that does not fit.
  Status Merge(const Partial* partials, uint32_t blocks);
  /// One row of final values.
  vm::RowSet Rows() const;

 private:
  const vm::Section& section_;
  std::vector<Partial> totals_;   ///< as a block's
  std::vector<uint32_t> firsts_;  ///< per aggregate: where its own begin
};

}  // namespace tessera::kernels
