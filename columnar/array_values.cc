// Arrays to columns.
#include "columnar/array_values.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <arrow/util/float16.h>

#include <bit>
#include <cstring>

#include "base/int128.h"
#include "tablet/values/interval.h"

namespace tessera::columnar {
namespace {

using arrow::Type;
using Found = std::optional<BadValue>;

Found OutOfRange(int64_t row, const std::string& value, const char* type) {
  return BadValue{row, ErrorKind::kOutOfRange, "value " + value + " is out of range for type " + type};
}

/// Gives the column as many rows more, all of them 0; NULL where the array has no value.
void Extend(const arrow::Array& array, ColumnVector* out) {
  const bool wide = out->type.storage() == StorageClass::kWide;
  const size_t before = wide ? out->wide.size() : out->fixed.size();
  const size_t rows = before + static_cast<size_t>(array.length());
  if (wide) {
    out->wide.resize(rows);
  } else {
    out->fixed.resize(rows);
  }
  if (array.null_count() == 0 && out->null.empty()) return;
  out->null.resize(rows);
  if (array.null_count() == 0) return;
  for (int64_t row = 0; row < array.length(); ++row)
    out->null[before + static_cast<size_t>(row)] = array.IsNull(row) ? 1 : 0;
}

/// `get`: the value of a row as what the column holds; false: it cannot hold it. Returns the row of the first such one, or -1.
template <class T, class Get>
int64_t Fill(const arrow::Array& array, std::vector<T>* values, const Get& get) {
  T* const to = values->data() + (values->size() - static_cast<size_t>(array.length()));
  const bool any_null = array.null_count() > 0;
  for (int64_t row = 0; row < array.length(); ++row) {
    if (any_null && array.IsNull(row)) continue;
    if (!get(row, &to[row])) return row;
  }
  return -1;
}

/// Numbers of a type that fits, without NULLs.
template <class T>
void CopyAll(const T* values, int64_t count, std::vector<int64_t>* out) {
  out->insert(out->end(), values, values + count);
}

template <class A>
Found AppendIntegers(const arrow::Array& array, ColumnVector* out) {
  const auto* const values = static_cast<const A&>(array).raw_values();
  constexpr bool kFits = sizeof(values[0]) < 8 || std::is_signed_v<std::remove_cvref_t<decltype(values[0])>>;
  if (kFits && array.null_count() == 0 && out->null.empty()) {
    CopyAll(values, array.length(), &out->fixed);
    return {};
  }
  Extend(array, out);
  const int64_t bad = Fill(array, &out->fixed, [&](int64_t row, int64_t* to) {
    *to = static_cast<int64_t>(values[row]);
    return kFits || *to >= 0;
  });
  return bad < 0 ? Found() : OutOfRange(bad, std::to_string(values[bad]), "bigint");
}

template <class A>
Found AppendFloats(const arrow::Array& array, ColumnVector* out) {
  const auto* const values = static_cast<const A&>(array).raw_values();
  Extend(array, out);
  (void)Fill(array, &out->fixed, [&](int64_t row, int64_t* to) {
    double v = 0;
    if constexpr (std::is_same_v<A, arrow::HalfFloatArray>) {
      v = arrow::util::Float16::FromBits(values[row]).ToDouble();
    } else {
      v = static_cast<double>(values[row]);
    }
    *to = std::bit_cast<int64_t>(v);
    return true;
  });
  return {};
}

Found AppendBooleans(const arrow::Array& array, ColumnVector* out) {
  const auto& values = static_cast<const arrow::BooleanArray&>(array);
  Extend(array, out);
  (void)Fill(array, &out->fixed, [&](int64_t row, int64_t* to) {
    *to = values.Value(row) ? 1 : 0;
    return true;
  });
  return {};
}

/// Moments and times: `multiply` or `divide` is 1.
template <class A>
Found AppendMoments(const arrow::Array& array, int64_t multiply, int64_t divide, const char* unit, ColumnVector* out) {
  const auto* const values = static_cast<const A&>(array).raw_values();
  Extend(array, out);
  const int64_t bad = Fill(array, &out->fixed, [&](int64_t row, int64_t* to) {
    const int64_t v = values[row];
    if (divide != 1) {
      *to = v / divide;
      return v % divide == 0;
    }
    return !__builtin_mul_overflow(v, multiply, to);
  });
  if (bad < 0) return {};
  const std::string value = std::to_string(static_cast<int64_t>(values[bad]));
  if (divide == 1) return OutOfRange(bad, value, "timestamp");
  return BadValue{bad, ErrorKind::kDatetimeOverflow, "value " + value + " is no whole number of " + unit};
}

template <class A>
Found AppendOfUnit(const arrow::Array& array, arrow::TimeUnit::type unit, ColumnVector* out) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return AppendMoments<A>(array, 1'000'000, 1, "", out);
    case arrow::TimeUnit::MILLI:
      return AppendMoments<A>(array, 1'000, 1, "", out);
    case arrow::TimeUnit::MICRO:
      return AppendMoments<A>(array, 1, 1, "", out);
    case arrow::TimeUnit::NANO:
      break;
  }
  return AppendMoments<A>(array, 1, 1'000, "microseconds", out);
}

int128_t PowerOfTen(int digits) {
  int128_t power = 1;
  for (int i = 0; i < digits; ++i) power *= 10;
  return power;
}

/// Decimals of 4 or 8 bytes without NULLs. false: one of them has too many digits, and nothing was appended.
bool CopyNarrowDecimals(const arrow::FixedSizeBinaryArray& array, int64_t bound, std::vector<int64_t>* out) {
  const size_t before = out->size();
  if (array.byte_width() == 4) {
    CopyAll(reinterpret_cast<const int32_t*>(array.GetValue(0)), array.length(), out);
  } else {
    CopyAll(reinterpret_cast<const int64_t*>(array.GetValue(0)), array.length(), out);
  }
  bool fits = true;
  for (size_t i = before; i < out->size(); ++i) fits &= (*out)[i] < bound && (*out)[i] > -bound;
  if (!fits) out->resize(before);
  return fits;
}

/// `bytes`: of a number, little-endian; 16 of its 32 hold it if the others are its sign.
Found AppendDecimals(const arrow::Array& array, ColumnVector* out) {
  const auto& values = static_cast<const arrow::FixedSizeBinaryArray&>(array);
  const auto width = static_cast<size_t>(values.byte_width());
  const int128_t bound = PowerOfTen(out->type.precision);
  if (width <= 8 && out->type.storage() == StorageClass::kInt && array.null_count() == 0 && out->null.empty() &&
      array.length() > 0 && CopyNarrowDecimals(values, static_cast<int64_t>(bound), &out->fixed))
    return {};
  Extend(array, out);
  const auto get = [&](int64_t row, int128_t* to) {
    const uint8_t* const bytes = values.GetValue(row);
    int128_t v = 0;
    if (width == 4 || width == 8) {
      int64_t narrow = 0;
      memcpy(&narrow, bytes, width);
      v = width == 4 ? static_cast<int32_t>(narrow) : narrow;
    } else {
      memcpy(&v, bytes, sizeof v);
    }
    *to = v;
    if (width == 32) {
      int128_t high = 0;
      memcpy(&high, bytes + 16, sizeof high);
      if (high != (v < 0 ? -1 : 0)) return false;
    }
    return v < bound && v > -bound;
  };
  int64_t bad = -1;
  if (out->type.storage() == StorageClass::kWide) {
    bad = Fill(array, &out->wide, get);
  } else {
    bad = Fill(array, &out->fixed, [&](int64_t row, int64_t* to) {
      int128_t v = 0;
      const bool fits = get(row, &v);
      *to = static_cast<int64_t>(v);
      return fits;
    });
  }
  if (bad < 0) return {};
  return BadValue{bad, ErrorKind::kOutOfRange,
                  "a number has more digits than the " + std::to_string(out->type.precision) + " of its type"};
}

/// The intervals of Arrow, and lengths of time.
Found AppendIntervals(const arrow::Array& array, ColumnVector* out) {
  Extend(array, out);
  int64_t unit = 0;  // nanoseconds
  if (array.type_id() == Type::DURATION) {
    constexpr int64_t kUnits[] = {1'000'000'000, 1'000'000, 1'000, 1};
    unit = kUnits[static_cast<const arrow::DurationType&>(*array.type()).unit()];
  }
  bool whole = true;
  const int64_t bad = Fill(array, &out->wide, [&](int64_t row, int128_t* to) {
    int128_t months = 0, days = 0, nanos = 0;
    if (array.type_id() == Type::DURATION) {
      nanos = static_cast<int128_t>(static_cast<const arrow::DurationArray&>(array).Value(row)) * unit;
    } else if (array.type_id() == Type::INTERVAL_MONTHS) {
      months = static_cast<const arrow::MonthIntervalArray&>(array).Value(row);
    } else if (array.type_id() == Type::INTERVAL_DAY_TIME) {
      const auto v = static_cast<const arrow::DayTimeIntervalArray&>(array).GetValue(row);
      days = v.days;
      nanos = int128_t{v.milliseconds} * 1'000'000;
    } else {
      const auto v = static_cast<const arrow::MonthDayNanoIntervalArray&>(array).GetValue(row);
      months = v.months;
      days = v.days;
      nanos = v.nanoseconds;
    }
    whole = nanos % 1000 == 0;
    if (!whole || !HoldsInterval(months, days, nanos / 1000)) return false;
    *to = PackInterval({static_cast<int64_t>(months), static_cast<int64_t>(days), static_cast<int64_t>(nanos / 1000)});
    return true;
  });
  if (bad < 0) return {};
  if (whole) return BadValue{bad, ErrorKind::kDatetimeOverflow, "interval out of range"};
  return BadValue{bad, ErrorKind::kDatetimeOverflow, "an interval is no whole number of microseconds"};
}

Found AppendUuids(const arrow::Array& array, ColumnVector* out) {
  const auto& values = static_cast<const arrow::FixedSizeBinaryArray&>(array);
  Extend(array, out);
  (void)Fill(array, &out->wide, [&](int64_t row, int128_t* to) {
    uint128_t v = 0;
    for (int i = 0; i < 16; ++i) v = v << 8 | values.GetValue(row)[i];
    *to = static_cast<int128_t>(v ^ uint128_t{1} << 127);
    return true;
  });
  return {};
}

/// The same of texts, but for their offsets.
void ExtendTexts(const arrow::Array& array, ColumnVector* out) {
  const size_t before = out->offsets.empty() ? 0 : out->offsets.size() - 1;
  const size_t rows = before + static_cast<size_t>(array.length());
  if (out->offsets.empty() && rows > 0) out->offsets.push_back(0);
  out->offsets.reserve(rows + 1);
  if (array.null_count() == 0 && out->null.empty()) return;
  out->null.resize(rows);
  for (int64_t row = 0; row < array.length() && array.null_count() > 0; ++row)
    out->null[before + static_cast<size_t>(row)] = array.IsNull(row) ? 1 : 0;
}

/// Of arrays whose offsets are in a buffer. Without NULLs all bytes are copied at once.
template <class A>
Found AppendTexts(const arrow::Array& array, ColumnVector* out) {
  const auto& values = static_cast<const A&>(array);
  ExtendTexts(array, out);
  if (array.length() == 0) return {};
  if (array.null_count() == 0) {
    const auto* const offsets = values.raw_value_offsets();
    const uint64_t shift = out->bytes.size() - static_cast<uint64_t>(offsets[0]);
    out->bytes.append(reinterpret_cast<const char*>(values.raw_data()) + offsets[0],
                      static_cast<size_t>(offsets[array.length()] - offsets[0]));
    for (int64_t row = 1; row <= array.length(); ++row)
      out->offsets.push_back(shift + static_cast<uint64_t>(offsets[row]));
    return {};
  }
  for (int64_t row = 0; row < array.length(); ++row) {
    if (!array.IsNull(row)) out->bytes.append(values.GetView(row));
    out->offsets.push_back(out->bytes.size());
  }
  return {};
}

/// Of the others: views and blocks of one size.
template <class A>
Found AppendViews(const arrow::Array& array, ColumnVector* out) {
  const auto& values = static_cast<const A&>(array);
  ExtendTexts(array, out);
  for (int64_t row = 0; row < array.length(); ++row) {
    if (!array.IsNull(row)) out->bytes.append(values.GetView(row));
    out->offsets.push_back(out->bytes.size());
  }
  return {};
}

Found AppendNulls(const arrow::Array& array, ColumnVector* out) {
  const size_t rows = out->null.size() + static_cast<size_t>(array.length());
  out->null.resize(rows, 1);
  out->offsets.resize(rows + 1);
  return {};
}

/// Of entries without NULLs: `words` are those of the array's dictionary.
Found AppendWords(const arrow::DictionaryArray& array, const ColumnVector& words, ColumnVector* out) {
  const int32_t* const numbers = static_cast<const arrow::Int32Array&>(*array.indices()).raw_values();
  const bool any_null = array.null_count() > 0;
  const auto count = static_cast<uint64_t>(array.dictionary()->length());
  ExtendTexts(array, out);
  uint64_t at = out->bytes.size();
  for (int64_t row = 0; row < array.length(); ++row) {
    if (!any_null || !array.IsNull(row)) {
      const auto word = static_cast<uint32_t>(numbers[row]);
      if (word >= count) return BadValue{row, ErrorKind::kBadCopyFormat, "the dictionary has no entry of its number"};
      at += words.offsets[word + 1] - words.offsets[word];
    }
    out->offsets.push_back(at);
  }
  const uint64_t* const ends = out->offsets.data() + out->offsets.size() - static_cast<size_t>(array.length());
  uint64_t from = out->bytes.size();
  out->bytes.resize(at);
  for (int64_t row = 0; row < array.length(); ++row) {
    const uint64_t bytes = ends[row] - from;
    if (bytes > 0)
      memcpy(out->bytes.data() + from, words.bytes.data() + words.offsets[static_cast<uint32_t>(numbers[row])], bytes);
    from = ends[row];
  }
  return {};
}

Found AppendDictionary(const arrow::Array& array, ColumnVector* out) {
  const auto& values = static_cast<const arrow::DictionaryArray&>(array);
  ColumnVector words;
  words.type = out->type;
  if (Found bad = AppendArray(*values.dictionary(), &words)) {
    // Where it is used, or else it does not matter.
    for (int64_t row = 0; row < array.length(); ++row) {
      if (array.IsNull(row) || values.GetValueIndex(row) != bad->row) continue;
      bad->row = row;
      break;
    }
    return bad;
  }
  const bool is_text = out->type.storage() == StorageClass::kText, is_wide = out->type.storage() == StorageClass::kWide;
  if (is_text && words.null.empty() && values.indices()->type_id() == Type::INT32)
    return AppendWords(values, words, out);
  if (is_text && out->offsets.empty()) out->offsets.push_back(0);
  const size_t before = is_text ? out->offsets.size() - 1 : out->fixed.size() + out->wide.size();
  const bool keeps_nulls = array.null_count() > 0 || !words.null.empty() || !out->null.empty();
  if (keeps_nulls) out->null.resize(before);
  for (int64_t row = 0; row < array.length(); ++row) {
    const bool no_word = array.IsNull(row);
    const size_t word = no_word ? 0 : static_cast<size_t>(values.GetValueIndex(row));
    const bool is_null = no_word || words.IsNull(word);
    if (keeps_nulls) out->null.push_back(is_null ? 1 : 0);
    if (is_text) {
      if (!is_null) out->bytes.append(words.bytes, words.offsets[word], words.offsets[word + 1] - words.offsets[word]);
      out->offsets.push_back(out->bytes.size());
    } else if (is_wide) {
      out->wide.push_back(is_null ? 0 : words.wide[word]);
    } else {
      out->fixed.push_back(is_null ? 0 : words.fixed[word]);
    }
  }
  return {};
}

Found AppendTimes(const arrow::Array& array, ColumnVector* out) {
  switch (array.type_id()) {
    case Type::DATE32:
      return AppendIntegers<arrow::Date32Array>(array, out);
    case Type::DATE64:
      return AppendMoments<arrow::Date64Array>(array, 1, 86'400'000, "days", out);
    case Type::TIME32:
      return AppendOfUnit<arrow::Time32Array>(array, static_cast<const arrow::Time32Type&>(*array.type()).unit(), out);
    case Type::TIME64:
      return AppendOfUnit<arrow::Time64Array>(array, static_cast<const arrow::Time64Type&>(*array.type()).unit(), out);
    default:
      return AppendOfUnit<arrow::TimestampArray>(array, static_cast<const arrow::TimestampType&>(*array.type()).unit(),
                                                 out);
  }
}

Found AppendNumbers(const arrow::Array& array, ColumnVector* out) {
  switch (array.type_id()) {
    case Type::INT8:
      return AppendIntegers<arrow::Int8Array>(array, out);
    case Type::UINT8:
      return AppendIntegers<arrow::UInt8Array>(array, out);
    case Type::INT16:
      return AppendIntegers<arrow::Int16Array>(array, out);
    case Type::UINT16:
      return AppendIntegers<arrow::UInt16Array>(array, out);
    case Type::INT32:
      return AppendIntegers<arrow::Int32Array>(array, out);
    case Type::UINT32:
      return AppendIntegers<arrow::UInt32Array>(array, out);
    case Type::INT64:
      return AppendIntegers<arrow::Int64Array>(array, out);
    case Type::UINT64:
      return AppendIntegers<arrow::UInt64Array>(array, out);
    case Type::HALF_FLOAT:
      return AppendFloats<arrow::HalfFloatArray>(array, out);
    case Type::FLOAT:
      return AppendFloats<arrow::FloatArray>(array, out);
    case Type::DOUBLE:
      return AppendFloats<arrow::DoubleArray>(array, out);
    default:
      return AppendDecimals(array, out);
  }
}

}  // namespace

bool AppendNumbered(const arrow::Array& array, ColumnVector* entries, std::vector<uint32_t>* numbers) {
  if (array.type_id() != Type::DICTIONARY) return false;
  const auto& values = static_cast<const arrow::DictionaryArray&>(array);
  if (values.dictionary()->null_count() > 0 || values.indices()->type_id() != Type::INT32) return false;
  const size_t before = entries->offsets.empty() ? 0 : entries->offsets.size() - 1;
  if (AppendArray(*values.dictionary(), entries)) return false;
  const auto count = static_cast<uint32_t>(values.dictionary()->length());
  const int32_t* const indices = static_cast<const arrow::Int32Array&>(*values.indices()).raw_values();
  const bool any_null = array.null_count() > 0;
  for (int64_t row = 0; row < array.length(); ++row) {
    const bool is_null = any_null && array.IsNull(row);
    const auto index = static_cast<uint32_t>(indices[row]);
    if (!is_null && index >= count) return false;
    numbers->push_back(is_null ? UINT32_MAX : static_cast<uint32_t>(before) + index);
  }
  return true;
}

std::optional<BadValue> AppendArray(const arrow::Array& array, ColumnVector* out) {
  switch (array.type_id()) {
    case Type::NA:
      return AppendNulls(array, out);
    case Type::BOOL:
      return AppendBooleans(array, out);
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIME32:
    case Type::TIME64:
    case Type::TIMESTAMP:
      return AppendTimes(array, out);
    case Type::INTERVAL_MONTHS:
    case Type::INTERVAL_DAY_TIME:
    case Type::INTERVAL_MONTH_DAY_NANO:
    case Type::DURATION:
      return AppendIntervals(array, out);
    case Type::STRING:
    case Type::BINARY:
      return AppendTexts<arrow::BinaryArray>(array, out);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      return AppendTexts<arrow::LargeBinaryArray>(array, out);
    case Type::STRING_VIEW:
    case Type::BINARY_VIEW:
      return AppendViews<arrow::BinaryViewArray>(array, out);
    case Type::FIXED_SIZE_BINARY:
      return AppendViews<arrow::FixedSizeBinaryArray>(array, out);
    case Type::DICTIONARY:
      return AppendDictionary(array, out);
    case Type::EXTENSION: {
      const arrow::Array& storage = *static_cast<const arrow::ExtensionArray&>(array).storage();
      return out->type.id == TypeId::kUuid ? AppendUuids(storage, out) : AppendArray(storage, out);
    }
    default:
      return AppendNumbers(array, out);
  }
}

}  // namespace tessera::columnar
