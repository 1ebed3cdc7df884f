#include "columnar/arrow_types.h"

#include <arrow/extension/uuid.h>
#include <arrow/extension_type.h>
#include <arrow/type_traits.h>

namespace tessera::columnar {
namespace {

/// TypeId::kNull: there is none.
SqlType SqlTypeOf(const arrow::DataType& type) {
  using arrow::Type;
  switch (type.id()) {
    case Type::BOOL:
      return SqlType::Of(TypeId::kBoolean);
    case Type::INT8:
    case Type::UINT8:
    case Type::INT16:
      return SqlType::Of(TypeId::kSmallint);
    case Type::UINT16:
    case Type::INT32:
      return SqlType::Of(TypeId::kInteger);
    case Type::UINT32:
    case Type::INT64:
    case Type::UINT64:
      return SqlType::Of(TypeId::kBigint);
    case Type::HALF_FLOAT:
    case Type::FLOAT:
      return SqlType::Of(TypeId::kReal);
    case Type::DOUBLE:
      return SqlType::Of(TypeId::kDouble);
    case Type::DECIMAL32:
    case Type::DECIMAL64:
    case Type::DECIMAL128:
    case Type::DECIMAL256: {
      const auto& decimal = static_cast<const arrow::DecimalType&>(type);
      const bool fits = decimal.precision() >= 1 && decimal.precision() <= 38 && decimal.scale() >= 0 &&
                        decimal.scale() <= decimal.precision();
      return fits ? SqlType::Decimal(decimal.precision(), decimal.scale()) : SqlType();
    }
    case Type::DATE32:
    case Type::DATE64:
      return SqlType::Of(TypeId::kDate);
    case Type::TIMESTAMP: {
      const bool has_zone = !static_cast<const arrow::TimestampType&>(type).timezone().empty();
      return SqlType::Of(has_zone ? TypeId::kTimestampTz : TypeId::kTimestamp);
    }
    case Type::TIME32:
    case Type::TIME64:
      return SqlType::Of(TypeId::kTime);
    case Type::INTERVAL_MONTHS:
    case Type::INTERVAL_DAY_TIME:
    case Type::INTERVAL_MONTH_DAY_NANO:
    case Type::DURATION:
      return SqlType::Of(TypeId::kInterval);
    case Type::STRING:
    case Type::LARGE_STRING:
    case Type::STRING_VIEW:
    case Type::NA:
      return SqlType::Text();
    case Type::BINARY:
    case Type::LARGE_BINARY:
    case Type::BINARY_VIEW:
    case Type::FIXED_SIZE_BINARY:
      return SqlType::Of(TypeId::kBytea);
    case Type::DICTIONARY:
      return SqlTypeOf(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case Type::EXTENSION: {
      const auto& extension = static_cast<const arrow::ExtensionType&>(type);
      if (extension.extension_name() == "arrow.uuid") return SqlType::Of(TypeId::kUuid);
      return SqlTypeOf(*extension.storage_type());
    }
    default:  // nested ones, and those of no table
      return SqlType();
  }
}

}  // namespace

ColumnarField FieldOf(const arrow::Field& field) {
  ColumnarField out{field.name(), SqlTypeOf(*field.type()), "", -1};
  if (out.type.id != TypeId::kNull) return out;
  out.type = SqlType::Text();
  const std::string type = field.type()->ToString();
  if (arrow::is_decimal(field.type()->id())) {
    out.problem = "numbers of type " + type + " are not supported: DECIMAL has 1 to 38 digits";
  } else if (field.type()->num_fields() > 0) {
    out.problem = "nested values (" + type + ") are not supported";
  } else {
    out.problem = "values of type " + type + " are not supported";
  }
  return out;
}

std::shared_ptr<arrow::DataType> ArrowTypeOf(const SqlType& type) {
  switch (type.id) {
    case TypeId::kNull:
      return arrow::null();
    case TypeId::kBoolean:
      return arrow::boolean();
    case TypeId::kSmallint:
      return arrow::int16();
    case TypeId::kInteger:
      return arrow::int32();
    case TypeId::kBigint:
      return arrow::int64();
    case TypeId::kReal:
      return arrow::float32();
    case TypeId::kDouble:
      return arrow::float64();
    case TypeId::kDecimal:
      return arrow::decimal128(type.precision, type.scale);
    case TypeId::kDate:
      return arrow::date32();
    case TypeId::kTimestamp:
      return arrow::timestamp(arrow::TimeUnit::MICRO);
    case TypeId::kTimestampTz:
      return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    case TypeId::kTime:
      return arrow::time64(arrow::TimeUnit::MICRO);
    case TypeId::kInterval:
      return arrow::month_day_nano_interval();
    case TypeId::kUuid:
      return arrow::extension::uuid();
    case TypeId::kBytea:
      return arrow::binary();
    case TypeId::kText:
    case TypeId::kEnum:  // (labels, which come as texts)
      break;
  }
  return arrow::utf8();
}

}  // namespace tessera::columnar
