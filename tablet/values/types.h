// SQL types as they are stored: what a column is, and which machine class its values have.
//
// Start at: SqlType, StorageClass.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

struct EnumType;

enum class TypeId : uint8_t {
  kNull,         ///< the type of a bare NULL before the binder gives it one; never stored
  kBoolean,      ///< 0 or 1
  kSmallint,     ///< 16 bits
  kInteger,      ///< 32 bits
  kBigint,       ///< 64 bits
  kReal,         ///< IEEE single; in registers a double that holds a single's value
  kDouble,       ///< IEEE double
  kDecimal,      ///< DECIMAL(precision, scale): the integer value * 10^scale
  kDate,         ///< days since 1970-01-01 (proleptic Gregorian)
  kTimestamp,    ///< microseconds since 1970-01-01 00:00:00, no time zone
  kText,         ///< bytes of UTF-8; VARCHAR(n) and CHAR(n) are TEXT with a greatest length
  kInterval,     ///< 128 bits: its length, then months and days (tablet/values/interval.h)
  kTime,         ///< microseconds since midnight, below those of a day
  kUuid,         ///< 128 bits, the highest one inverted: signed numbers are in the order of the unsigned bytes
  kTimestampTz,  ///< TIMESTAMP WITH TIME ZONE: a moment, microseconds since 1970-01-01 00:00:00 UTC
  kBytea,        ///< any bytes
  kEnum,         ///< the place of a label (tablet/values/enum_type.h)
};

/// How the machine holds a value. One accumulator and one kind of register for each of 64 and 128 bits.
enum class StorageClass : uint8_t {
  kInt,  ///< int64_t: BOOLEAN, SMALLINT, INTEGER, BIGINT, DATE, TIMESTAMP with and without zone, TIME, ENUM, DECIMAL to 18 digits
  kFloat,  ///< double: REAL, DOUBLE PRECISION
  kWide,   ///< int128_t: DECIMAL of 19 to 38 digits, exact sums, UUID, INTERVAL
  kText,  ///< TEXT and BYTEA: bytes in a chunk; in a register the int64_t identifier that the query's string pool gave them
};

struct SqlType {
  TypeId id = TypeId::kNull;
  uint8_t precision = 0;  ///< DECIMAL: 1..38; an array: see array_type.h; else 0
  uint8_t scale = 0;      ///< DECIMAL: 0..precision, else 0
  int32_t length =
      0;  ///< TEXT: greatest length in characters (VARCHAR(n), CHAR(n)); 0 if unlimited. ENUM: the type's number

  friend bool operator==(const SqlType&, const SqlType&) = default;

  StorageClass storage() const {
    switch (id) {
      case TypeId::kReal:
      case TypeId::kDouble:
        return StorageClass::kFloat;
      case TypeId::kText:
      case TypeId::kBytea:
        return StorageClass::kText;
      case TypeId::kDecimal:
        return precision > 18 ? StorageClass::kWide : StorageClass::kInt;
      case TypeId::kUuid:
      case TypeId::kInterval:
        return StorageClass::kWide;
      default:
        return StorageClass::kInt;
    }
  }
  bool IsInteger() const { return id == TypeId::kSmallint || id == TypeId::kInteger || id == TypeId::kBigint; }
  bool IsFloat() const { return id == TypeId::kReal || id == TypeId::kDouble; }
  bool IsNumeric() const { return IsInteger() || IsFloat() || id == TypeId::kDecimal; }

  bool IsTimestamp() const { return id == TypeId::kTimestamp || id == TypeId::kTimestampTz; }
  /// Whether its values stand in quotes: as literals, in EXPLAIN, in JSON.
  bool IsQuoted() const { return !IsNumeric() && id != TypeId::kBoolean; }

  /// As SQL spells it: "DECIMAL(12,2)", "VARCHAR(10)", "DOUBLE PRECISION".
  std::string ToString() const;

  static SqlType Of(TypeId id) { return {id, 0, 0, 0}; }
  static SqlType Decimal(int precision, int scale) {
    return {TypeId::kDecimal, static_cast<uint8_t>(precision), static_cast<uint8_t>(scale), 0};
  }
  static SqlType Text(int length = 0) { return {TypeId::kText, 0, 0, length}; }
};

/// Whether the machine holds values of the type in 128 bits.
inline bool IsWide(const SqlType& t) { return t.storage() == StorageClass::kWide; }

/// What the type has of CREATE TYPE, see enum_type.h; one without a name if it is no ENUM.
const EnumType& EnumOf(const SqlType& type);
SqlType EnumSqlType(const EnumType& type);

/// The `length` of a type where it is stored: numbers of ENUMs are the process's own.
inline int32_t StoredLength(const SqlType& type) { return type.id == TypeId::kEnum ? 0 : type.length; }

}  // namespace tessera
