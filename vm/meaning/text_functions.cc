#include "vm/meaning/text_functions.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "tablet/values/enum_type.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/value_parser.h"
#include "vm/meaning/interval_meaning.h"
#include "vm/meaning/like.h"

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

namespace {

/// The rest of a digest's text after whole blocks: a bit, zeros up to the last eight bytes of a block, and the number of
/// bits, whose last byte is the greatest one or, `big_endian`, the least.
size_t EndOfDigest(std::string_view s, bool big_endian, std::array<char, 128>* end) {
  const size_t rest = s.size() % 64;
  end->fill(0);
  if (rest > 0) memcpy(end->data(), s.data() + s.size() - rest, rest);
  (*end)[rest] = static_cast<char>(0x80);
  const size_t size = rest < 56 ? 64 : 128;
  uint64_t bits = uint64_t{s.size()} * 8;
  if (big_endian) bits = __builtin_bswap64(bits);
  memcpy(end->data() + size - 8, &bits, 8);
  return size;
}

std::array<uint32_t, 4> Md5Of(std::string_view s) {
  std::array<uint32_t, 4> state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
  for (size_t at = 0; s.size() - at >= 64; at += 64) DigestBlock(s.data() + at, &state);
  std::array<char, 128> end;
  const size_t size = EndOfDigest(s, false, &end);
  for (size_t i = 0; i < size; i += 64) DigestBlock(end.data() + i, &state);
  return state;
}

void AppendHexOf(uint32_t byte, std::string* out) {
  out->push_back("0123456789abcdef"[byte >> 4 & 15]);
  out->push_back("0123456789abcdef"[byte & 15]);
}

/// One block of SHA-256, in the order of FIPS 180-4, section 6.2.2.
void ShaBlock(const char* block, std::array<uint32_t, 8>* state) {
  constexpr std::array<uint32_t, 64> kRounds = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  const auto turn = [](uint32_t x, int by) { return std::rotr(x, by); };
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t) {
    uint32_t word;
    memcpy(&word, block + 4 * t, 4);
    w[t] = __builtin_bswap32(word);
  }
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t a = w[t - 15], b = w[t - 2];
    w[t] = w[t - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
  }
  std::array<uint32_t, 8> v = *state;  // a to h
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t e = v[4], a = v[0];
    const uint32_t one =
        v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + kRounds[t] + w[t];
    const uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    std::rotate(v.begin(), v.end() - 1, v.end());
    v[4] += one;
    v[0] = one + two;
  }
  for (size_t i = 0; i < 8; ++i) (*state)[i] += v[i];
}

}  // namespace

void Md5T::Apply(std::string_view s, std::string* out) {
  out->clear();
  for (uint32_t word : Md5Of(s)) {
    for (int byte = 0; byte < 4; ++byte, word >>= 8) AppendHexOf(word, out);
  }
}

int64_t HashT::Apply(std::string_view s) {
  const std::array<uint32_t, 4> digest = Md5Of(s);
  return static_cast<int64_t>(uint64_t{__builtin_bswap32(digest[0])} << 32 | __builtin_bswap32(digest[1]));
}

void Sha256T::Apply(std::string_view s, std::string* out) {
  std::array<uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (size_t at = 0; s.size() - at >= 64; at += 64) ShaBlock(s.data() + at, &state);
  std::array<char, 128> end;
  const size_t size = EndOfDigest(s, true, &end);
  for (size_t i = 0; i < size; i += 64) ShaBlock(end.data() + i, &state);
  out->clear();
  for (const uint32_t word : state) {
    for (int shift = 24; shift >= 0; shift -= 8) AppendHexOf(word >> shift, out);
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
