// The version that `tessera --version` and version() give.
#pragma once

namespace tessera {

inline constexpr const char* kVersion = "0.3.0";

}  // namespace tessera
