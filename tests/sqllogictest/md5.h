// MD5 (RFC 1321): only because the sqllogictest format hashes long results with it.
//
// Start at: Md5Hex. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// The digest of `bytes` as 32 lower-case hexadecimal digits.
std::string Md5Hex(std::string_view bytes);

}  // namespace tessera
