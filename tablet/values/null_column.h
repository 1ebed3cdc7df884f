// A column without values: what a reader of files gives for one that nothing reads.
//
// Start at: SetNull. Any thread.
#pragma once

#include <cstddef>

#include "tablet/values/row_batch.h"

namespace tessera {

/// Makes it a column of as many NULLs, of the type that it has.
void SetNull(size_t rows, ColumnVector* column);

}  // namespace tessera
