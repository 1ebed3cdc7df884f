// ASCII letters in lower case, whatever the locale, as names of options, of units and of types are compared.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

inline char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string LowerCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = LowerCase(c);
  return out;
}

}  // namespace tessera
