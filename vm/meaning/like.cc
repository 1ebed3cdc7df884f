#include "vm/meaning/like.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/interrupt.h"

namespace tessera::vm {
namespace {

/// What stands between two % of a pattern.
struct Part {
  std::string bytes;      ///< without escapes
  std::vector<bool> any;  ///< of each byte: it is a _ and stands for a character
  bool has_any = false;
};

/// Reads the part at *at and goes after it.
Part ReadPart(std::string_view pattern, size_t* at) {
  Part part;
  for (; *at < pattern.size() && pattern[*at] != '%'; ++*at) {
    const bool any = pattern[*at] == '_';
    if (pattern[*at] == '\\' && *at + 1 < pattern.size()) ++*at;
    part.bytes += pattern[*at];
    part.any.push_back(any);
    part.has_any = part.has_any || any;
  }
  return part;
}

/// Whether `s` ends with the part.
bool EndsWith(std::string_view s, const Part& part) {
  size_t i = s.size();
  for (size_t k = part.bytes.size(); k-- > 0;) {
    if (i-- == 0) return false;
    if (!part.any[k]) {
      if (s[i] != part.bytes[k]) return false;
      continue;
    }
    while (i > 0 && !IsLeadByte(s[i])) --i;
  }
  return true;
}

/// Where the first match of a part with _ ends. A bit of the state says that the part up to that element has been
/// matched up to this byte.
size_t FindEndOfPartWithAny(std::string_view s, const Part& part) {
  const size_t size = part.bytes.size(), words = (size + 63) / 64;
  // For each byte the elements that it matches; bytes that the part does not hold have a row of zeros in common.
  std::array<size_t, 256> row{};
  size_t rows = 1;
  for (size_t k = 0; k < size; ++k) {
    size_t& r = row[static_cast<uint8_t>(part.bytes[k])];
    if (!part.any[k] && r == 0) r = rows++;
  }
  std::vector<uint64_t> equal(rows * words), any(words), state(words);
  for (size_t k = 0; k < size; ++k) {
    uint64_t& word = part.any[k] ? any[k / 64] : equal[row[static_cast<uint8_t>(part.bytes[k])] * words + k / 64];
    word |= uint64_t{1} << (k % 64);
  }
  const uint64_t last = uint64_t{1} << ((size - 1) % 64);
  size_t live = 0;  // words of the state after these are 0
  for (size_t i = 0; i < s.size(); ++i) {
    if (i % 1024 == 0) ThrowIfInterrupted();
    const uint64_t* const same = &equal[row[static_cast<uint8_t>(s[i])] * words];
    // A _ takes the first byte of a character and stays for the others.
    const uint64_t lead = IsLeadByte(s[i]) ? ~uint64_t{0} : 0;
    uint64_t carry = 1;
    const size_t end = std::min(words, live + 1);
    live = 0;
    for (size_t w = 0; w < end; ++w) {
      const uint64_t before = state[w];
      state[w] = (((before << 1) | carry) & (same[w] | (any[w] & lead))) | (before & any[w] & ~lead);
      carry = before >> 63;
      if (state[w] != 0) live = w + 1;
    }
    if ((state[words - 1] & last) == 0) continue;
    ++i;
    while (part.any[size - 1] && i < s.size() && !IsLeadByte(s[i])) ++i;
    return i;
  }
  return std::string_view::npos;
}

size_t FindEndOfPart(std::string_view s, const Part& part) {
  if (part.has_any) return FindEndOfPartWithAny(s, part);
  const void* const found = memmem(s.data(), s.size(), part.bytes.data(), part.bytes.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - s.data()) + part.bytes.size();
}

}  // namespace

bool LikeBehindPercent(std::string_view s, std::string_view pattern) {
  for (size_t at = 0;; ++at) {
    const Part part = ReadPart(pattern, &at);
    if (at == pattern.size()) return EndsWith(s, part);
    if (part.bytes.empty()) continue;
    const size_t end = FindEndOfPart(s, part);
    if (end == std::string_view::npos) return false;
    s.remove_prefix(end);
  }
}

namespace {

#ifdef __AVX2__
constexpr size_t kPlaces = 32;  ///< tested at once

/// The first of the `places` first places of `text` where `part` begins, or npos. REQUIRES: kPlaces + part.size() - 1
/// bytes can be read.
size_t FindInBlock(const char* text, size_t places, std::string_view part) {
  const auto load = [&](size_t i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + i)); };
  const __m256i both = _mm256_and_si256(_mm256_cmpeq_epi8(load(0), _mm256_set1_epi8(part.front())),
                                        _mm256_cmpeq_epi8(load(part.size() - 1), _mm256_set1_epi8(part.back())));
  auto found = static_cast<uint32_t>(_mm256_movemask_epi8(both));
  if (places < kPlaces) found &= (uint32_t{1} << places) - 1;
  for (; found != 0; found &= found - 1) {
    const auto place = static_cast<size_t>(__builtin_ctz(found));
    if (memcmp(text + place, part.data(), part.size()) == 0) return place;
  }
  return std::string_view::npos;
}
#endif

/// Where `part` first occurs in `s`, or npos. As string_view::find, but several times as fast where the first byte of
/// the part is a frequent one: many places are tested for its first and last byte at once.
size_t FindPart(std::string_view s, std::string_view part) {
#ifdef __AVX2__
  if (part.size() <= kPlaces) {
    size_t at = 0;
    for (; at + part.size() + kPlaces - 1 <= s.size(); at += kPlaces) {
      const size_t found = FindInBlock(s.data() + at, kPlaces, part);
      if (found != std::string_view::npos) return at + found;
    }
    if (at + part.size() > s.size()) return std::string_view::npos;
    char rest[2 * kPlaces];  // what follows the string is not its own
    memcpy(rest, s.data() + at, s.size() - at);
    memset(rest + (s.size() - at), 0, sizeof rest - (s.size() - at));
    const size_t found = FindInBlock(rest, s.size() - at - part.size() + 1, part);
    return found == std::string_view::npos ? found : at + found;
  }
#endif
  return s.find(part);
}

}  // namespace

LikePattern::LikePattern(std::string_view pattern) : pattern_(pattern) {
  const size_t first = pattern.find('%');
  literal_ = first != std::string_view::npos && pattern.find_first_of("_\\") == std::string_view::npos;
  if (!literal_) return;
  const size_t last = pattern.rfind('%');
  first_ = pattern.substr(0, first);
  last_ = pattern.substr(last + 1);
  for (size_t at = first + 1; at < last;) {
    const size_t end = pattern.find('%', at);
    if (end > at) middle_.push_back(pattern.substr(at, end - at));
    at = end + 1;
  }
}

bool LikePattern::Matches(std::string_view s) const {
  // Searching for substrings may take the product of the lengths.
  if (!literal_ || s.size() > 4096) return LikeMatches(s, pattern_);
  if (s.size() < first_.size() + last_.size() || !s.starts_with(first_) || !s.ends_with(last_)) return false;
  s = s.substr(first_.size(), s.size() - first_.size() - last_.size());
  for (const std::string_view part : middle_) {
    const size_t found = FindPart(s, part);
    if (found == std::string_view::npos) return false;
    s.remove_prefix(found + part.size());
  }
  return true;
}

}  // namespace tessera::vm
