// Column vectors, and values as SQL text.
#include "tablet/values/row_batch.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "tablet/values/enum_type.h"
#include "tablet/values/fixed_text.h"
#include "tablet/values/interval.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

constexpr int64_t kMicrosecondsADay = int64_t{24} * 60 * 60 * 1000000;

/// What put(at) writes.
template <class Put>
void AppendPut(std::string* out, const Put& put) {
  char buffer[kLongestFixedText];
  out->append(buffer, put(buffer));
}

void AppendInteger(int64_t v, std::string* out) {
  AppendPut(out, [v](char* at) { return PutInteger(v, at); });
}

/// `width` digits at least, with leading zeros. REQUIRES: v >= 0.
void AppendPadded(int64_t v, int width, std::string* out) {
  char buffer[24];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, v);
  for (auto digits = result.ptr - buffer; digits < width; ++digits) out->push_back('0');
  out->append(buffer, result.ptr);
}

void AppendDecimal(int128_t v, int scale, std::string* out) {
  AppendPut(out, [v, scale](char* at) { return PutDecimal(v, scale, at); });
}

void AppendDate(int64_t days, std::string* out) {
  AppendPut(out, [days](char* at) { return PutDate(days, at); });
}

void AppendTime(int64_t v, std::string* out) {
  AppendPut(out, [v](char* at) { return PutTime(v, at); });
}

void AppendTimestamp(int64_t v, std::string* out) {
  AppendPut(out, [v](char* at) { return PutTimestamp(v, at); });
}

void AppendUuid(int128_t v, std::string* out) {
  const uint128_t bits = static_cast<uint128_t>(v) ^ uint128_t { 1 } << 127;
  for (int digit = 0; digit < 32; ++digit) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) out->push_back('-');
    out->push_back("0123456789abcdef"[static_cast<unsigned>(bits >> (124 - 4 * digit)) & 15]);
  }
}

void AppendWide(const SqlType& type, int128_t v, std::string* out) {
  if (type.id == TypeId::kUuid) return AppendUuid(v, out);
  if (type.id == TypeId::kInterval) return AppendInterval(UnpackInterval(v), out);
  AppendDecimal(v, type.scale, out);
}

void AppendMoment(int64_t v, const TimeZone* zone, std::string* out) {
  const int64_t local = zone != nullptr ? zone->LocalOf(v) : v;
  // The first moments may be on the last two days of 1 BC, which come again 365 days later.
  constexpr int64_t kFirstLocal = kFirstMoment + kMicrosecondsADay;
  const bool before_christ = IsMoment(v) && local < kFirstLocal;
  AppendTimestamp(before_christ ? local + 365 * kMicrosecondsADay : local, out);
  int64_t seconds = (local - v) / 1000000;
  out->push_back(seconds < 0 ? '-' : '+');
  seconds = std::abs(seconds);
  AppendPadded(seconds / 3600, 2, out);
  if (seconds % 3600 != 0) {
    out->push_back(':');
    AppendPadded(seconds / 60 % 60, 2, out);
  }
  if (seconds % 60 != 0) {
    out->push_back(':');
    AppendPadded(seconds % 60, 2, out);
  }
  if (before_christ) out->append(" BC");
}

/// The fewest digits that read back as the same number; fixed notation where PostgreSQL uses it (exponents -4 to
/// `fixed_below` - 1), scientific elsewhere.
template <class Float>
void AppendFloat(Float v, int fixed_below, std::string* out) {
  if (std::isnan(v)) {
    out->append("NaN");
    return;
  }
  if (std::isinf(v)) {
    out->append(v < 0 ? "-Infinity" : "Infinity");
    return;
  }
  char buffer[64];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific);
  const char* e = result.ptr;
  while (*--e != 'e') {
  }
  int exponent = 0;
  std::from_chars(e[1] == '+' ? e + 2 : e + 1, result.ptr, exponent);
  if (exponent >= -4 && exponent < fixed_below) {
    result = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed);
  }
  out->append(buffer, result.ptr);
}

void AppendFixed(const SqlType& type, int64_t v, const TimeZone* zone, std::string* out) {
  switch (type.id) {
    case TypeId::kBoolean:
      out->append(v != 0 ? "true" : "false");
      break;
    case TypeId::kDecimal:
      AppendDecimal(v, type.scale, out);
      break;
    case TypeId::kDate:
      AppendDate(v, out);
      break;
    case TypeId::kTimestamp:
      AppendTimestamp(v, out);
      break;
    case TypeId::kTimestampTz:
      AppendMoment(v, zone, out);
      break;
    case TypeId::kTime:
      AppendTime(v, out);
      break;
    case TypeId::kEnum: {
      const std::vector<std::string>& labels = EnumOf(type).labels;
      if (v >= 0 && static_cast<size_t>(v) < labels.size()) out->append(labels[static_cast<size_t>(v)]);
      break;
    }
    default:
      AppendInteger(v, out);
      break;
  }
}

void AppendFloatOfType(const SqlType& type, double v, std::string* out) {
  if (type.id == TypeId::kReal) {
    AppendFloat(static_cast<float>(v), 6, out);
  } else {
    AppendFloat(v, 15, out);
  }
}

}  // namespace

size_t ColumnVector::size() const {
  switch (type.storage()) {
    case StorageClass::kText:
      return offsets.empty() ? 0 : offsets.size() - 1;
    case StorageClass::kWide:
      return wide.size();
    default:
      return fixed.size();
  }
}

void ColumnVector::Append(const Value& v) {
  if (v.null && null.empty()) null.resize(size(), 0);
  if (v.null || !null.empty()) null.push_back(v.null);
  switch (type.storage()) {
    case StorageClass::kText:
      if (offsets.empty()) offsets.push_back(0);
      if (!v.null) bytes.append(v.text);
      offsets.push_back(bytes.size());
      break;
    case StorageClass::kWide:
      wide.push_back(v.null ? 0 : v.wide);
      break;
    case StorageClass::kFloat:
      fixed.push_back(v.null ? 0 : std::bit_cast<int64_t>(v.f64));
      break;
    case StorageClass::kInt:
      fixed.push_back(v.null ? 0 : v.i64);
      break;
  }
}

void ColumnVector::AppendFrom(const ColumnVector& from, size_t row) {
  const bool is_null = from.IsNull(row);
  if (is_null && null.empty()) null.resize(size(), 0);
  if (is_null || !null.empty()) null.push_back(is_null);
  switch (type.storage()) {
    case StorageClass::kText:
      if (offsets.empty()) offsets.push_back(0);
      bytes.append(from.Text(row));
      offsets.push_back(bytes.size());
      break;
    case StorageClass::kWide:
      wide.push_back(from.wide[row]);
      break;
    default:
      fixed.push_back(from.fixed[row]);
      break;
  }
}

void ColumnVector::AppendAll(const ColumnVector& from) {
  const size_t before = size();
  const size_t added = from.size();
  if (added == 0) return;
  if (!from.null.empty()) {
    null.resize(before, 0);
    null.insert(null.end(), from.null.begin(), from.null.end());
  } else if (!null.empty()) {
    null.resize(before + added, 0);
  }
  switch (type.storage()) {
    case StorageClass::kText: {
      if (offsets.empty()) offsets.push_back(0);
      const uint64_t shift = bytes.size();
      bytes.append(from.bytes);
      for (size_t i = 1; i <= added; ++i) offsets.push_back(from.offsets[i] + shift);
      break;
    }
    case StorageClass::kWide:
      wide.insert(wide.end(), from.wide.begin(), from.wide.end());
      break;
    default:
      fixed.insert(fixed.end(), from.fixed.begin(), from.fixed.end());
      break;
  }
}

void ColumnVector::Clear() {
  null.clear();
  fixed.clear();
  wide.clear();
  offsets.clear();
  bytes.clear();
}

void AppendText(const ColumnVector& column, size_t row, std::string* out) {
  if (column.IsNull(row)) return;
  switch (column.type.storage()) {
    case StorageClass::kText:
      if (column.type.id == TypeId::kBytea) {
        AppendBytea(column.Text(row), out);
      } else {
        out->append(column.Text(row));
      }
      break;
    case StorageClass::kWide:
      AppendWide(column.type, column.wide[row], out);
      break;
    case StorageClass::kFloat:
      AppendFloatOfType(column.type, column.Float(row), out);
      break;
    case StorageClass::kInt:
      AppendFixed(column.type, column.fixed[row], column.zone, out);
      break;
  }
}

std::string ToText(const Value& v, const TimeZone* zone) {
  std::string out;
  if (v.null) return out;
  switch (v.type.storage()) {
    case StorageClass::kText:
      if (v.type.id != TypeId::kBytea) return v.text;
      AppendBytea(v.text, &out);
      break;
    case StorageClass::kWide:
      AppendWide(v.type, v.wide, &out);
      break;
    case StorageClass::kFloat:
      AppendFloatOfType(v.type, v.f64, &out);
      break;
    case StorageClass::kInt:
      AppendFixed(v.type, v.i64, zone, &out);
      break;
  }
  return out;
}

Result<Value> ParseValue(std::string_view text, const SqlType& type, const TimeZone* zone) {
  Value value = Value::Null(type);
  value.null = false;
  const std::string_view trimmed = TrimBlanks(text);
  ParseError error = ParseError::kNone;
  switch (type.id) {
    case TypeId::kBoolean:
      error = ParseBoolean(trimmed, &value.i64);
      break;
    case TypeId::kSmallint:
      error = ParseInteger(trimmed, INT16_MIN, INT16_MAX, &value.i64);
      break;
    case TypeId::kInteger:
      error = ParseInteger(trimmed, INT32_MIN, INT32_MAX, &value.i64);
      break;
    case TypeId::kBigint:
      error = ParseInteger(trimmed, INT64_MIN, INT64_MAX, &value.i64);
      break;
    case TypeId::kReal:
      error = ParseReal(trimmed, &value.f64);
      break;
    case TypeId::kDouble:
      error = ParseDouble(trimmed, &value.f64);
      break;
    case TypeId::kDecimal:
      error = ParseDecimal(trimmed, type.precision, type.scale, &value.wide);
      if (type.storage() == StorageClass::kInt) {
        value.i64 = static_cast<int64_t>(value.wide);
        value.wide = 0;
      }
      break;
    case TypeId::kDate:
      error = ParseDate(trimmed, &value.i64);
      break;
    case TypeId::kTimestamp:
      error = ParseTimestamp(trimmed, &value.i64);
      break;
    case TypeId::kTime:
      error = ParseTime(trimmed, &value.i64);
      break;
    case TypeId::kTimestampTz:
      error = ParseMoment(trimmed, zone, &value.i64);
      break;
    case TypeId::kUuid:
      error = ParseUuid(trimmed, &value.wide);
      break;
    case TypeId::kText:
      error = CheckText(text, type);
      if (error == ParseError::kNone) value.text.assign(text);
      break;
    case TypeId::kBytea:
      error = ParseBytea(text, &value.text);
      break;
    case TypeId::kInterval: {
      TESSERA_ASSIGN(const Interval interval, ParseInterval(trimmed));
      value.wide = PackInterval(interval);
      break;
    }
    case TypeId::kEnum: {
      TESSERA_ASSIGN(value.i64, PlaceOfLabel(EnumOf(type), text));
      break;
    }
    case TypeId::kNull:
      return Status(ErrorCode::kInternal, "no literal of type " + type.ToString() + " is parsed here");
  }
  if (error != ParseError::kNone) return ParseFailure(error, text, type);
  return value;
}

}  // namespace tessera
