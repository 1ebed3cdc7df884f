#include "base/display_width.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

namespace tessera {
namespace {

constexpr char32_t kEmojiPresentation = 0xFE0F;

size_t CharacterWidth(char32_t c) {
  return c < 0x0300 ? 1 : static_cast<size_t>(utf8proc_charwidth(static_cast<utf8proc_int32_t>(c)));
}

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

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

size_t TakeCluster(std::string_view* rest) {
  if (IsAscii((*rest)[0]) && (rest->size() == 1 || IsAscii((*rest)[1]))) {  // most are
    rest->remove_prefix(1);
    return 1;
  }
  constexpr size_t kWidest = 2;
  char32_t last = NextCharacter(rest);
  size_t width = CharacterWidth(last);
  utf8proc_int32_t state = 0;
  while (!rest->empty()) {
    std::string_view after = *rest;
    const char32_t c = NextCharacter(&after);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last), static_cast<utf8proc_int32_t>(c), &state))
      break;
    width = c == kEmojiPresentation ? kWidest : std::min(kWidest, width + CharacterWidth(c));
    last = c;
    *rest = after;
  }
  return width;
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += TakeCluster(&text);
  return width;
}

std::string CutToWidth(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return {};
  size_t taken = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view before = rest;
    const size_t w = TakeCluster(&rest);
    if (taken + w > width - 1) {
      rest = before;
      break;
    }
    taken += w;
  }
  return std::string(text.substr(0, text.size() - rest.size())) + std::string(kEllipsis);
}

}  // namespace tessera
