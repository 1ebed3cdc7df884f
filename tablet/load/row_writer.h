// Files of rows on the way out, whatever their format: what COPY TO writes.
//
// Start at: RowWriter. One thread at a time.
#pragma once

#include "base/status.h"
#include "tablet/values/row_batch.h"

namespace tessera {

class RowWriter {
 public:
  virtual ~RowWriter() = default;
  virtual Status Append(const RowBatch& batch) = 0;
  /// The file appears under its name when this succeeds, and not without it.
  virtual Status Close() = 0;
};

}  // namespace tessera
