// Sizes in messages: in the units in which sizes are given, so that a limit reads as it was set.
//
// Start at: SizeText. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// "512 bytes", "24.0 KiB", "16.0 MiB", "1.50 GiB": the greatest unit of which there is one.
std::string SizeText(uint64_t bytes);

}  // namespace tessera
