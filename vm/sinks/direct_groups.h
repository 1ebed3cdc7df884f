// Numbers of groups by their keys, where these are few integers that lie close together: an array in place of a hash
// table. It fills itself as groups are found, and grows with the ranges of their keys. Private to vm/.
//
// Start at: DirectGroups::numbers, Note.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/memory_budget.h"

namespace tessera::vm {

class DirectGroups {
 public:
  static constexpr int kMostKeys = 4;

  /// A key's values from `least` on, 2^bits of them.
  struct Range {
    int64_t least = 0;
    int bits = -1;  ///< -1: none
  };

  /// `keys`: 0 or more than kMostKeys: it is closed.
  explicit DirectGroups(int keys = 0) : keys_(keys), is_open_(keys >= 1 && keys <= kMostKeys) {}

  /// False once keys have been too far apart. Then nothing is known.
  bool is_open() const { return is_open_; }
  void Close() {
    is_open_ = false;
    numbers_ = {};
  }
  /// False until something was noted.
  bool any() const { return !numbers_.empty(); }
  /// 1 + the number of each group, 0 where none is known, by the places of its keys in their ranges, the bits of the
  /// first key above those of the second.
  const uint32_t* numbers() const { return numbers_.data(); }
  const Range& range(int key) const { return ranges_[static_cast<size_t>(key)]; }

  /// `key`: as many values as there are keys.
  void Note(const int64_t* key, uint32_t number) {
    if (!is_open_) return;
    if (!IsInside(key) && !Extend(key)) return Close();
    uint64_t at = 0;
    for (int k = 0; k < keys_; ++k) at = at << range(k).bits | Place(key[k], range(k));
    numbers_[at] = number + 1;
  }

 private:
  /// The most that are tried: 4 MB, in which 200,000 groups are found twice as fast as in a hash table.
  static constexpr int kMostBits = 20;
  /// No more than this part of the memory limit, for each worker.
  static constexpr uint64_t kMemoryShare = 256;

  static uint64_t Place(int64_t value, const Range& range) {
    return static_cast<uint64_t>(value) - static_cast<uint64_t>(range.least);
  }

  bool IsInside(const int64_t* key) const {
    for (int k = 0; k < keys_; ++k) {
      if (range(k).bits < 0 || Place(key[k], range(k)) >> range(k).bits != 0) return false;
    }
    return true;
  }

  /// Makes room for the key and some more, so that few keys do so again. False: they would take too much.
  bool Extend(const int64_t* key) {
    int bits = 0;
    for (int k = 0; k < keys_; ++k) {
      Range& r = ranges_[static_cast<size_t>(k)];
      if (r.bits < 0) {
        r = {key[k], 0};
      } else if (key[k] < r.least) {
        const uint64_t above = Place(r.least, {key[k], 0}) + ((uint64_t{1} << r.bits) - 1);
        r.bits = std::bit_width(above);
        const uint64_t more = r.bits > kMostBits ? 0 : (uint64_t{1} << r.bits) - 1 - above;
        if (static_cast<uint64_t>(key[k]) - static_cast<uint64_t>(INT64_MIN) < more) return false;
        r.least = key[k] - static_cast<int64_t>(more);
      } else {
        r.bits = std::max(r.bits, static_cast<int>(std::bit_width(Place(key[k], r))));
      }
      bits += r.bits;
    }
    if (bits > kMostBits || sizeof(uint32_t) << bits > MemoryLimit() / kMemoryShare) return false;
    numbers_.assign(size_t{1} << bits, 0);
    return true;
  }

  int keys_;
  bool is_open_;
  std::array<Range, kMostKeys> ranges_;
  std::vector<uint32_t> numbers_;
};

}  // namespace tessera::vm
