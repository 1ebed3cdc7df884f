#include "session/kept_rows.h"

#include <algorithm>
#include <utility>

namespace tessera {

void KeepRows(const std::vector<bool>& kept, RowBatch* batch) {
  RowBatch out;
  for (const ColumnVector& from : batch->columns) {
    ColumnVector& to = out.columns.emplace_back();
    to.type = from.type;
    for (size_t row = 0; row < batch->rows; ++row) {
      if (kept[row]) to.AppendFrom(from, row);
    }
  }
  out.rows = static_cast<size_t>(std::ranges::count(kept, true));
  *batch = std::move(out);
}

}  // namespace tessera
