// Text as JSON has it.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// Appends the text in quotes, with escapes. What is no UTF-8 becomes U+FFFD.
void AppendInJsonQuotes(std::string_view text, std::string* out);

}  // namespace tessera
