#include "base/size_text.h"

#include <cstdio>

namespace tessera {

std::string SizeText(uint64_t bytes) {
  constexpr uint64_t kKib = uint64_t{1} << 10, kMib = uint64_t{1} << 20, kGib = uint64_t{1} << 30;
  if (bytes < kKib) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  // What would be rounded up to 1024 of a unit is one of the next.
  const auto is_less = [&](uint64_t unit) { return bytes < unit - unit / 20480; };
  char text[32];
  const double size = static_cast<double>(bytes);
  if (is_less(kMib)) {
    std::snprintf(text, sizeof text, "%.1f KiB", size / static_cast<double>(kKib));
  } else if (is_less(kGib)) {
    std::snprintf(text, sizeof text, "%.1f MiB", size / static_cast<double>(kMib));
  } else {
    std::snprintf(text, sizeof text, "%.2f GiB", size / static_cast<double>(kGib));
  }
  return text;
}

}  // namespace tessera
