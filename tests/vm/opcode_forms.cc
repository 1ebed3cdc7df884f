#include "tests/vm/opcode_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tablet/values/ordered_float.h"

namespace tessera::test::walk {

std::pair<int128_t, int128_t> RangeOf(const SqlType& t) {
  switch (t.id) {
    case TypeId::kBoolean:
      return {0, 1};
    case TypeId::kSmallint:
      return {INT16_MIN, INT16_MAX};
    case TypeId::kInteger:
      return {INT32_MIN, INT32_MAX};
    case TypeId::kDate:
      return {kYear1 - 40, kYear9999 + 40};
    case TypeId::kReal:
      return {OrderedFloat32(-std::numeric_limits<float>::infinity()), kOrderedNaN32};
    case TypeId::kDouble:
      return {OrderedFloat(-std::numeric_limits<double>::infinity()), kOrderedNaN};
    case TypeId::kTimestamp:
      return {static_cast<int128_t>(kYear1 - 40) * kDayMicros, static_cast<int128_t>(kYear9999 + 40) * kDayMicros};
    case TypeId::kDecimal:
      // Accumulators hold any 128 bits, so the walk does, too.
      if (t.storage() == StorageClass::kWide) return {kInt128Min, kInt128Max};
      return {1 - PowerOf10(t.precision), PowerOf10(t.precision) - 1};
    default:
      return {kLeast, kGreatest};
  }
}

std::vector<int128_t> EdgesOf(const SqlType& t, int128_t low, int128_t high) {
  std::set<int128_t> all = {low, high};
  auto add = [&](int128_t v) {
    if (v >= low && v <= high) all.insert(v);
  };
  if (high > low) {
    add(low + 1);
    add(high - 1);
  }
  if (t.IsFloat()) {
    const double inf = std::numeric_limits<double>::infinity();
    for (double v : {0.0,
                     0.5,
                     1.0,
                     1.5,
                     2.5,
                     3.0,
                     0.1,
                     1e-3,
                     123456.789,
                     9007199254740991.0,
                     4503599627370495.5,
                     4503599627370497.0,
                     9223372036854774784.0,
                     9223372036854775808.0,
                     1e18,
                     1e37,
                     1.7e38,
                     3.4e38,
                     1e-40,
                     1.5e-45,
                     1e300,
                     5e-324,
                     2.2250738585072014e-308,
                     2.2250738585072009e-308,
                     1.7976931348623157e308,
                     16777217.0,
                     1.0000000596046448,
                     inf}) {
      for (double x : {v, -v}) {
        if (t.id == TypeId::kReal) {
          add(OrderedFloat32(static_cast<float>(x)));
        } else {
          add(static_cast<int128_t>(OrderedFloat(x)));
        }
      }
    }
    add(t.id == TypeId::kReal ? static_cast<int128_t>(kOrderedNaN32) : static_cast<int128_t>(kOrderedNaN));
  } else {
    for (int128_t v : {static_cast<int128_t>(0),
                       static_cast<int128_t>(1),
                       static_cast<int128_t>(2),
                       static_cast<int128_t>(3),
                       static_cast<int128_t>(7),
                       static_cast<int128_t>(10),
                       static_cast<int128_t>(100),
                       static_cast<int128_t>(127),
                       static_cast<int128_t>(128),
                       static_cast<int128_t>(255),
                       static_cast<int128_t>(32767),
                       static_cast<int128_t>(65536),
                       static_cast<int128_t>(INT32_MAX),
                       static_cast<int128_t>(INT32_MAX) + 1,
                       static_cast<int128_t>(UINT32_MAX) + 1,
                       static_cast<int128_t>(3037000500),
                       static_cast<int128_t>(kGreatest),
                       static_cast<int128_t>(kGreatest) + 1,
                       PowerOf10(18),
                       static_cast<int128_t>(1) << 64,
                       (static_cast<int128_t>(1) << 64) - 1,
                       static_cast<int128_t>(13043817825332782212u),
                       PowerOf10(19),
                       PowerOf10(37),
                       PowerOf10(38) - 1,
                       kInt128Max}) {
      add(v);
      add(-v);
      add(-v - 1);
    }
    // Halfway between two doubles, and beside it: conversions must round once.
    for (int shift : {2, 12, 40, 66}) {
      const int128_t halfway = (static_cast<int128_t>(0x20000000000001) * 2 + 1) << shift;
      for (int d = -1; d <= 1; ++d) {
        add(halfway + d);
        add(-halfway + d);
      }
    }
    // 0001-01-01, 1900-02-28, 1900-03-01, 2000-02-29, 2023-12-31, 2024-01-31, 9999-12-31
    for (int64_t day : {kYear1 - 1, kYear1, int64_t{-25509}, int64_t{-25508}, int64_t{11016}, int64_t{19722},
                        int64_t{19753}, kYear9999, kYear9999 + 1}) {
      if (t.id == TypeId::kTimestamp) {
        for (int64_t micros : {int64_t{0}, int64_t{1}, kDayMicros - 1, int64_t{45296789012}})
          add(static_cast<int128_t>(day) * kDayMicros + micros);
      } else {
        add(day);
      }
    }
  }
  return {all.begin(), all.end()};
}

bool IsValue(const SqlType& t, int128_t v) {
  if (t.id == TypeId::kDouble)
    return v <= static_cast<int128_t>(OrderedFloat(std::numeric_limits<double>::infinity())) ||
           v == static_cast<int128_t>(kOrderedNaN);
  if (t.id == TypeId::kReal)
    return v <= static_cast<int128_t>(OrderedFloat32(std::numeric_limits<float>::infinity())) ||
           v == static_cast<int128_t>(kOrderedNaN32);
  return true;
}

namespace {

int128_t RandomBetween(Random& random, int128_t low, int128_t high) {
  const uint128_t span = static_cast<uint128_t>(high) - static_cast<uint128_t>(low);
  uint128_t r = static_cast<uint128_t>(random()) << 64 | random();
  r >>= random() % 128;  // all magnitudes
  if (span != ~uint128_t{0}) r %= span + 1;
  if ((random() & 1) != 0) r = span - r;
  return static_cast<int128_t>(static_cast<uint128_t>(low) + r);
}

/// Ordered form -> what a ColumnVector or Value holds.
int64_t FromOrdered(const SqlType& t, int128_t v) {
  if (t.id == TypeId::kDouble) return AsBits(FromOrderedFloat(static_cast<uint64_t>(v)));
  if (t.id == TypeId::kReal) return AsBits(static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(v))));
  return static_cast<int64_t>(v);
}

}  // namespace

Value ToValue(const SqlType& t, int128_t ordered) {
  if (t.storage() == StorageClass::kWide) return Value::Wide(t, ordered);
  if (t.IsFloat()) return Value::Float(t, AsDouble(FromOrdered(t, ordered)));
  return Value::Int(t, static_cast<int64_t>(ordered));
}

namespace {

std::vector<Form> NumberForms(const SqlType& t) {
  const auto [least, greatest] = RangeOf(t);
  std::vector<int128_t> bases;
  if (t.id == TypeId::kDouble) {
    for (double v : {-std::numeric_limits<double>::infinity(), -1.0, -0.0, 1.0, 1e18})
      bases.push_back(static_cast<int128_t>(OrderedFloat(v)) - (v == 0 ? 100 : 0));
    bases.push_back(static_cast<int128_t>(OrderedFloat(std::numeric_limits<double>::infinity())) - 200);
    bases.push_back(static_cast<int128_t>(kOrderedNaN));
  } else if (t.id == TypeId::kReal) {
    for (float v : {-std::numeric_limits<float>::infinity(), -1.0f, -0.0f, 1.0f, 1e18f})
      bases.push_back(static_cast<int128_t>(OrderedFloat32(v)) - (v == 0 ? 100 : 0));
    bases.push_back(static_cast<int128_t>(OrderedFloat32(std::numeric_limits<float>::infinity())) - 200);
  } else {
    bases = {least, -100, 0, PowerOf10(18) - 50, greatest - 200, -PowerOf10(18) - 1, PowerOf10(30)};
  }
  std::vector<int> widths = {1, 2, 4, 8};
  if (t.id == TypeId::kReal) widths = {1, 2, 4};
  if (t.storage() == StorageClass::kWide) widths.push_back(16);
  const ChunkForm::NullCode codes[] = {ChunkForm::NullCode::kNext, ChunkForm::NullCode::kLast,
                                       ChunkForm::NullCode::kGap};
  std::vector<Form> out;
  size_t turn = 0;
  for (int width : widths) {
    for (int128_t base : bases) {
      if (base < least || base > greatest) continue;
      for (bool nulls : {false, true}) {
        Form f;
        f.chunk.encoding = Encoding::kFrame;
        f.chunk.width = width;
        f.chunk.base = base;
        f.chunk.null_code = codes[turn++ % 3];
        f.nulls = nulls;
        f.low = base;
        f.high = std::min(greatest, FrameEnd(t, width, base, nulls));
        if (nulls && f.chunk.null_code == ChunkForm::NullCode::kGap)
          f.high = std::min(greatest, FrameEnd(t, width, base, false));
        out.push_back(f);
      }
    }
  }
  for (int128_t v : EdgesOf(t, least, greatest)) {
    if (!IsValue(t, v)) continue;
    Form f;
    f.chunk.encoding = Encoding::kConstant;
    f.low = f.high = v;
    if (++turn % 5 == 0) out.push_back(f);
  }
  Form null;
  null.chunk.encoding = Encoding::kConstant;
  null.nulls = null.all_null = true;
  out.push_back(null);
  return out;
}

std::vector<Form> TextForms() {
  std::vector<Form> out;
  for (bool nulls : {false, true}) {
    for (int width : {1, 2, 4}) {
      Form f;
      f.chunk.encoding = Encoding::kDictionary;
      f.chunk.width = width;
      f.nulls = nulls;
      out.push_back(f);
    }
    Form plain;
    plain.chunk.encoding = Encoding::kPlain;
    plain.nulls = nulls;
    out.push_back(plain);
    Form constant;
    constant.chunk.encoding = Encoding::kConstant;
    constant.nulls = constant.all_null = nulls;
    out.push_back(constant);
  }
  return out;
}

}  // namespace

const std::vector<Form>& FormsOf(const SqlType& t) {
  static std::map<std::array<int, 3>, std::vector<Form>> lists;
  auto& list = lists[{static_cast<int>(t.id), t.precision, t.scale}];
  if (list.empty()) list = t.id == TypeId::kText ? TextForms() : NumberForms(t);
  return list;
}

const std::vector<std::string>& PlainStrings() {
  static const std::vector<std::string> strings = {
      "",
      " ",
      "a",
      "A",
      "ab",
      "abc",
      "ABC",
      "  trim  both  ",
      "left  ",
      "  right",
      "\xC3\xA9t\xC3\xA9",
      "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E",
      "\xF0\x9F\x90\x98 elephant",
      "a%b",
      "a_b",
      "a\\b",
      "%",
      "_",
      "zebra",
      "Zebra",
      "MFGR#12",
      "MFGR#1221",
      "ASIA",
      "ASIAN",
      "\x7F",
      "\xC3\x80",
      "a string of some length, longer than any small string that a library keeps in place",
      "b",
      "ba",
      "aab",
      "aaab"};
  return strings;
}

const std::vector<std::string>& NumberStrings() {
  static const std::vector<std::string> strings = {"0",
                                                   "1",
                                                   "-1",
                                                   " 42 ",
                                                   "+7",
                                                   "32767",
                                                   "32768",
                                                   "-32768",
                                                   "-32769",
                                                   "2147483647",
                                                   "2147483648",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "-9223372036854775808",
                                                   "-9223372036854775809",
                                                   "123456789012345678901234567890",
                                                   "12.5",
                                                   "-0.05",
                                                   "99.995",
                                                   "abc",
                                                   "",
                                                   "12x",
                                                   "1.2.3",
                                                   "--1",
                                                   "99999999999999999999999999999999999999",
                                                   "-99999999999999999999999999999999999999",
                                                   "199999999999999999999999999999999999999",
                                                   "0.00",
                                                   ".5",
                                                   "true",
                                                   "false",
                                                   "maybe",
                                                   "1998-12-01",
                                                   "2000-02-29",
                                                   "1900-02-29",
                                                   "0001-01-01",
                                                   "9999-12-31",
                                                   "1998-13-01",
                                                   "1998-12-01 10:11:12",
                                                   "1998-12-01 23:59:59.999999",
                                                   "2000-02-29 00:00:00.5",
                                                   "1998-12-01 25:00:00",
                                                   "NaN",
                                                   "Infinity",
                                                   "-Infinity",
                                                   "1e5",
                                                   "1.5e300",
                                                   "1e-320",
                                                   "0.1",
                                                   "3.4028235e38",
                                                   "16777217",
                                                   "-0"};
  return strings;
}

ColumnVector MakeValues(const ColumnSpec& spec, size_t rows, Random& random) {
  ColumnVector out;
  out.type = spec.type;
  const Form& f = spec.form;
  if (f.nulls && rows > 0) {
    out.null.assign(rows, f.all_null ? 1 : 0);
    const size_t one_in = std::vector<size_t>{2, 7, 50}[Below(random, 3)];
    for (size_t i = 0; i < rows && !f.all_null; ++i) out.null[i] = random() % one_in == 0 ? 1 : 0;
  }
  if (spec.type.id == TypeId::kText) {
    const std::vector<std::string>& strings = spec.strings != nullptr ? *spec.strings : PlainStrings();
    const size_t entries = f.chunk.encoding == Encoding::kConstant                           ? 1
                           : f.chunk.encoding == Encoding::kDictionary && f.chunk.width == 1 ? 200
                                                                                             : 3000;
    const size_t some = std::min(
        spec.distinct == 0 ? std::min<size_t>(entries, strings.size() + Below(random, entries)) : spec.distinct,
        entries);
    const size_t first = Below(random, strings.size());
    if (rows > 0) out.offsets.push_back(0);
    for (size_t i = 0; i < rows; ++i) {
      if (!out.IsNull(i)) {
        const size_t k = f.chunk.encoding == Encoding::kConstant ? 0
                         : i < strings.size()                    ? i % some
                                                                 : Below(random, some);
        if (k < strings.size()) {
          out.bytes += strings[(first + k) % strings.size()];
        } else if (spec.strings == nullptr) {
          out.bytes += fmt::format("{}{}", k % 3 == 0 ? "Key " : "k", k * 7919);
        } else {
          out.bytes += std::to_string(k * 7919);
        }
      }
      out.offsets.push_back(out.bytes.size());
    }
    return out;
  }
  std::vector<int128_t> edges;
  for (int128_t v : EdgesOf(spec.type, f.low, f.high)) {
    if (IsValue(spec.type, v)) edges.push_back(v);
  }
  const size_t start = Below(random, edges.size() * spec.stride + 1);
  const bool wide = spec.type.storage() == StorageClass::kWide;
  for (size_t i = 0; i < rows; ++i) {
    int128_t v = edges.empty() ? f.low : edges[(start + i) / spec.stride % edges.size()];
    if (edges.empty() || (i % 5 == 4 && f.low != f.high)) {
      const int128_t r = RandomBetween(random, f.low, f.high);
      if (IsValue(spec.type, r)) v = r;
    }
    // Of a narrow frame's codes one must be left for NULL.
    if (f.nulls && f.chunk.null_code == ChunkForm::NullCode::kGap && f.chunk.width <= 2 && v == f.low + 37) v = f.low;
    if (out.IsNull(i)) v = 0;
    if (wide) {
      out.wide.push_back(v);
    } else {
      out.fixed.push_back(out.IsNull(i) ? 0 : FromOrdered(spec.type, v));
    }
  }
  return out;
}

ColumnVector Integers(const SqlType& type, std::vector<int64_t> values) {
  ColumnVector c;
  c.type = type;
  c.fixed = std::move(values);
  return c;
}

Form FrameForm(int width, bool nulls) {
  Form f;
  f.chunk.width = width;
  f.nulls = nulls;
  return f;
}

}  // namespace tessera::test::walk
