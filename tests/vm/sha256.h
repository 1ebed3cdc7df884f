// SHA-256 from its definition, with constants that are computed: a second meaning for the opcode.
//
// Start at: Sha256Hex. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// The digest as 64 hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

}  // namespace tessera
