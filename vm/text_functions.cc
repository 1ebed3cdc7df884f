#include "vm/text_functions.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "tablet/enum_type.h"
#include "tablet/row_batch.h"
#include "tablet/value_parser.h"
#include "vm/text_meaning.h"

namespace tessera::vm {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The first character of a text that is not empty.
std::string_view FirstCharacter(std::string_view s) {
  size_t end = 1;
  while (end < s.size() && !IsLeadByte(s[end])) ++end;
  return s.substr(0, end);
}

/// Byte offset of the n-th character from the end, or 0 if there are fewer.
size_t OffsetFromEnd(std::string_view s, int64_t n) {
  size_t i = s.size();
  while (i > 0 && n > 0) {
    if (IsLeadByte(s[--i])) --n;
  }
  return i;
}

/// -n, and the greatest number for the least.
int64_t Opposite(int64_t n) { return n == kInt64Min ? kInt64Max : -n; }

bool IsTooLong(size_t bytes, int64_t times, Lane& lane) {
  if (bytes == 0 || times <= kMostTextBytes / static_cast<int64_t>(bytes)) return false;
  lane.error = LaneError::kTextTooLong;
  return true;
}

void Pad(std::string_view s, int64_t n, std::string_view fill, bool left, std::string* out, Lane& lane) {
  out->clear();
  if (n <= 0) return;
  const int64_t missing = n - CharacterCount(s);
  if (missing <= 0 || fill.empty()) {
    out->assign(s.substr(0, CharacterOffset(s, n)));
    return;
  }
  const int64_t whole = std::max<int64_t>(CharacterCount(fill), 1);
  const std::string_view rest = fill.substr(0, CharacterOffset(fill, missing % whole));
  const int64_t bytes = static_cast<int64_t>(fill.size());
  if (missing / whole > kMostTextBytes / bytes ||
      IsTooLong(1, missing / whole * bytes + static_cast<int64_t>(rest.size() + s.size()), lane)) {
    lane.error = LaneError::kTextTooLong;
    return;
  }
  if (!left) out->append(s);
  for (int64_t i = 0; i < missing / whole; ++i) out->append(fill);
  out->append(rest);
  if (left) out->append(s);
}

// ---- MD5 ------------------------------------------------------------------------------------------------------------

/// RFC 1321, section 3.4: T[i] is the integer part of 2^32 times |sin(i + 1)|.
std::array<uint32_t, 64> SineTable() {
  std::array<uint32_t, 64> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<uint32_t>(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0);
  }
  return table;
}

void DigestBlock(const char* block, std::array<uint32_t, 4>* state) {
  static const std::array<uint32_t, 64> kSines = SineTable();
  constexpr int kShifts[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
  uint32_t words[16];
  memcpy(words, block, sizeof words);
  auto [a, b, c, d] = *state;
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t round = i / 16;
    const uint32_t f = round == 0   ? ((b & c) | (~b & d))
                       : round == 1 ? ((d & b) | (~d & c))
                       : round == 2 ? (b ^ c ^ d)
                                    : (c ^ (b | ~d));
    const uint32_t word = round == 0 ? i : round == 1 ? 5 * i + 1 : round == 2 ? 3 * i + 5 : 7 * i;
    const uint32_t sum = a + f + kSines[i] + words[word % 16];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kShifts[4 * round + i % 4]);
  }
  (*state)[0] += a;
  (*state)[1] += b;
  (*state)[2] += c;
  (*state)[3] += d;
}

/// Appends f(character) for each character of well-formed UTF-8. A byte that is none stays as it is.
template <class F>
void MapCharacters(std::string_view s, std::string* out, F f) {
  out->clear();
  while (!s.empty()) {
    int32_t c = 0;
    const utf8proc_ssize_t size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(s.data()),
                                                   static_cast<utf8proc_ssize_t>(s.size()), &c);
    if (size <= 0) {
      out->push_back(s[0]);
      s.remove_prefix(1);
      continue;
    }
    std::array<utf8proc_uint8_t, 4> bytes;
    const utf8proc_ssize_t written = utf8proc_encode_char(f(c), bytes.data());
    out->append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(written));
    s.remove_prefix(static_cast<size_t>(size));
  }
}

/// By Unicode, and in PostgreSQL, the upper case of a sharp s is two letters, so it stays as it is; utf8proc has a capital.
int32_t ToUpper(int32_t c) { return c == 0xDF ? c : utf8proc_toupper(c); }

}  // namespace

namespace meaning {

void ReverseT::Apply(std::string_view s, std::string* out) {
  out->clear();
  while (!s.empty()) {
    const size_t last = OffsetFromEnd(s, 1);
    out->append(s.substr(last));
    s = s.substr(0, last);
  }
}

void MapLetters(std::string_view s, bool upper, std::string* out) {
  MapCharacters(s, out, upper ? ToUpper : utf8proc_tolower);
}

void InitcapT::Apply(std::string_view s, std::string* out) {
  bool inside = false;  // of a word: letters, their marks, and numbers
  MapCharacters(s, out, [&](int32_t c) {
    const int32_t mapped = inside ? utf8proc_tolower(c) : ToUpper(c);
    const utf8proc_category_t category = utf8proc_category(c);
    inside = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
    return mapped;
  });
}

void Md5T::Apply(std::string_view s, std::string* out) {
  std::array<uint32_t, 4> state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
  size_t at = 0;
  for (; s.size() - at >= 64; at += 64) DigestBlock(s.data() + at, &state);
  // The rest, a bit, zeros up to the last eight bytes of a block, and the number of bits.
  std::array<char, 128> end{};
  const size_t rest = s.size() - at;
  if (rest > 0) memcpy(end.data(), s.data() + at, rest);
  end[rest] = static_cast<char>(0x80);
  const size_t size = rest < 56 ? 64 : 128;
  const uint64_t bits = uint64_t{s.size()} * 8;
  memcpy(end.data() + size - 8, &bits, 8);
  for (size_t i = 0; i < size; i += 64) DigestBlock(end.data() + i, &state);
  out->clear();
  for (uint32_t word : state) {
    for (int byte = 0; byte < 4; ++byte, word >>= 8) {
      out->push_back("0123456789abcdef"[word >> 4 & 15]);
      out->push_back("0123456789abcdef"[word & 15]);
    }
  }
}

int64_t AsciiT::Apply(std::string_view s) {
  if (s.empty()) return 0;
  const std::string_view c = FirstCharacter(s);
  const auto byte = [&](size_t i) { return static_cast<int64_t>(static_cast<unsigned char>(c[i])); };
  if (c.size() == 1 || c.size() > 4 || byte(0) < 0xC0) return byte(0);
  int64_t code = byte(0) & (0x7F >> c.size());
  for (size_t i = 1; i < c.size(); ++i) code = code << 6 | (byte(i) & 0x3F);
  return code;
}

void ChrT::Apply(int64_t code, std::string* out, Lane& lane) {
  out->clear();
  if (code <= 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    lane.error = LaneError::kNoCharacter;
    return;
  }
  const auto add = [&](int64_t byte) { out->push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code < 0x80) {
    add(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  add((0xFF00 >> (more + 1) & 0xFF) | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) add(0x80 | (code >> (6 * i) & 0x3F));
}

void LeftT::Apply(std::string_view s, int64_t n, std::string* out, Lane&) {
  out->assign(s.substr(0, n >= 0 ? CharacterOffset(s, n) : OffsetFromEnd(s, Opposite(n))));
}
void RightT::Apply(std::string_view s, int64_t n, std::string* out, Lane&) {
  out->assign(s.substr(n >= 0 ? OffsetFromEnd(s, n) : CharacterOffset(s, Opposite(n))));
}
void RepeatT::Apply(std::string_view s, int64_t n, std::string* out, Lane& lane) {
  out->clear();
  if (s.empty() || IsTooLong(s.size(), n, lane)) return;
  if (n > 0) out->reserve(s.size() * static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) out->append(s);
}

namespace {

/// Zeros and bytes beyond ASCII as octal numbers, \ as \\: as PostgreSQL.
void Escape(std::string_view s, std::string* out) {
  for (const char c : s) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0 || byte > 127) {
      out->push_back('\\');
      for (const int shift : {6, 3, 0}) out->push_back(static_cast<char>('0' + (byte >> shift & 7)));
    } else {
      if (c == '\\') out->push_back(c);
      out->push_back(c);
    }
  }
}

}  // namespace

void EncodeT::Apply(std::string_view s, int64_t n, std::string* out, Lane&) {
  out->clear();
  if (n == kByteaForm) return AppendBytea(s, out);
  if (n == kEscapeForm) return Escape(s, out);
  if (n != kBase64Form) return AppendHex(s, out);
  constexpr size_t kLine = 57;  // bytes of a line of 76 characters, which ends with a line feed: as PostgreSQL
  for (size_t i = 0; i < s.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < s.size() ? static_cast<unsigned char>(s[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out->push_back(i + k > s.size() ? '=' : kBase64[bits >> (18 - 6 * k) & 63]);
    if (i + 3 <= s.size() && (i + 3) % kLine == 0) out->push_back('\n');
  }
}

namespace {

/// Blanks between the symbols are passed over; = ends a text whose bytes are not threes.
bool FromBase64(std::string_view s, std::string* out) {
  uint32_t bits = 0;
  int symbols = 0, ends = 0;
  for (const char c : s) {
    if (IsBlank(c)) continue;
    const size_t value = c == '=' ? 0 : kBase64.find(c);
    if (value == std::string_view::npos || (c != '=' && ends > 0)) return false;
    ends += c == '=' ? 1 : 0;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (++symbols < 4) continue;
    if (ends > 2) return false;
    for (int k = 0; k < 3 - ends; ++k) out->push_back(static_cast<char>(bits >> (16 - 8 * k)));
    bits = 0;
    symbols = ends > 0 ? 4 : 0;  // nothing may follow
  }
  return symbols == 0 || (symbols == 4 && ends > 0);
}

}  // namespace

void DecodeT::Apply(std::string_view s, int64_t n, std::string* out, Lane& lane) {
  out->clear();
  const bool good = n == kByteaForm    ? ParseBytea(s, out) == ParseError::kNone
                    : n == kBase64Form ? FromBase64(s, out)
                    : n == kEscapeForm ? AppendFromEscape(s, out)
                                       : AppendFromHex(s, out);
  if (!good) lane.error = LaneError::kNoBytes;
}

int64_t PositionT::Apply(std::string_view s, std::string_view part) {
  const size_t at = s.find(part);
  return at == std::string_view::npos ? 0 : CharacterCount(s.substr(0, at)) + 1;
}

int64_t LikeT::Apply(std::string_view s, std::string_view pattern) { return LikeMatches(s, pattern) ? 1 : 0; }

Result<int64_t> LabelT::Apply(std::string_view s, std::string_view list) { return PlaceOfLabel(list, s); }

void ReplaceT::Apply(std::string_view s, std::string_view from, std::string_view to, std::string* out, Lane& lane) {
  out->clear();
  size_t begin = 0;
  while (!from.empty()) {
    const size_t at = s.find(from, begin);
    if (at == std::string_view::npos) break;
    out->append(s.substr(begin, at - begin));
    out->append(to);
    begin = at + from.size();
    if (IsTooLong(1, static_cast<int64_t>(out->size()), lane)) return;
  }
  out->append(s.substr(begin));
}

void TranslateT::Apply(std::string_view s, std::string_view from, std::string_view to, std::string* out, Lane& lane) {
  out->clear();
  while (!s.empty()) {
    const std::string_view c = FirstCharacter(s);
    s = s.substr(c.size());
    // The first of equal characters of `from` counts.
    std::string_view f = from, t = to, result = c;
    for (; !f.empty(); f = f.substr(FirstCharacter(f).size())) {
      const std::string_view by = t.empty() ? t : FirstCharacter(t);
      if (FirstCharacter(f) == c) {
        result = by;
        break;
      }
      t = t.substr(by.size());
    }
    out->append(result);
  }
  (void)IsTooLong(1, static_cast<int64_t>(out->size()), lane);
}

void LpadT::Apply(std::string_view s, int64_t n, std::string_view fill, std::string* out, Lane& lane) {
  Pad(s, n, fill, true, out, lane);
}
void RpadT::Apply(std::string_view s, int64_t n, std::string_view fill, std::string* out, Lane& lane) {
  Pad(s, n, fill, false, out, lane);
}

void SplitPartT::Apply(std::string_view s, std::string_view delimiter, int64_t n, std::string* out, Lane& lane) {
  out->clear();
  if (n == 0) {
    lane.error = LaneError::kFieldZero;
    return;
  }
  if (delimiter.empty()) {  // the text is the only field
    if (n == 1 || n == -1) out->assign(s);
    return;
  }
  if (n < 0) {
    int64_t fields = 1;
    for (size_t at = 0; (at = s.find(delimiter, at)) != std::string_view::npos; at += delimiter.size()) ++fields;
    if (n < -fields) return;
    n += fields + 1;
  }
  size_t begin = 0;
  for (; n > 1; --n) {
    const size_t at = s.find(delimiter, begin);
    if (at == std::string_view::npos) return;
    begin = at + delimiter.size();
  }
  out->assign(s.substr(begin, s.find(delimiter, begin) - begin));
}

// ---- Zone

int64_t ZoneLocalI::Apply(const TimeZone& zone, int64_t moment, Lane& lane) {
  const int64_t local = IsMoment(moment) ? zone.LocalOf(moment) : INT64_MAX;
  if (!IsLocalTime(local)) lane.error = LaneError::kDateRange;
  return local;
}

int64_t ZoneMomentI::Apply(const TimeZone& zone, int64_t local, Lane& lane) {
  const int64_t moment = IsLocalTime(local) ? zone.MomentOf(local) : INT64_MAX;
  if (!IsMoment(moment)) lane.error = LaneError::kDateRange;
  return moment;
}

void ZoneTextT::Apply(const TimeZone& zone, int64_t moment, std::string* out) {
  *out = ToText(Value::Int(SqlType::Of(TypeId::kTimestampTz), moment), IsMoment(moment) ? &zone : nullptr);
}

Result<int64_t> ZoneParseT::Apply(const TimeZone& zone, std::string_view text) {
  TESSERA_ASSIGN(const Value value, ParseValue(text, SqlType::Of(TypeId::kTimestampTz), &zone));
  return value.i64;
}

}  // namespace meaning
}  // namespace tessera::vm
