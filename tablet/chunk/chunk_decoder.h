// Encoded chunks back to column vectors and values: for refilling a table's last tablet, key checks and tests.
//
// Start at: DecodeChunk. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "tablet/chunk/chunk.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// Appends rows [begin, begin + rows) of a verified chunk to `out`, whose type is the chunk's.
void DecodeChunk(const Chunk& chunk, uint32_t begin, uint32_t rows, ColumnVector* out);

/// One row. REQUIRES: row < chunk.rows.
Value DecodeValue(const Chunk& chunk, uint32_t row);

/// The code of a row; row number for kPlain, 0 for kConstant. REQUIRES: chunk.width <= 8.
uint64_t CodeAt(const Chunk& chunk, uint32_t row);

bool IsNullAt(const Chunk& chunk, uint32_t row);

}  // namespace tessera
