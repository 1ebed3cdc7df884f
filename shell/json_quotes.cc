#include "shell/json_quotes.h"

#include <fmt/format.h>

#include "base/display_width.h"

namespace tessera {

void AppendInJsonQuotes(std::string_view text, std::string* out) {
  *out += '"';
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view before = rest;
    const char32_t c = NextCharacter(&rest);
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += static_cast<char>(c);
    } else if (c == '\n') {
      *out += "\\n";
    } else if (c == '\t') {
      *out += "\\t";
    } else if (c == '\r') {
      *out += "\\r";
    } else if (c < 0x20) {
      *out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else if (c == 0xFFFD) {
      *out += "\xEF\xBF\xBD";
    } else {
      *out += before.substr(0, before.size() - rest.size());
    }
  }
  *out += '"';
}

}  // namespace tessera
