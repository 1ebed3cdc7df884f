// Which units of a grid can hold a match: how the host starts the kernels that find out. Private to kernels/.
//
// Start at: StartRanges, StartListUnits.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/launch/unit_search.h"
#include "kernels/rows/sort_rows.h"

namespace tessera::kernels {

/// Fills in `ranges` of the pieces of `rows`.
cudaError_t StartRanges(const RowColumns& rows, const PieceRanges& pieces, cudaStream_t stream);
/// Lists or counts the units that can hold a match. REQUIRES: the ranges of both sides are there, or on their way on
/// this stream.
cudaError_t StartListUnits(const UnitSearch& search, cudaStream_t stream);

}  // namespace tessera::kernels
