// What the catalog's checksums cover and what a record of its log holds: integers as 8 bytes, texts after their length.
//
// Start at: CatalogBytes. Private to tablet/catalog/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/int128.h"

namespace tessera {

class CatalogBytes {
 public:
  void Add(uint64_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void Add(int64_t v) { Add(static_cast<uint64_t>(v)); }
  void Add(int128_t v) {
    Add(Low64(v));
    Add(High64(v));
  }
  void Add(std::string_view text) {
    Add(uint64_t{text.size()});
    bytes_.append(text);
  }
  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace tessera
