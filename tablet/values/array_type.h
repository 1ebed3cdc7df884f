// Types of arrays. An array is a TEXT in PostgreSQL's form, {1,2,NULL}; where the type of its elements is known, the
// SqlType says so: `precision` is one more than their TypeId, and `scale` that of DECIMALs. Tables do not store it: there
// an array is a TEXT.
//
// Start at: ArrayOf, ElementOf. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "tablet/values/types.h"

namespace tessera {

/// Whether it is an array of elements whose type is known.
inline bool IsArrayType(const SqlType& type) { return type.id == TypeId::kText && type.precision != 0; }

/// An array of such elements; TEXT if they have no type or are of an ENUM.
inline SqlType ArrayOf(const SqlType& element) {
  SqlType type = SqlType::Text();
  if (element.id == TypeId::kNull || element.id == TypeId::kEnum || IsArrayType(element)) return type;
  type.precision = static_cast<uint8_t>(static_cast<int>(element.id) + 1);
  type.scale = element.id == TypeId::kDecimal ? element.scale : uint8_t{0};
  return type;
}

/// A vector of pg_catalog, as 1 2: an array of integers that begins with element 0, and is written without braces.
inline SqlType VectorOf(TypeId element) {
  SqlType type = ArrayOf(SqlType::Of(element));
  type.scale = 1;
  return type;
}
inline bool IsVectorType(const SqlType& type) {
  return IsArrayType(type) && type.scale == 1 && type.precision != static_cast<int>(TypeId::kDecimal) + 1;
}

/// oid[], whose elements clients send and take as 32 bits; here they are BIGINTs.
inline SqlType OidArray() {
  SqlType type = ArrayOf(SqlType::Of(TypeId::kBigint));
  type.scale = 2;
  return type;
}

/// The type of its elements; DECIMALs have all digits. REQUIRES: IsArrayType().
inline SqlType ElementOf(const SqlType& array) {
  const auto id = static_cast<TypeId>(array.precision - 1);
  return id == TypeId::kDecimal ? SqlType::Decimal(38, array.scale) : SqlType::Of(id);
}

/// The type as a table stores it.
inline SqlType StoredType(const SqlType& type) { return IsArrayType(type) ? SqlType::Text() : type; }

}  // namespace tessera
