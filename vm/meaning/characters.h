// Characters of texts, which are UTF-8: they are counted by lead bytes. Text that is not UTF-8 gives some part of it, never
// a read outside of it. Any thread.
//
// Start at: CharacterOffset, Substring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera::vm {

/// A longer text is an error, as in PostgreSQL.
inline constexpr int64_t kMostTextBytes = (int64_t{1} << 30) - 1;

constexpr bool IsLeadByte(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

inline int64_t CharacterCount(std::string_view s) {
  int64_t n = 0;
  for (char c : s) n += IsLeadByte(c) ? 1 : 0;
  return n;
}

/// Byte offset of character `index` (from 0), or s.size() if there are fewer.
inline size_t CharacterOffset(std::string_view s, int64_t index) {
  size_t i = 0;
  for (; i < s.size(); ++i) {
    if (IsLeadByte(s[i]) && index-- == 0) return i;
  }
  return i;
}

/// SUBSTRING(s FROM from FOR length): the characters from..from+length-1 that exist, counted from 1. REQUIRES: length
/// >= 0 if has_length.
inline std::string_view Substring(std::string_view s, int64_t from, bool has_length, int64_t length) {
  int64_t end = INT64_MAX;  // exclusive
  if (has_length && __builtin_add_overflow(from, length, &end)) end = INT64_MAX;
  if (from < 1) from = 1;
  if (end <= from) return {};
  size_t a = CharacterOffset(s, from - 1);
  std::string_view rest = s.substr(a);
  return rest.substr(0, end == INT64_MAX ? rest.size() : CharacterOffset(rest, end - from));
}

/// The same, in bytes.
inline std::string_view Subbytes(std::string_view s, int64_t from, bool has_length, int64_t length) {
  int64_t end = INT64_MAX;
  if (has_length && __builtin_add_overflow(from, length, &end)) end = INT64_MAX;
  if (from < 1) from = 1;
  if (end <= from || static_cast<uint64_t>(from) > s.size()) return {};
  return s.substr(static_cast<size_t>(from - 1), static_cast<size_t>(end - from));
}

}  // namespace tessera::vm
