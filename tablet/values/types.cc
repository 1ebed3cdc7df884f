// How a type is spelled, and the ENUM that it is.
#include "tablet/values/types.h"

#include "tablet/values/enum_type.h"

namespace tessera {

std::string SqlType::ToString() const {
  switch (id) {
    case TypeId::kNull:
      return "NULL";
    case TypeId::kBoolean:
      return "BOOLEAN";
    case TypeId::kSmallint:
      return "SMALLINT";
    case TypeId::kInteger:
      return "INTEGER";
    case TypeId::kBigint:
      return "BIGINT";
    case TypeId::kReal:
      return "REAL";
    case TypeId::kDouble:
      return "DOUBLE PRECISION";
    case TypeId::kDecimal:
      return "DECIMAL(" + std::to_string(precision) + "," + std::to_string(scale) + ")";
    case TypeId::kDate:
      return "DATE";
    case TypeId::kTimestamp:
      return "TIMESTAMP";
    case TypeId::kText:
      if (precision != 0) {  // an array: array_type.h
        const auto element = static_cast<TypeId>(precision - 1);
        return (element == TypeId::kDecimal ? "DECIMAL" : Of(element).ToString()) + "[]";
      }
      return length > 0 ? "VARCHAR(" + std::to_string(length) + ")" : "TEXT";
    case TypeId::kInterval:
      return "INTERVAL";
    case TypeId::kTime:
      return "TIME";
    case TypeId::kUuid:
      return "UUID";
    case TypeId::kTimestampTz:
      return "TIMESTAMP WITH TIME ZONE";
    case TypeId::kBytea:
      return "BYTEA";
    case TypeId::kEnum:
      return EnumOf(*this).name;
  }
  return "?";
}

const EnumType& EnumOf(const SqlType& type) { return EnumOfNumber(type.id == TypeId::kEnum ? type.length : 0); }

SqlType EnumSqlType(const EnumType& type) { return {TypeId::kEnum, 0, 0, EnumNumber(type)}; }

}  // namespace tessera
