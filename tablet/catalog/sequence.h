// What the catalog says of a sequence: numbers that are given out once each.
//
// Start at: Sequence, NextOf. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera {

struct Sequence {
  enum class Identity : char { kNone = ' ', kAlways = 'a', kByDefault = 'd' };

  std::string name;
  std::string type = "BIGINT";
  int64_t start = 1, increment = 1, least = 1, greatest = INT64_MAX;
  bool cycles = false;
  int64_t value = 1;       ///< the last one that was given, or else the next one
  bool was_given = false;  ///< whether `value` was
  int64_t table_id = 0;    ///< of the table whose column it belongs to, and with which it goes; 0: none
  std::string column;
  Identity identity = Identity::kNone;  ///< of that column

  bool operator==(const Sequence&) const = default;
};

/// Whether they differ in their values at most.
bool IsSameButForValue(Sequence a, const Sequence& b);

/// Sorted by name.
using Sequences = std::vector<Sequence>;

inline const Sequence* FindSequence(const Sequences& sequences, std::string_view name) {
  for (const Sequence& sequence : sequences) {
    if (sequence.name == name) return &sequence;
  }
  return nullptr;
}

/// Gives the next value. Errors: it has come to its end.
Result<int64_t> NextOf(Sequence* sequence);
/// Errors: its numbers contradict each other.
Status CheckSequence(const Sequence& sequence);

}  // namespace tessera
