// One look at a unit of a product: can it hold a match? Shared by the kernels that list units and that launch them.
#pragma once

#include "kernels/machine.h"
#include "kernels/product_kernels.h"
#include "kernels/row_vectors.cuh"
#include "tablet/ordered_float.h"

namespace tessera::kernels {

/// Whether (tile, part) has to be run. Then `found` is what Launch::units holds for it; `pairs` of rows are in it.
__device__ __forceinline__ bool TryUnit(const UnitSearch& search, uint32_t tile, uint32_t part, uint32_t* found,
                                        unsigned long long* pairs) {
  const vm::Share share =
      vm::TryRanges(search.steps, search.count, search.outer.ranges + uint64_t{tile} * search.outer.columns,
                    search.inner.ranges + uint64_t{part} * search.inner.columns);
  if (share == vm::Share::kNone) return false;
  *found = tile * search.inner.pieces() + part;
  if (search.may_skip && share == vm::Share::kAll) *found |= kAllPairs;
  const uint32_t outer = min(search.outer.piece_rows, search.outer.rows - tile * search.outer.piece_rows);
  const uint32_t inner = min(search.inner.piece_rows, search.inner.rows - part * search.inner.piece_rows);
  *pairs = static_cast<unsigned long long>(outer) * inner;
  return true;
}

}  // namespace tessera::kernels
