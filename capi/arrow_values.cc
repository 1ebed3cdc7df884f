#include "capi/arrow_values.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

#include "capi/arrow_types.h"
#include "tablet/values/interval.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000, kMicrosPerDay = 86'400 * kMicrosPerSecond;
/// 0001-01-01 and 9999-12-31.
constexpr int64_t kFirstDay = -719'162, kLastDay = 2'932'896;

/// As arrays have them: at any address.
__extension__ typedef __int128 UnalignedInt128 __attribute__((aligned(1)));

/// The rows of one call.
struct Rows {
  const ArrowSchema& field;
  const ArrowArray& array;
  int64_t first;  ///< with the array's offset
  int64_t count;

  template <class T>
  const T* Buffer(int64_t number) const {
    return static_cast<const T*>(array.buffers[number]) + first;
  }
  std::string_view format() const { return field.format; }
};

bool Bit(const uint8_t* bits, int64_t at) { return (bits[at / 8] >> (at % 8) & 1) != 0; }

std::string_view NameOf(const ArrowSchema& field) { return field.name != nullptr ? field.name : ""; }

Status OutOfRange(const Rows& rows, std::string_view what) {
  return SqlError(ErrorKind::kOutOfRange, fmt::format("column \"{}\" has {}", NameOf(rows.field), what));
}

void AppendNulls(const Rows& rows, ColumnVector* column) {
  if (rows.format() == "n") {
    column->null.assign(static_cast<size_t>(rows.count), 1);
    return;
  }
  const auto* const valid = static_cast<const uint8_t*>(rows.array.buffers[0]);
  if (valid == nullptr || rows.array.null_count == 0) return;
  column->null.resize(static_cast<size_t>(rows.count));
  bool any = false;
  for (int64_t i = 0; i < rows.count; ++i) {
    const bool null = !Bit(valid, rows.first + i);
    column->null[static_cast<size_t>(i)] = null ? 1 : 0;
    any |= null;
  }
  if (!any) column->null.clear();
}

/// f(i) of each row that is not NULL. Of NULLs there is 0.
template <class V, class F>
void Fill(const Rows& rows, const ColumnVector& column, std::vector<V>* out, const F& f) {
  out->resize(static_cast<size_t>(rows.count));
  if (column.null.empty()) {  // (a loop that is made of vector instructions where f allows)
    V* const to = out->data();
    for (int64_t i = 0; i < rows.count; ++i) to[i] = static_cast<V>(f(i));
    return;
  }
  for (int64_t i = 0; i < rows.count; ++i) {
    const auto row = static_cast<size_t>(i);
    (*out)[row] = column.IsNull(row) ? V{} : static_cast<V>(f(i));
  }
}

template <class T>
void FillFrom(const Rows& rows, ColumnVector* column) {
  const T* const from = rows.Buffer<T>(1);
  Fill(rows, *column, &column->fixed, [&](int64_t i) { return static_cast<int64_t>(from[i]); });
}

template <class T>
void FillFloats(const Rows& rows, ColumnVector* column) {
  const T* const from = rows.Buffer<T>(1);
  Fill(rows, *column, &column->fixed, [&](int64_t i) { return std::bit_cast<int64_t>(static_cast<double>(from[i])); });
}

double HalfToDouble(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double sign = half >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign / 0.0;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

bool AppendNumbers(const Rows& rows, ColumnVector* column) {
  if (rows.format().size() != 1) return false;
  switch (rows.format()[0]) {
    case 'b': {
      const auto* const bits = static_cast<const uint8_t*>(rows.array.buffers[1]);
      Fill(rows, *column, &column->fixed, [&](int64_t i) { return Bit(bits, rows.first + i) ? 1 : 0; });
      return true;
    }
    case 'c':
      FillFrom<int8_t>(rows, column);
      return true;
    case 'C':
      FillFrom<uint8_t>(rows, column);
      return true;
    case 's':
      FillFrom<int16_t>(rows, column);
      return true;
    case 'S':
      FillFrom<uint16_t>(rows, column);
      return true;
    case 'i':
      FillFrom<int32_t>(rows, column);
      return true;
    case 'I':
      FillFrom<uint32_t>(rows, column);
      return true;
    case 'l':
      FillFrom<int64_t>(rows, column);
      return true;
    case 'L': {  // DECIMAL(20,0)
      const auto* const from = rows.Buffer<uint64_t>(1);
      Fill(rows, *column, &column->wide, [&](int64_t i) { return static_cast<int128_t>(from[i]); });
      return true;
    }
    case 'e': {
      const auto* const from = rows.Buffer<uint16_t>(1);
      Fill(rows, *column, &column->fixed, [&](int64_t i) { return std::bit_cast<int64_t>(HalfToDouble(from[i])); });
      return true;
    }
    case 'f':
      FillFloats<float>(rows, column);
      return true;
    case 'g':
      FillFloats<double>(rows, column);
      return true;
    default:
      return false;
  }
}

/// "d:precision,scale[,bits]". Arrow checks no digits.
Status AppendDecimals(const Rows& rows, ColumnVector* column) {
  const int128_t bound = PowerOf10(column->type.precision);
  bool fits = true;
  const auto fill = [&](const auto* from) {
    const auto value = [&](int64_t i) {
      const auto v = static_cast<int128_t>(from[i]);
      fits &= v < bound && v > -bound;
      return v;
    };
    if (IsWide(column->type)) {
      Fill(rows, *column, &column->wide, value);
    } else {
      Fill(rows, *column, &column->fixed, value);
    }
  };
  if (rows.format().ends_with(",32")) {
    fill(rows.Buffer<int32_t>(1));
  } else if (rows.format().ends_with(",64")) {
    fill(rows.Buffer<int64_t>(1));
  } else {
    fill(rows.Buffer<UnalignedInt128>(1));
  }
  return fits ? Status::Ok() : OutOfRange(rows, "a decimal with more digits than its type");
}

/// Units of a second to microseconds; parts of one are cut off, toward the past. false: 64 bits do not hold them.
bool ToMicros(int64_t value, int64_t per_second, int64_t* out) {
  if (per_second <= kMicrosPerSecond) return !__builtin_mul_overflow(value, kMicrosPerSecond / per_second, out);
  const int64_t divisor = per_second / kMicrosPerSecond;
  *out = value / divisor - (value % divisor < 0 ? 1 : 0);
  return true;
}

/// As Fill, with `time(i, &fits)` that may say that its value does not fit.
template <class F>
Status FillTimes(const Rows& rows, ColumnVector* column, const F& time) {
  const TypeId type = column->type.id;
  bool fits = true;
  Fill(rows, *column, &column->fixed, [&](int64_t i) {
    const int64_t value = time(i, &fits);
    fits &= HoldsTime(type, value);
    return value;
  });
  if (fits) return {};
  return OutOfRange(rows, type == TypeId::kTime ? "a time that is none of a day" : "a date beyond the years 1 to 9999");
}

/// Days, times and moments. "tdD", "tdm", "tts" ..., "tss:" ...
Status AppendTimes(const Rows& rows, ColumnVector* column) {
  const char kind = rows.format()[1], unit = rows.format()[2];
  if (kind == 'd' && unit == 'D') {
    const auto* const from = rows.Buffer<int32_t>(1);
    return FillTimes(rows, column, [&](int64_t i, bool*) { return int64_t{from[i]}; });
  }
  if (kind == 'd') {
    constexpr int64_t kDay = 86'400'000;
    const auto* const from = rows.Buffer<int64_t>(1);
    return FillTimes(rows, column, [&](int64_t i, bool*) { return from[i] / kDay - (from[i] % kDay < 0 ? 1 : 0); });
  }
  const int64_t per_second = UnitsPerSecond(unit);
  if (kind == 't' && per_second <= 1000) {  // 32 bits
    const auto* const from = rows.Buffer<int32_t>(1);
    return FillTimes(rows, column, [&](int64_t i, bool*) { return from[i] * (kMicrosPerSecond / per_second); });
  }
  const auto* const from = rows.Buffer<int64_t>(1);
  return FillTimes(rows, column, [&](int64_t i, bool* fits) {
    int64_t micros = 0;
    *fits &= ToMicros(from[i], per_second, &micros);
    return micros;
  });
}

/// Durations and intervals. "tDs" ..., "tiM", "tiD", "tin"
Status AppendIntervals(const Rows& rows, ColumnVector* column) {
  struct DayMillis {
    int32_t days, millis;
  };
  struct MonthDayNano {
    int32_t months, days;
    int64_t nanos;
  };
  const char unit = rows.format()[2];
  bool fits = true;
  const auto fill = [&](const auto& interval) {
    Fill(rows, *column, &column->wide, [&](int64_t i) {
      const Interval v = interval(i);
      fits &= HoldsInterval(v.months, v.days, v.micros);
      return fits ? PackInterval(v) : 0;
    });
  };
  if (rows.format()[1] == 'D') {
    const auto* const from = rows.Buffer<int64_t>(1);
    fill([&](int64_t i) {
      Interval v;
      fits &= ToMicros(from[i], UnitsPerSecond(unit), &v.micros);
      return v;
    });
  } else if (unit == 'M') {
    const auto* const from = rows.Buffer<int32_t>(1);
    fill([&](int64_t i) { return Interval{from[i], 0, 0}; });
  } else if (unit == 'D') {
    const auto* const from = rows.Buffer<DayMillis>(1);
    fill([&](int64_t i) { return Interval{0, from[i].days, int64_t{from[i].millis} * 1000}; });
  } else {
    const auto* const from = rows.Buffer<MonthDayNano>(1);
    fill([&](int64_t i) {
      Interval v{from[i].months, from[i].days, 0};
      fits &= ToMicros(from[i].nanos, 1'000'000'000, &v.micros);
      return v;
    });
  }
  return fits ? Status::Ok() : OutOfRange(rows, "an interval out of range");
}

/// text(i) of each row that is not NULL.
template <class F>
Status FillTexts(const Rows& rows, ColumnVector* column, const F& text) {
  column->offsets.reserve(static_cast<size_t>(rows.count) + 1);
  column->offsets.push_back(0);
  for (int64_t i = 0; i < rows.count; ++i) {
    if (!column->IsNull(static_cast<size_t>(i))) {
      const std::string_view bytes = text(i);
      if (CheckText(bytes, column->type) != ParseError::kNone) {
        return {ErrorKind::kInvalidEncoding,
                fmt::format("column \"{}\" has a text that is not UTF-8, or has a NUL byte", NameOf(rows.field)),
                "Make its type binary."};
      }
      column->bytes += bytes;
    }
    column->offsets.push_back(column->bytes.size());
  }
  return {};
}

template <class Offset>
Status AppendPlainTexts(const Rows& rows, ColumnVector* column) {
  const Offset* const offsets = rows.Buffer<Offset>(1);
  const auto* const bytes = static_cast<const char*>(rows.array.buffers[2]);
  column->bytes.reserve(static_cast<size_t>(offsets[rows.count] - offsets[0]));
  return FillTexts(rows, column, [&](int64_t i) {
    return std::string_view(bytes + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i]));
  });
}

/// Of 16 bytes each: a text of up to 12 bytes, or its first four, the number of a buffer, and where it is there.
Status AppendViews(const Rows& rows, ColumnVector* column) {
  struct View {
    int32_t size;
    char head[4];
    int32_t buffer, offset;
  };
  constexpr int32_t kInline = 12;
  const View* const views = rows.Buffer<View>(1);
  return FillTexts(rows, column, [&](int64_t i) {
    const View& v = views[i];
    const auto size = static_cast<size_t>(v.size);
    if (v.size <= kInline) return std::string_view(v.head, size);
    return std::string_view(static_cast<const char*>(rows.array.buffers[2 + v.buffer]) + v.offset, size);
  });
}

/// "w:16": of a width each.
Status AppendFixed(const Rows& rows, ColumnVector* column) {
  const auto width = static_cast<size_t>(std::atoll(rows.field.format + 2));
  const char* const bytes = static_cast<const char*>(rows.array.buffers[1]) + static_cast<size_t>(rows.first) * width;
  if (column->type.id != TypeId::kUuid) {
    return FillTexts(rows, column,
                     [&](int64_t i) { return std::string_view(bytes + static_cast<size_t>(i) * width, width); });
  }
  Fill(rows, *column, &column->wide, [&](int64_t i) {
    uint128_t value = 0;
    for (size_t byte = 0; byte < 16; ++byte)
      value = value << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i) * width + byte]);
    return static_cast<int128_t>(value ^ (uint128_t{1} << 127));
  });
  return {};
}

/// The places of the rows' values in the dictionary.
Status AppendDictionary(const Rows& rows, ColumnVector* column) {
  ColumnVector places, values;
  values.type = column->type;
  places.null = column->null;
  if (!AppendNumbers(rows, &places)) return OutOfRange(rows, "a dictionary without whole numbers");
  TESSERA_TRY(AppendArrow(*rows.field.dictionary, *rows.array.dictionary, 0, rows.array.dictionary->length, &values));
  const auto count = static_cast<int64_t>(values.size());
  SqlType type = column->type;
  column->Clear();
  column->type = type;
  for (int64_t i = 0; i < rows.count; ++i) {
    const auto row = static_cast<size_t>(i);
    if (places.IsNull(row)) {
      column->Append(Value::Null(type));
      continue;
    }
    const int64_t place = places.wide.empty() ? places.fixed[row] : static_cast<int64_t>(places.wide[row]);
    if (place < 0 || place >= count) return OutOfRange(rows, "a value beyond its dictionary");
    column->AppendFrom(values, static_cast<size_t>(place));
  }
  return {};
}

}  // namespace

bool HoldsTime(TypeId type, int64_t value) {
  if (type == TypeId::kDate) return value >= kFirstDay && value <= kLastDay;
  if (type == TypeId::kTime) return value >= 0 && value < kMicrosPerDay;
  if (type == TypeId::kTimestampTz) return IsMoment(value);
  return value >= kFirstDay * kMicrosPerDay && value < (kLastDay + 1) * kMicrosPerDay;
}

Status AppendArrow(const ArrowSchema& field, const ArrowArray& array, int64_t first, int64_t count,
                   ColumnVector* column) {
  if (count == 0) {
    column->offsets.clear();
    return {};
  }
  const Rows rows{field, array, array.offset + first, count};
  const std::string_view format = rows.format();
  AppendNulls(rows, column);
  if (field.dictionary != nullptr) return AppendDictionary(rows, column);
  if (format == "n") {
    column->offsets.assign(static_cast<size_t>(count) + 1, 0);
    return {};
  }
  if (AppendNumbers(rows, column)) return {};
  if (format.starts_with("d:")) return AppendDecimals(rows, column);
  if (format.starts_with("tD") || format.starts_with("ti")) return AppendIntervals(rows, column);
  if (format[0] == 't') return AppendTimes(rows, column);
  if (format == "u" || format == "z") return AppendPlainTexts<int32_t>(rows, column);
  if (format == "U" || format == "Z") return AppendPlainTexts<int64_t>(rows, column);
  if (format == "vu" || format == "vz") return AppendViews(rows, column);
  return AppendFixed(rows, column);
}

}  // namespace tessera
