#include "columnar/parquet_numbers.h"

#include <parquet/column_reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>
#include <parquet/types.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace tessera::columnar {
namespace {

/// Rows that are decoded at a time: they stay in the first cache.
constexpr int64_t kBatchRows = 2048;

bool IsInMicroseconds(const parquet::LogicalType& logical) {
  constexpr auto kMicros = parquet::LogicalType::TimeUnit::MICROS;
  if (logical.is_timestamp()) return static_cast<const parquet::TimestampLogicalType&>(logical).time_unit() == kMicros;
  return logical.is_time() && static_cast<const parquet::TimeLogicalType&>(logical).time_unit() == kMicros;
}

/// Whether the stored numbers are those of the SQL type.
bool AreNumbersOf(const parquet::ColumnDescriptor& column, const SqlType& type) {
  if (column.max_repetition_level() > 0 || column.max_definition_level() > 1) return false;
  const parquet::LogicalType& logical = *column.logical_type();
  const bool is_long = column.physical_type() == parquet::Type::INT64;
  if (!is_long && column.physical_type() != parquet::Type::INT32) return false;
  const bool is_plain = logical.is_none() || (logical.is_int() && column.sort_order() == parquet::SortOrder::SIGNED);
  if (type.id == TypeId::kBigint) return is_long && is_plain;
  if (type.id == TypeId::kInteger) return !is_long && is_plain;
  if (type.id == TypeId::kDate) return !is_long && logical.is_date();
  if (type.id == TypeId::kDecimal)
    return logical.is_decimal() && type.precision <= 18 && column.type_scale() == type.scale;
  return (type.IsTimestamp() || type.id == TypeId::kTime) && is_long && IsInMicroseconds(logical);
}

/// Puts `count` of `rows` values, the others of which are NULL, to their rows. Of NULLs there is 0.
void Spread(const std::vector<int16_t>& levels, int64_t rows, int64_t count, int64_t* values, uint8_t* null) {
  for (int64_t row = rows; row-- > 0;) {
    const bool is_null = levels[static_cast<size_t>(row)] == 0;
    values[row] = is_null ? 0 : values[--count];
    null[row] = is_null ? 1 : 0;
  }
}

/// false: there are not as many values as rows.
template <class Reader>
bool ReadAll(Reader* column, bool has_levels, int64_t rows, ColumnVector* out) {
  using Number = typename Reader::T;
  out->fixed.resize(static_cast<size_t>(rows));
  std::vector<int16_t> levels(has_levels ? kBatchRows : 0);
  std::vector<Number> narrow(std::is_same_v<Number, int64_t> ? 0 : kBatchRows);
  for (int64_t at = 0; at < rows;) {
    int64_t* const to = out->fixed.data() + at;
    int64_t found = 0, got = 0;
    const int64_t wanted = std::min(kBatchRows, rows - at);
    int16_t* const level = has_levels ? levels.data() : nullptr;
    if constexpr (std::is_same_v<Number, int64_t>) {
      got = column->ReadBatch(wanted, level, nullptr, to, &found);
    } else {
      got = column->ReadBatch(wanted, level, nullptr, narrow.data(), &found);
      std::copy_n(narrow.data(), found, to);
    }
    if (got == 0) return false;
    if (found < got) {
      if (out->null.empty()) out->null.resize(static_cast<size_t>(rows));
      Spread(levels, got, found, to, out->null.data() + at);
    }
    at += got;
  }
  return !column->HasNext();
}

template <class Reader, class Code>
bool ReadCodes(Reader* column, bool has_levels, int64_t rows, const CodesWanted& codes) {
  using Number = typename Reader::T;
  std::vector<int16_t> levels(has_levels ? kBatchRows : 0);
  std::vector<Number> values(kBatchRows);
  Code* to = reinterpret_cast<Code*>(codes.to);
  const auto base = static_cast<uint64_t>(codes.base);
  for (int64_t at = 0; at < rows;) {
    int64_t found = 0;
    const int64_t got = column->ReadBatch(std::min(kBatchRows, rows - at), has_levels ? levels.data() : nullptr,
                                          nullptr, values.data(), &found);
    if (got == 0 || found < got) return false;
    bool fits = true;
    for (int64_t i = 0; i < got; ++i) {
      const uint64_t code = static_cast<uint64_t>(int64_t{values[static_cast<size_t>(i)]}) - base;
      fits &= code <= codes.span;
      to[i] = static_cast<Code>(code);
    }
    if (!fits) return false;
    at += got;
    to += got;
  }
  return !column->HasNext();
}

template <class Reader>
bool ReadCodesOf(parquet::ColumnReader* column, bool has_levels, int64_t rows, const CodesWanted& codes) {
  auto* const reader = static_cast<Reader*>(column);
  if (codes.width == 1) return ReadCodes<Reader, uint8_t>(reader, has_levels, rows, codes);
  if (codes.width == 2) return ReadCodes<Reader, uint16_t>(reader, has_levels, rows, codes);
  if (codes.width == 4) return ReadCodes<Reader, uint32_t>(reader, has_levels, rows, codes);
  return ReadCodes<Reader, uint64_t>(reader, has_levels, rows, codes);
}

bool HasDigits(const ColumnVector& values, int digits) {
  int64_t bound = 1;
  for (int i = 0; i < digits; ++i) bound *= 10;
  bool fits = true;
  for (const int64_t v : values.fixed) fits &= v < bound && v > -bound;
  return fits;
}

}  // namespace

bool ReadNumbers(parquet::ParquetFileReader* reader, int group, int leaf, const SqlType& type, GroupColumn* out) {
  const parquet::ColumnDescriptor& described = *reader->metadata()->schema()->Column(leaf);
  if (!AreNumbersOf(described, type)) return false;
  const int64_t rows = reader->metadata()->RowGroup(group)->num_rows();
  const std::shared_ptr<parquet::ColumnReader> column = reader->RowGroup(group)->Column(leaf);
  out->values.type = type;
  out->rows = static_cast<uint64_t>(rows);
  const bool has_levels = described.max_definition_level() > 0;
  const bool all = described.physical_type() == parquet::Type::INT64
                       ? ReadAll(static_cast<parquet::Int64Reader*>(column.get()), has_levels, rows, &out->values)
                       : ReadAll(static_cast<parquet::Int32Reader*>(column.get()), has_levels, rows, &out->values);
  return all && (type.id != TypeId::kDecimal || HasDigits(out->values, type.precision));
}

bool ReadNumbersAsCodes(parquet::ParquetFileReader* reader, int group, int leaf, const SqlType& type,
                        const CodesWanted& codes) {
  const parquet::ColumnDescriptor& described = *reader->metadata()->schema()->Column(leaf);
  if (!AreNumbersOf(described, type)) return false;
  const int64_t rows = reader->metadata()->RowGroup(group)->num_rows();
  const std::shared_ptr<parquet::ColumnReader> column = reader->RowGroup(group)->Column(leaf);
  const bool has_levels = described.max_definition_level() > 0;
  return described.physical_type() == parquet::Type::INT64
             ? ReadCodesOf<parquet::Int64Reader>(column.get(), has_levels, rows, codes)
             : ReadCodesOf<parquet::Int32Reader>(column.get(), has_levels, rows, codes);
}

}  // namespace tessera::columnar
