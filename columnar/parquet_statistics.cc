#include "columnar/parquet_statistics.h"

#include <parquet/schema.h>
#include <parquet/statistics.h>
#include <parquet/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace tessera::columnar {
namespace {

using Range = std::optional<std::pair<int128_t, int128_t>>;

/// A decimal in bytes, the highest first, which has the sign. REQUIRES: 1 to 16 bytes.
int128_t FromBytes(const uint8_t* bytes, int count) {
  uint128_t value = (bytes[0] & 0x80) != 0 ? ~uint128_t{0} : 0;
  for (int i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return static_cast<int128_t>(value);
}

/// Least and greatest number as they are stored. Numbers without sign have an order of their own.
Range StoredNumbers(const parquet::Statistics& statistics, bool is_unsigned) {
  if (statistics.physical_type() == parquet::Type::INT32) {
    const auto& s = static_cast<const parquet::Int32Statistics&>(statistics);
    if (is_unsigned)
      return std::pair<int128_t, int128_t>(static_cast<uint32_t>(s.min()), static_cast<uint32_t>(s.max()));
    return std::pair<int128_t, int128_t>(s.min(), s.max());
  }
  if (statistics.physical_type() == parquet::Type::INT64) {
    const auto& s = static_cast<const parquet::Int64Statistics&>(statistics);
    if (is_unsigned)
      return std::pair<int128_t, int128_t>(static_cast<uint64_t>(s.min()), static_cast<uint64_t>(s.max()));
    return std::pair<int128_t, int128_t>(s.min(), s.max());
  }
  const int length = statistics.descr()->type_length();
  if (statistics.physical_type() == parquet::Type::FIXED_LEN_BYTE_ARRAY && length >= 1 && length <= 16 &&
      statistics.descr()->logical_type()->is_decimal()) {
    const auto& s = static_cast<const parquet::FLBAStatistics&>(statistics);
    return std::pair(FromBytes(s.min().ptr, length), FromBytes(s.max().ptr, length));
  }
  return std::nullopt;
}

/// Of moments and times: the unit as a number of nanoseconds; 0: it is none of the three.
int64_t NanosecondsOf(const parquet::LogicalType& logical) {
  parquet::LogicalType::TimeUnit::unit unit = parquet::LogicalType::TimeUnit::UNKNOWN;
  if (logical.is_timestamp()) unit = static_cast<const parquet::TimestampLogicalType&>(logical).time_unit();
  if (logical.is_time()) unit = static_cast<const parquet::TimeLogicalType&>(logical).time_unit();
  switch (unit) {
    case parquet::LogicalType::TimeUnit::MILLIS:
      return 1'000'000;
    case parquet::LogicalType::TimeUnit::MICROS:
      return 1'000;
    case parquet::LogicalType::TimeUnit::NANOS:
      return 1;
    case parquet::LogicalType::TimeUnit::UNKNOWN:
      break;
  }
  return 0;
}

/// The numbers as those of the SQL type.
Range Scaled(const Range& stored, const parquet::LogicalType& logical, const SqlType& type) {
  if (type.IsInteger() || type.id == TypeId::kDecimal || type.id == TypeId::kDate) return stored;
  const bool is_moment = type.IsTimestamp() || type.id == TypeId::kTime;
  const int64_t nanoseconds = is_moment ? NanosecondsOf(logical) : 0;
  if (nanoseconds == 0) return std::nullopt;
  const auto scaled = [&](int128_t v) { return v * nanoseconds / 1000; };
  return std::pair(scaled(stored->first), scaled(stored->second));
}

}  // namespace

ColumnarStatistics StatisticsOf(const parquet::ColumnChunkMetaData& chunk, const SqlType& type) {
  ColumnarStatistics out;
  out.bytes = static_cast<uint64_t>(std::max<int64_t>(chunk.total_uncompressed_size(), 0));
  out.is_dictionary = chunk.has_dictionary_page();
  // (Arrow gives none where a program is known to have written wrong ones, or in another order.)
  const std::shared_ptr<parquet::Statistics> statistics = chunk.is_stats_set() ? chunk.statistics() : nullptr;
  if (statistics == nullptr) return out;
  if (statistics->HasNullCount()) out.null_count = statistics->null_count();
  // (An order of floating-point numbers leaves NaN out; texts may be cut.)
  if (!statistics->HasMinMax() || type.storage() == StorageClass::kFloat || type.storage() == StorageClass::kText)
    return out;
  const parquet::ColumnDescriptor& column = *statistics->descr();
  const Range stored = StoredNumbers(*statistics, column.sort_order() == parquet::SortOrder::UNSIGNED);
  const Range range = stored ? Scaled(stored, *column.logical_type(), type) : std::nullopt;
  if (!range || range->first > range->second) return out;
  out.has_range = true;
  out.min = range->first;
  out.max = range->second;
  return out;
}

}  // namespace tessera::columnar
