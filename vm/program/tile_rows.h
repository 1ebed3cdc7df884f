// How many rows the host interpreter works on at a time.
#pragma once

namespace tessera::vm {

inline constexpr int kTileRows = 2048;

}  // namespace tessera::vm
