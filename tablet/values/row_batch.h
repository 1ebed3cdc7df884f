// Rows on their way in (COPY, INSERT) and out (results): column vectors of decoded values.
//
// Start at: RowBatch, Value. Thread-compatible: one owner at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "tablet/values/time_zone.h"
#include "tablet/values/types.h"

namespace tessera {

/// One SQL value: a constant of a statement, a bound, a statistic.
struct Value {
  SqlType type;
  bool null = true;
  int64_t i64 = 0;    ///< StorageClass::kInt
  double f64 = 0;     ///< StorageClass::kFloat
  int128_t wide = 0;  ///< StorageClass::kWide
  std::string text;   ///< StorageClass::kText

  static Value Null(SqlType type) { return {type, true, 0, 0, 0, {}}; }
  static Value Int(SqlType type, int64_t v) { return {type, false, v, 0, 0, {}}; }
  static Value Float(SqlType type, double v) { return {type, false, 0, v, 0, {}}; }
  static Value Wide(SqlType type, int128_t v) { return {type, false, 0, 0, v, {}}; }
  static Value Text(std::string v) { return {SqlType::Text(), false, 0, 0, 0, std::move(v)}; }
};

/// A column of decoded values. Exactly one of `fixed`, `wide` and `bytes`/`offsets` is used, by type.storage().
struct ColumnVector {
  SqlType type;
  std::vector<uint8_t> null;       ///< 1 for NULL, one byte a row; empty if no row is NULL
  std::vector<int64_t> fixed;      ///< kInt: the value; kFloat: the bits of the double (std::bit_cast)
  std::vector<int128_t> wide;      ///< kWide
  std::vector<uint64_t> offsets;   ///< kText: rows + 1 offsets into `bytes`, the first is 0 (empty vector if no rows)
  std::string bytes;               ///< kText
  const TimeZone* zone = nullptr;  ///< in which TIMESTAMP WITH TIME ZONE is shown; nullptr: UTC

  bool IsNull(size_t row) const { return !null.empty() && null[row] != 0; }
  double Float(size_t row) const { return std::bit_cast<double>(fixed[row]); }
  std::string_view Text(size_t row) const {
    return std::string_view(bytes).substr(offsets[row], offsets[row + 1] - offsets[row]);
  }
  size_t size() const;
  void Append(const Value& v);
  /// Appends row `row` of `from`, a vector of the same storage class.
  void AppendFrom(const ColumnVector& from, size_t row);
  /// Appends all rows of `from`, a vector of the same storage class.
  void AppendAll(const ColumnVector& from);
  void Clear();
};

struct RowBatch {
  size_t rows = 0;
  std::vector<ColumnVector> columns;
};

/// Appends the value in row `row` as SQL text ("12.50", "1998-12-01", "t"/"f" as "true"/"false", shortest round trip
/// for floats, "NaN", "Infinity"). Nothing is appended for NULL.
void AppendText(const ColumnVector& column, size_t row, std::string* out);
std::string ToText(const Value& v, const TimeZone* zone = nullptr);

/// Parses `text` as a value of `type` as a literal or CSV field of it would be written; surrounding blanks are accepted
/// for all but TEXT. Errors: kSql, "invalid input syntax for type integer: "abc"", out of range, too long for
/// VARCHAR(n). `zone`: of a moment that does not say its own; nullptr: UTC.
Result<Value> ParseValue(std::string_view text, const SqlType& type, const TimeZone* zone = nullptr);

}  // namespace tessera
