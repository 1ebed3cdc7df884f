#include "tablet/values/null_column.h"

namespace tessera {

void SetNull(size_t rows, ColumnVector* column) {
  column->null.assign(rows, 1);
  switch (column->type.storage()) {
    case StorageClass::kInt:
    case StorageClass::kFloat:
      column->fixed.assign(rows, 0);
      break;
    case StorageClass::kWide:
      column->wide.assign(rows, 0);
      break;
    case StorageClass::kText:
      column->offsets.assign(rows + 1, 0);
      break;
  }
}

}  // namespace tessera
