// UTF-8 in stored text: is it well formed, how many characters is it, and how is it shown in a message.
//
// Start at: FindInvalidUtf8, CountCharacters, QuoteForMessage. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

/// Offset of the first byte that does not belong to a well-formed sequence (The Unicode Standard, table 3-7: no
/// overlong forms, no surrogates, nothing above U+10FFFF), or npos. A NUL byte is well formed.
size_t FindInvalidUtf8(std::string_view text);

/// Characters (code points) of well-formed UTF-8; for other bytes, those that do not continue a sequence.
size_t CountCharacters(std::string_view text);

/// True if no byte is above 127; then a text has as many characters as bytes.
bool IsAscii(std::string_view text);

/// `text` in double quotes, for a message: cut to some 60 bytes at a character's end, control characters and bytes that
/// are not UTF-8 as \xNN, so that a message is always one line of well-formed text.
std::string QuoteForMessage(std::string_view text);

}  // namespace tessera
