// Where rows end up: aggregates, groups, output, and the counters that blocks and host share. Private to kernels/.
// Plain data, compiled by g++ and nvcc; pointers are device pointers.
//
// Start at: DeviceGroups, Output, Control.
#pragma once

#include <cstdint>

#include "base/int128.h"
#include "kernels/launch/group_value.h"
#include "kernels/launch/tile.h"
#include "vm/meaning/meaning.h"

namespace tessera::kernels {

/// State of an aggregate without keys: per warp in shared memory, per block in device memory at the end of a launch. A
/// state of more than three words is in several neighbours.
struct alignas(16) Partial {
  int64_t low = 0, high = 0;  ///< sums: 128 bits; floats: bits of the double; states of several words: the first two
  uint64_t count = 0;         ///< values that came in
  uint64_t third = 0;         ///< the third word of such a state
};
constexpr uint32_t PartialsOf(uint32_t state_words) { return (state_words + 2) / 3; }

/// A state in Partials, and back.
template <class State>
TESSERA_HD State FromPartials(const Partial* p) {
  constexpr int kWords = vm::kStateWords<State>;
  uint64_t words[kWords];
  for (int k = 0; k < kWords; ++k) {
    const Partial& part = p[k / 3];
    words[k] = k % 3 == 0   ? static_cast<uint64_t>(part.low)
               : k % 3 == 1 ? static_cast<uint64_t>(part.high)
                            : part.third;
  }
  return vm::FromWords<State>(words);
}
template <class State>
TESSERA_HD void ToPartials(const State& state, Partial* p) {
  constexpr int kWords = vm::kStateWords<State>;
  uint64_t words[kWords];
  vm::ToWords(state, words);
  for (int k = 0; k < kWords; ++k) {
    Partial& part = p[k / 3];
    if (k % 3 == 0) part.low = static_cast<int64_t>(words[k]);
    if (k % 3 == 1) part.high = static_cast<int64_t>(words[k]);
    if (k % 3 == 2) part.third = words[k];
  }
}

/// ... and, where a row can reach the sink many times, per thread in shared memory. The end of a slice moves it to the
/// warp's state: adding up the lanes each time would take longer than everything else. Sums are kept as the sums of the
/// values' lower and upper halves.
struct alignas(16) ThreadState {
  uint64_t low = 0, high = 0;
};

/// Groups of a section with keys. A group has an ordinal, given in order of arrival; its record and state are dense
/// arrays. A slot of the hash table is 0 (free), tag | 1 (a thread is writing the record) or tag | ordinal + 2; the tag
/// is the upper half of the hash. `record_words` = 1 (NULL bits) + words of the keys.
struct DeviceGroups {
  uint64_t* slots = nullptr;
  uint64_t slot_mask = 0;
  uint32_t max_groups = 0;
  uint32_t record_words = 0;
  uint32_t state_words = 0;  ///< of a group: seen bits, 64 aggregates a word, then the states, then the lock if any
  uint32_t lock_word = kNowhere;
  uint64_t* records = nullptr;
  uint64_t* states = nullptr;
  const uint64_t* initial_state = nullptr;
};

/// Leaves out groups whose value is NULL or in [low, high]: vm::UnwantedGroups.
struct GroupTest {
  GroupValue value;
  int128_t low = 0, high = 0;
};
inline constexpr uint32_t kMaxGroupTests = 4;
struct GroupTests {
  GroupTest tests[kMaxGroupTests];
  uint32_t count = 0;
  /// Sums that 128 bits may not hold: an error, whatever the tests say.
  GroupValue sums[kMaxGroupTests];
  uint32_t sum_count = 0;
};

/// A column that groups become.
struct GroupColumn {
  GroupValue value;
  uint64_t* low = nullptr;
  uint64_t* high = nullptr;  ///< nullptr: its values have 64 bits
  uint8_t* null = nullptr;
};
inline constexpr uint32_t kMaxGroupColumns = 64;
struct GroupColumns {
  GroupColumn columns[kMaxGroupColumns];
  uint32_t count = 0;
};

/// A key with a small domain: it adds (value - low + nullable) * stride to the group's number, 0 for NULL.
struct DirectKey {
  int64_t low = 0;
  uint32_t stride = 0;
  uint32_t nullable = 0;  ///< 1 if the key can be NULL
};
inline constexpr uint32_t kMaxDirectKeys = 8;

/// Rows that Emit made, column by column.
struct Output {
  uint64_t* low = nullptr;   ///< [column][capacity]
  uint64_t* high = nullptr;  ///< [wide column][capacity]
  uint8_t* null = nullptr;   ///< [column][capacity]
  uint32_t capacity = 0;
  uint32_t columns = 0;
  const uint32_t* registers = nullptr;  ///< the register of each column
  const uint32_t* highs = nullptr;      ///< index of each wide column in `high`
};

/// Why a launch stopped. `stop` without a reason: the host has cancelled it.
enum StopReason : uint32_t {
  kGrow = 1,
  kOutputFull = 2,
  kFailed = 4,
  kEnough = 8,
  kManyFed = 16,  ///< groups have had as many rows as their counters and sums can hold before they are carried over
};
/// Rows that groups are fed in a launch before it stops. The rows that are under way by then must not bring it to 2^32.
inline constexpr unsigned long long kMostFed = 1ull << 31;

/// Counters that blocks and host share, each on a cache line of its own.
struct Control {
  alignas(128) uint32_t stop;  ///< nonzero: producers start no more tiles
  uint32_t reasons;            ///< bits of StopReason
  uint32_t error_claimed;      ///< the first failing row wins
  uint32_t error_address, error_code, error_tablet, error_row;
  alignas(128) uint32_t groups;          ///< ordinals given out; may exceed max_groups by those that were refused
  unsigned long long fed;                ///< rows that went to groups, where a row can go there more than once
  alignas(128) unsigned long long rows;  ///< of output, reserved
  unsigned long long rows_valid;   ///< ... of which the first are written: the least base of a refused reservation
  unsigned long long rows_wanted;  ///< largest reservation that was refused
};

}  // namespace tessera::kernels
