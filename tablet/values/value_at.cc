#include "tablet/values/value_at.h"

#include <string>
#include <utility>

namespace tessera {

Value ValueAt(const ColumnVector& column, size_t row, const SqlType& type) {
  if (column.IsNull(row)) return Value::Null(type);
  switch (type.storage()) {
    case StorageClass::kFloat:
      return Value::Float(type, column.Float(row));
    case StorageClass::kWide:
      return Value::Wide(type, column.wide[row]);
    case StorageClass::kText: {
      Value text = Value::Text(std::string(column.Text(row)));
      text.type = type;
      return text;
    }
    case StorageClass::kInt:
      break;
  }
  return Value::Int(type, column.fixed[row]);
}

}  // namespace tessera
