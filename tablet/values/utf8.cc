// UTF-8 validation, counting and quoting.
#include "tablet/values/utf8.h"

#include <cstdint>
#include <cstring>

namespace tessera {
namespace {

/// Length of the well-formed sequence at the start of `text` (not empty), or 0.
size_t SequenceLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  auto continues = [&](size_t i, uint8_t least, uint8_t greatest) {
    return i < text.size() && byte(i) >= least && byte(i) <= greatest;
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const uint8_t least = lead == 0xE0 ? 0xA0 : 0x80;
    const uint8_t greatest = lead == 0xED ? 0x9F : 0xBF;
    return continues(1, least, greatest) && continues(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const uint8_t least = lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t greatest = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(1, least, greatest) && continues(2, 0x80, 0xBF) && continues(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

/// Bytes at the start of `text` that are ASCII, counted in whole words and then singly.
size_t AsciiPrefix(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    memcpy(&word, text.data() + i, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (i < text.size() && static_cast<uint8_t>(text[i]) < 0x80) ++i;
  return i;
}

}  // namespace

size_t FindInvalidUtf8(std::string_view text) {
  size_t at = 0;
  for (;;) {
    at += AsciiPrefix(text.substr(at));
    if (at == text.size()) return std::string_view::npos;
    const size_t length = SequenceLength(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
}

size_t CountCharacters(std::string_view text) {
  size_t count = 0;
  for (char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

bool IsAscii(std::string_view text) { return AsciiPrefix(text) == text.size(); }

std::string QuoteForMessage(std::string_view text) {
  constexpr size_t kGreatestBytes = 60;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  size_t at = 0;
  while (at < text.size()) {
    if (at >= kGreatestBytes) {
      out += "...";
      break;
    }
    const size_t length = SequenceLength(text.substr(at));
    const uint8_t byte = static_cast<uint8_t>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
      ++at;
    } else {
      out.append(text, at, length);
      at += length;
    }
  }
  out += '"';
  return out;
}

}  // namespace tessera
