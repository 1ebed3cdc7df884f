#include "shell/display_width.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tessera {
namespace {

struct CharacterRange {
  char32_t first, last;
};

// Unicode 15: combining marks of the common scripts, joiners and variation selectors.
constexpr std::array<CharacterRange, 14> kZeroWidth = {{{0x0300, 0x036F},
                                                        {0x0483, 0x0489},
                                                        {0x0591, 0x05BD},
                                                        {0x0610, 0x061A},
                                                        {0x064B, 0x065F},
                                                        {0x0E34, 0x0E3A},
                                                        {0x1AB0, 0x1AFF},
                                                        {0x1DC0, 0x1DFF},
                                                        {0x200B, 0x200F},
                                                        {0x202A, 0x202E},
                                                        {0x2060, 0x2064},
                                                        {0x20D0, 0x20FF},
                                                        {0xFE00, 0xFE0F},
                                                        {0xFE20, 0xFE2F}}};
// East Asian Width W and F, and the emoji that terminals draw two columns wide.
constexpr std::array<CharacterRange, 17> kTwoWide = {{{0x1100, 0x115F},
                                                      {0x231A, 0x231B},
                                                      {0x2329, 0x232A},
                                                      {0x23E9, 0x23EC},
                                                      {0x2E80, 0x303E},
                                                      {0x3041, 0x33FF},
                                                      {0x3400, 0x4DBF},
                                                      {0x4E00, 0x9FFF},
                                                      {0xA000, 0xA4CF},
                                                      {0xAC00, 0xD7A3},
                                                      {0xF900, 0xFAFF},
                                                      {0xFE30, 0xFE6F},
                                                      {0xFF00, 0xFF60},
                                                      {0xFFE0, 0xFFE6},
                                                      {0x1F300, 0x1F64F},
                                                      {0x1F680, 0x1F9FF},
                                                      {0x20000, 0x3FFFD}}};

template <size_t N>
bool In(const std::array<CharacterRange, N>& ranges, char32_t c) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), c,
                                      [](char32_t v, const CharacterRange& r) { return v < r.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

size_t CharacterWidth(char32_t c) {
  if (c < 0x0300) return 1;
  return In(kZeroWidth, c) ? 0 : In(kTwoWide, c) ? 2 : 1;
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "…";

}  // namespace

char32_t NextCharacter(std::string_view* rest) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>((*rest)[i]); };
  const unsigned char first = byte(0);
  size_t length = first < 0x80                    ? 1
                  : first >= 0xC2 && first < 0xE0 ? 2
                  : first >= 0xE0 && first < 0xF0 ? 3
                  : first >= 0xF0 && first < 0xF5 ? 4
                                                  : 0;
  char32_t c = length <= 1 ? first : first & (0x7F >> length);
  if (length == 0 || length > rest->size()) {
    rest->remove_prefix(1);
    return 0xFFFD;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      rest->remove_prefix(1);
      return 0xFFFD;
    }
    c = c << 6 | (byte(i) & 0x3F);
  }
  // Overlong forms, surrogates and what lies beyond Unicode.
  if ((length == 3 && c < 0x800) || (length == 4 && (c < 0x10000 || c > 0x10FFFF)) || (c >= 0xD800 && c < 0xE000)) {
    rest->remove_prefix(1);
    return 0xFFFD;
  }
  rest->remove_prefix(length);
  return c;
}

std::string ValidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view before = rest;
    const char32_t c = NextCharacter(&rest);
    const std::string_view bytes = before.substr(0, before.size() - rest.size());
    out += c == 0xFFFD ? kReplacement : bytes;
  }
  return out;
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view before = rest;
    const char32_t c = NextCharacter(&rest);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c < 0x20 || (c >= 0x7F && c < 0xA0)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      out += c == 0xFFFD ? kReplacement : before.substr(0, before.size() - rest.size());
    }
  }
  return out;
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (std::string_view rest = text; !rest.empty();) width += CharacterWidth(NextCharacter(&rest));
  return width;
}

std::string CutToWidth(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return {};
  size_t taken = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view before = rest;
    const size_t w = CharacterWidth(NextCharacter(&rest));
    if (taken + w > width - 1) {
      rest = before;
      break;
    }
    taken += w;
  }
  return std::string(text.substr(0, text.size() - rest.size())) + std::string(kEllipsis);
}

}  // namespace tessera
