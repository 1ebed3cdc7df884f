#include "server/wire_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <vector>

#include "base/int128.h"
#include "compiler/bind/array_text.h"
#include "compiler/bind/catalog_tables.h"
#include "tablet/values/array_type.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/interval.h"
#include "tablet/values/value_parser.h"

namespace tessera::server {
namespace {

/// From 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
constexpr int64_t kEpochDays = 10'957, kEpochMicros = kEpochDays * 86'400 * 1'000'000;
constexpr int32_t kSmallVectorOid = 22, kOidVectorOid = 30;
constexpr int32_t kOidOid = 26, kOidArrayOid = 1028;
constexpr int32_t kVarcharOid = 1043, kTextOid = 25, kNumericOid = 1700, kMomentOid = 1184;
constexpr auto kSignBit = static_cast<int128_t>(static_cast<uint128_t>(1) << 127);

const CatalogType* CatalogTypeOf(const SqlType& type) {
  if (type.id == TypeId::kEnum || type.id == TypeId::kNull) return nullptr;
  const std::string text = type.ToString();
  const std::string_view name = std::string_view(text).substr(0, text.find('('));
  const auto& types = CatalogTypes();
  const auto at = std::ranges::find_if(types, [&](const CatalogType& t) { return t.sql == name; });
  return at != types.end() ? &*at : nullptr;
}

/// By TypeId; nullptr: PostgreSQL has no such type.
const CatalogType* KnownType(TypeId id) {
  static const auto known = [] {
    std::array<const CatalogType*, static_cast<size_t>(TypeId::kEnum) + 1> types{};
    for (size_t i = 0; i < types.size(); ++i) types[i] = CatalogTypeOf(SqlType::Of(static_cast<TypeId>(i)));
    return types;
  }();
  return known[static_cast<size_t>(id)];
}

int128_t Unsigned(int64_t high, int64_t low) {
  return static_cast<int128_t>(static_cast<uint128_t>(static_cast<uint64_t>(high)) << 64 | static_cast<uint64_t>(low));
}

/// "-123.4500" in digits to the base 10,000.
void AppendNumeric(std::string_view text, MessageWriter* out) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const size_t point = std::min(text.find('.'), text.size());
  std::string whole(text.substr(0, point)), part(point < text.size() ? text.substr(point + 1) : "");
  const size_t scale = part.size();
  whole.insert(0, (4 - whole.size() % 4) % 4, '0');
  part.append((4 - part.size() % 4) % 4, '0');
  const std::string all = whole + part;
  std::vector<int16_t> digits;
  for (size_t i = 0; i < all.size(); i += 4)
    digits.push_back(static_cast<int16_t>(std::strtol(all.substr(i, 4).c_str(), nullptr, 10)));
  int weight = static_cast<int>(whole.size() / 4) - 1;
  while (!digits.empty() && digits.back() == 0) digits.pop_back();
  const auto first = std::ranges::find_if(digits, [](int16_t d) { return d != 0; });
  weight -= static_cast<int>(first - digits.begin());
  digits.erase(digits.begin(), first);
  out->Int16(static_cast<int16_t>(digits.size()));
  out->Int16(static_cast<int16_t>(digits.empty() ? 0 : weight));
  out->Int16(static_cast<int16_t>(negative && !digits.empty() ? 0x4000 : 0));
  out->Int16(static_cast<int16_t>(scale));
  for (const int16_t d : digits) out->Int16(d);
}

/// The digits of a number as SQL writes it.
Result<std::string> ReadNumeric(MessageReader* reader) {
  const int digits = reader->Int16(), weight = reader->Int16();
  const auto sign = static_cast<uint16_t>(reader->Int16());
  const int scale = reader->Int16();
  if (sign != 0 && sign != 0x4000)
    return Status(ErrorKind::kOutOfRange, "NaN and infinity are no values of type numeric here");
  // Some 40 digits are all that a value may have.
  if (digits < 0 || digits > 64 || weight > 64 || weight < -64 || scale < 0 || scale > 256)
    return Status(ErrorKind::kOutOfRange, "a numeric parameter has more digits than a DECIMAL");
  std::vector<int> values;
  for (int i = 0; i < digits; ++i) values.push_back(reader->Int16());
  if (std::ranges::any_of(values, [](int v) { return v < 0 || v > 9999; }))
    return ProtocolError("invalid digit in a numeric parameter");
  const auto four = [&](int at) {
    const int v = at >= 0 && at < digits ? values[static_cast<size_t>(at)] : 0;
    std::string text = std::to_string(v);
    return text.insert(0, 4 - text.size(), '0');
  };
  std::string text, part;
  for (int i = 0; i <= weight; ++i) text += four(i);
  for (int i = weight + 1; static_cast<int>(part.size()) < scale; ++i) part += i < 0 ? "0000" : four(i);
  part.resize(static_cast<size_t>(scale));
  text.erase(0, std::min(text.find_first_not_of('0'), text.size()));
  if (text.empty()) text = "0";
  return (sign != 0 ? "-" : "") + text + (part.empty() ? "" : "." + part);
}

/// DECIMAL(precision, scale) with exactly the digits of the text; a text that is no such takes the type of its place.
Value DecimalOf(const std::string& text) {
  Value as_text = Value::Text(text);
  as_text.type = SqlType::Of(TypeId::kNull);
  const size_t sign = text.find_first_not_of("+-");
  const std::string_view number = sign == text.npos ? std::string_view() : std::string_view(text).substr(sign);
  const size_t point = std::min(number.find('.'), number.size());
  const size_t scale = point < number.size() ? number.size() - point - 1 : 0;
  const size_t precision = std::max<size_t>(point + scale, 1);
  if (number.empty() || precision > 38 || number.find_first_not_of("0123456789.") != number.npos) return as_text;
  Result<Value> value = ParseValue(text, SqlType::Decimal(static_cast<int>(precision), static_cast<int>(scale)));
  return value.ok() ? *std::move(value) : as_text;
}

/// What SQL types hold of a binary value. `type`: one that is no DECIMAL.
Value ReadBinary(const SqlType& type, MessageReader* reader) {
  switch (type.id) {
    case TypeId::kBoolean:
      return Value::Int(type, reader->Byte() != 0 ? 1 : 0);
    case TypeId::kSmallint:
      return Value::Int(type, reader->Int16());
    case TypeId::kInteger:
      return Value::Int(type, reader->Int32());
    case TypeId::kBigint:
    case TypeId::kTime:
      return Value::Int(type, reader->Int64());
    case TypeId::kReal:
      return Value::Float(type, static_cast<double>(std::bit_cast<float>(reader->Int32())));
    case TypeId::kDouble:
      return Value::Float(type, std::bit_cast<double>(reader->Int64()));
    case TypeId::kDate:
      return Value::Int(type, reader->Int32() + kEpochDays);
    case TypeId::kTimestamp:
    case TypeId::kTimestampTz: {
      int64_t micros = 0;
      if (__builtin_add_overflow(reader->Int64(), kEpochMicros, &micros)) micros = INT64_MAX;
      return Value::Int(type, micros);
    }
    case TypeId::kInterval: {
      Interval v;
      v.micros = reader->Int64();
      v.days = reader->Int32();
      v.months = reader->Int32();
      return HoldsInterval(v.months, v.days, v.micros) ? Value::Wide(type, PackInterval(v)) : Value::Null(type);
    }
    case TypeId::kUuid: {
      const int64_t high = reader->Int64(), low = reader->Int64();
      return Value::Wide(type, Unsigned(high, low) ^ kSignBit);
    }
    case TypeId::kNull:
    case TypeId::kDecimal:
    case TypeId::kText:
    case TypeId::kBytea:
    case TypeId::kEnum:
      break;
  }
  Value v = Value::Text(std::string(reader->Rest()));
  v.type = type;
  return v;
}

/// The elements of an array, or of a vector. Errors: the text is none.
Result<std::vector<std::optional<std::string>>> ElementsOf(std::string_view text, const SqlType& type) {
  if (!IsVectorType(type)) return ElementsOfArray(text, -1);
  std::vector<std::optional<std::string>> elements;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    elements.emplace_back(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return elements;
}

/// The value of an array in binary form. A text that is no array, as a table may hold one, goes as an empty one.
void AppendArray(std::string_view text, const SqlType& type, MessageWriter* out) {
  const SqlType element = ElementOf(type);
  const auto elements = ElementsOf(text, type);
  const size_t count = elements.ok() ? elements->size() : 0;
  std::vector<ColumnVector> values(count);
  bool has_null = false;
  for (size_t i = 0; i < count; ++i) {
    values[i].type = element;
    const Result<Value> value = (*elements)[i] ? ParseValue(*(*elements)[i], element) : Value::Null(element);
    values[i].Append(value.ok() ? *value : Value::Null(element));
    has_null |= values[i].IsNull(0);
  }
  out->Int32(count == 0 ? 0 : 1);
  out->Int32(has_null ? 1 : 0);
  out->Int32(WireTypeOf(element).oid);
  if (count == 0) return;
  out->Int32(static_cast<int32_t>(count));
  out->Int32(IsVectorType(type) ? 0 : 1);  // the first subscript
  for (const ColumnVector& value : values) {
    if (value.IsNull(0)) {
      out->Int32(-1);
      continue;
    }
    MessageWriter bytes;
    AppendField(value, 0, true, &bytes);
    out->Int32(static_cast<int32_t>(bytes.buffer()->size()));
    out->Bytes(*bytes.buffer());
  }
}

/// The text of an array in binary form. Errors: it has several dimensions, or bytes are missing.
Result<std::string> ReadArray(MessageReader* reader) {
  const int dimensions = reader->Int32();
  reader->Int32();  // whether there are NULLs
  const int32_t oid = reader->Int32();
  if (dimensions < 0 || dimensions > 1)
    return Status(ErrorKind::kFeatureNotSupported, "an array of several dimensions is not supported");
  const int32_t count = dimensions == 0 ? 0 : reader->Int32();
  if (dimensions == 1) reader->Int32();  // the first subscript
  std::vector<std::optional<std::string>> elements;
  for (int32_t i = 0; i < count && !reader->failed(); ++i) {
    const int32_t size = reader->Int32();
    if (size < 0) {
      elements.emplace_back();
      continue;
    }
    TESSERA_ASSIGN(const Value value, ReadParameter(std::string(reader->Bytes(static_cast<size_t>(size))), true, oid));
    elements.emplace_back(value.type.id == TypeId::kNull ? value.text : ToText(value));
  }
  return ArrayText(elements);
}

/// Errors: the number is none of the type's, though its bytes are there.
Status CheckRange(const Value& v) {
  // Years 0001 to 9999.
  constexpr int64_t kFirstDay = -719'162, kLastDay = 2'932'896, kDay = int64_t{86'400} * 1'000'000;
  const bool is_wrong =
      (v.type.id == TypeId::kDate && (v.i64 < kFirstDay || v.i64 > kLastDay)) ||
      (v.type.id == TypeId::kTimestamp && (v.i64 < kFirstDay * kDay || v.i64 >= (kLastDay + 1) * kDay)) ||
      (v.type.id == TypeId::kTimestampTz && !IsMoment(v.i64)) ||
      (v.type.id == TypeId::kTime && (v.i64 < 0 || v.i64 >= kDay)) || (v.type.id == TypeId::kInterval && v.null);
  if (is_wrong) return {ErrorKind::kDatetimeOverflow, "a parameter is out of range for type " + v.type.ToString()};
  if (v.type.id != TypeId::kText) return {};
  const ParseError error = CheckText(v.text, v.type);
  return error == ParseError::kNone ? Status() : ParseFailure(error, v.text, v.type);
}

}  // namespace

WireType WireTypeOf(const SqlType& type) {
  WireType wire{kTextOid, -1, -1};
  if (IsVectorType(type)) {
    wire.oid = ElementOf(type).id == TypeId::kSmallint ? kSmallVectorOid : kOidVectorOid;
    return wire;
  }
  if (type == OidArray()) {
    wire.oid = kOidArrayOid;
    return wire;
  }
  if (IsArrayType(type)) {
    if (const CatalogType* const element = KnownType(ElementOf(type).id); element != nullptr)
      wire.oid = static_cast<int32_t>(element->array_oid);
    return wire;
  }
  if (type.id == TypeId::kEnum) {
    wire.oid = static_cast<int32_t>(OidOfEnum(EnumOf(type).name));
    wire.bytes = 4;
    return wire;
  }
  if (const CatalogType* const known = KnownType(type.id); known != nullptr) {
    wire.oid = static_cast<int32_t>(known->oid);
    wire.bytes = static_cast<int16_t>(known->bytes);
  }
  if (type.id == TypeId::kDecimal) wire.modifier = (type.precision << 16 | type.scale) + 4;
  if (type.id == TypeId::kText && type.length > 0) {
    wire.oid = kVarcharOid;
    wire.modifier = type.length + 4;
  }
  return wire;
}

std::optional<SqlType> TypeOfOid(int32_t oid) {
  constexpr int32_t kChar = 18, kName = 19, kJson = 114, kBlankPadded = 1042, kVarcharArray = 1015;
  if (oid == kOidOid) return SqlType::Of(TypeId::kBigint);
  if (oid == kOidArrayOid) return ArrayOf(SqlType::Of(TypeId::kBigint));
  if (oid == kVarcharArray) return ArrayOf(SqlType::Text());
  for (const int32_t of_text : {kChar, kName, kJson, kBlankPadded, kVarcharOid}) {
    if (oid == of_text) return SqlType::Text();
  }
  for (size_t i = 0; i <= static_cast<size_t>(TypeId::kEnum); ++i) {
    const CatalogType* const known = KnownType(static_cast<TypeId>(i));
    if (known != nullptr && known->oid == oid) return SqlType::Of(static_cast<TypeId>(i));
    if (known != nullptr && known->array_oid == oid) return ArrayOf(SqlType::Of(static_cast<TypeId>(i)));
  }
  return std::nullopt;
}

void AppendField(const ColumnVector& column, size_t row, bool binary, MessageWriter* out) {
  const TypeId id = column.type.id;
  if (id == TypeId::kBoolean) {
    out->Byte(binary ? static_cast<char>(column.fixed[row]) : column.fixed[row] != 0 ? 't' : 'f');
    return;
  }
  if (!binary) {
    AppendText(column, row, out->buffer());
    return;
  }
  if (IsArrayType(column.type)) return AppendArray(column.Text(row), column.type, out);
  switch (id) {
    case TypeId::kSmallint:
      return out->Int16(static_cast<int16_t>(column.fixed[row]));
    case TypeId::kInteger:
      return out->Int32(static_cast<int32_t>(column.fixed[row]));
    case TypeId::kBigint:
    case TypeId::kTime:
    case TypeId::kDouble:
      return out->Int64(column.fixed[row]);
    case TypeId::kReal:
      return out->Int32(std::bit_cast<int32_t>(static_cast<float>(column.Float(row))));
    case TypeId::kDate:
      return out->Int32(static_cast<int32_t>(column.fixed[row] - kEpochDays));
    case TypeId::kTimestamp:
    case TypeId::kTimestampTz:
      return out->Int64(column.fixed[row] - kEpochMicros);
    case TypeId::kDecimal: {
      std::string text;
      AppendText(column, row, &text);
      return AppendNumeric(text, out);
    }
    case TypeId::kInterval: {
      const Interval v = UnpackInterval(column.wide[row]);
      out->Int64(v.micros);
      out->Int32(static_cast<int32_t>(v.days));
      return out->Int32(static_cast<int32_t>(v.months));
    }
    case TypeId::kUuid: {
      const int128_t v = column.wide[row] ^ kSignBit;
      out->Int64(static_cast<int64_t>(v >> 64));
      return out->Int64(static_cast<int64_t>(v));
    }
    case TypeId::kBytea:
      return out->Bytes(column.Text(row));
    case TypeId::kNull:
    case TypeId::kBoolean:
    case TypeId::kText:
    case TypeId::kEnum:
      return AppendText(column, row, out->buffer());
  }
}

Result<Value> ReadParameter(const std::optional<std::string>& bytes, bool binary, int32_t oid) {
  const SqlType type = TypeOfOid(oid).value_or(SqlType::Of(TypeId::kNull));
  if (!bytes) return Value::Null(oid == kNumericOid ? SqlType::Of(TypeId::kNull) : type);
  if (!binary) {
    if (oid == kNumericOid) return DecimalOf(*bytes);
    // (A moment that does not say its zone is one of the session's.)
    if (type.id != TypeId::kNull && oid != kMomentOid) return ParseValue(*bytes, type);
    Value v = Value::Text(*bytes);
    v.type = SqlType::Of(TypeId::kNull);
    return v;
  }
  MessageReader reader(*bytes);
  if (oid == kOidOid && bytes->size() == 4) return Value::Int(type, static_cast<uint32_t>(reader.Int32()));
  if (oid == kNumericOid) {
    TESSERA_ASSIGN(const std::string text, ReadNumeric(&reader));
    TESSERA_TRY(reader.End());
    return DecimalOf(text);
  }
  if (IsArrayType(type)) {
    TESSERA_ASSIGN(const std::string text, ReadArray(&reader));
    if (!reader.End().ok())
      return ProtocolError("incorrect binary data format in a parameter of type " + type.ToString());
    Value array = Value::Text(text);
    array.type = type;
    return array;
  }
  Value v = ReadBinary(type, &reader);
  if (!reader.End().ok())
    return ProtocolError("incorrect binary data format in a parameter of type " + type.ToString());
  TESSERA_TRY(CheckRange(v));
  return v;
}

}  // namespace tessera::server
