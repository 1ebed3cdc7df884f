// Columns to arrays.
#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/extension_type.h>

#include <cstring>

#include "base/int128.h"
#include "columnar/array_values.h"
#include "columnar/arrow_types.h"
#include "tablet/values/interval.h"

namespace tessera::columnar {
namespace {

using MadeArray = arrow::Result<std::shared_ptr<arrow::Array>>;

/// `append`: appends a row that is not NULL.
template <class Builder, class Append>
MadeArray Build(Builder* builder, const ColumnVector& column, size_t rows, const Append& append) {
  ARROW_RETURN_NOT_OK(builder->Reserve(static_cast<int64_t>(rows)));
  for (size_t row = 0; row < rows; ++row) {
    if (column.IsNull(row)) {
      ARROW_RETURN_NOT_OK(builder->AppendNull());
    } else {
      ARROW_RETURN_NOT_OK(append(row));
    }
  }
  return builder->Finish();
}

template <class Builder>
MadeArray Integers(Builder* builder, const ColumnVector& column, size_t rows) {
  return Build(builder, column, rows, [&](size_t row) {
    return builder->Append(static_cast<typename Builder::value_type>(column.fixed[row]));
  });
}

MadeArray Decimals(const std::shared_ptr<arrow::DataType>& type, const ColumnVector& column, size_t rows,
                   arrow::MemoryPool* pool) {
  arrow::Decimal128Builder builder(type, pool);
  const bool wide = column.type.storage() == StorageClass::kWide;
  return Build(&builder, column, rows, [&](size_t row) {
    const int128_t v = wide ? column.wide[row] : column.fixed[row];
    return builder.Append(arrow::Decimal128(static_cast<int64_t>(v >> 64), static_cast<uint64_t>(v)));
  });
}

MadeArray Uuids(const std::shared_ptr<arrow::DataType>& type, const ColumnVector& column, size_t rows,
                arrow::MemoryPool* pool) {
  arrow::FixedSizeBinaryBuilder builder(static_cast<const arrow::ExtensionType&>(*type).storage_type(), pool);
  ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::Array> bytes, Build(&builder, column, rows, [&](size_t row) {
                          const uint128_t v = static_cast<uint128_t>(column.wide[row]) ^ uint128_t { 1 } << 127;
                          uint8_t big_endian[16];
                          for (int i = 0; i < 16; ++i) big_endian[i] = static_cast<uint8_t>(v >> (120 - 8 * i));
                          return builder.Append(big_endian);
                        }));
  return arrow::ExtensionType::WrapArray(type, bytes);
}

MadeArray Intervals(const ColumnVector& column, size_t rows, arrow::MemoryPool* pool) {
  arrow::MonthDayNanoIntervalBuilder builder(pool);
  return Build(&builder, column, rows, [&](size_t row) -> arrow::Status {
    // The length of it all, with 30 days a month, tells the microseconds.
    const int128_t v = column.wide[row];
    const int64_t months =
        static_cast<int64_t>(static_cast<uint64_t>(v >> 26) & ((uint64_t{1} << 22) - 1)) - kMostMonths - 1;
    const int64_t days = static_cast<int64_t>(static_cast<uint64_t>(v) & ((uint64_t{1} << 26) - 1)) - kMostDays - 1;
    const int64_t micros = static_cast<int64_t>(LengthOfPacked(v) - LengthOf({months, days, 0}));
    int64_t nanos = 0;
    if (__builtin_mul_overflow(micros, int64_t{1000}, &nanos))
      return arrow::Status::Invalid("an interval is too long for Arrow's");
    return builder.Append({static_cast<int32_t>(months), static_cast<int32_t>(days), nanos});
  });
}

template <class Builder>
MadeArray Texts(Builder* builder, const ColumnVector& column, size_t rows) {
  ARROW_RETURN_NOT_OK(builder->ReserveData(static_cast<int64_t>(column.bytes.size())));
  return Build(builder, column, rows, [&](size_t row) { return builder->Append(column.Text(row)); });
}

template <class Builder>
MadeArray OfType(const std::shared_ptr<arrow::DataType>& type, const ColumnVector& column, size_t rows,
                 arrow::MemoryPool* pool) {
  Builder builder(type, pool);
  return Integers(&builder, column, rows);
}

}  // namespace

arrow::Result<std::shared_ptr<arrow::Array>> ArrayOf(const ColumnVector& column, size_t rows, arrow::MemoryPool* pool) {
  const std::shared_ptr<arrow::DataType> type = ArrowTypeOf(column.type);
  switch (column.type.id) {
    case TypeId::kNull:
      return std::make_shared<arrow::NullArray>(static_cast<int64_t>(rows));
    case TypeId::kBoolean: {
      arrow::BooleanBuilder builder(pool);
      return Build(&builder, column, rows, [&](size_t row) { return builder.Append(column.fixed[row] != 0); });
    }
    case TypeId::kSmallint:
      return OfType<arrow::Int16Builder>(type, column, rows, pool);
    case TypeId::kInteger:
      return OfType<arrow::Int32Builder>(type, column, rows, pool);
    case TypeId::kBigint:
      return OfType<arrow::Int64Builder>(type, column, rows, pool);
    case TypeId::kReal: {
      arrow::FloatBuilder builder(pool);
      return Build(&builder, column, rows,
                   [&](size_t row) { return builder.Append(static_cast<float>(column.Float(row))); });
    }
    case TypeId::kDouble: {
      arrow::DoubleBuilder builder(pool);
      return Build(&builder, column, rows, [&](size_t row) { return builder.Append(column.Float(row)); });
    }
    case TypeId::kDecimal:
      return Decimals(type, column, rows, pool);
    case TypeId::kDate:
      return OfType<arrow::Date32Builder>(type, column, rows, pool);
    case TypeId::kTimestamp:
    case TypeId::kTimestampTz:
      return OfType<arrow::TimestampBuilder>(type, column, rows, pool);
    case TypeId::kTime:
      return OfType<arrow::Time64Builder>(type, column, rows, pool);
    case TypeId::kInterval:
      return Intervals(column, rows, pool);
    case TypeId::kUuid:
      return Uuids(type, column, rows, pool);
    case TypeId::kBytea: {
      arrow::BinaryBuilder builder(pool);
      return Texts(&builder, column, rows);
    }
    case TypeId::kText:
    case TypeId::kEnum:
      break;
  }
  arrow::StringBuilder builder(pool);
  return Texts(&builder, column, rows);
}

}  // namespace tessera::columnar
