// States of aggregates in the memory of a GPU. Compiled by g++ and nvcc.
//
// Start at: GroupState.
#pragma once

#include <cstdint>

#include "vm/meaning/float_moments.h"
#include "vm/meaning/float_sum.h"

namespace tessera::vm {

/// How the memory of a GPU holds the state of a group, to which threads of many warps add at the same time.
enum class GroupState : uint8_t {
  kCount,          ///< a count
  kHalves,         ///< the sums of the values' lower and of their upper 32 bits: two additions, none needs a carry
  kParts,          ///< the sums of the values' four parts of 32 bits
  kFloatWindow,    ///< vm::FloatWindow
  kMomentWindows,  ///< a count, and a window for each sum of vm::FloatMoments
  kLeast,          ///< an integer, changed by an atomic minimum
  kGreatest,       ///< ... maximum
  kLeastFloat,     ///< a double in the ordered form, on which the atomics of integers work
  kGreatestFloat,
  kLocked,  ///< the State as it is, changed under the group's lock: good for every aggregate, and slow
};
/// Words of 64 bits that a group's state has then. `state_words`: those of the State itself.
constexpr uint32_t GroupStateWords(GroupState kept, uint32_t state_words) {
  switch (kept) {
    case GroupState::kHalves:
      return 2;
    case GroupState::kParts:
      return 4;
    case GroupState::kFloatWindow:
      return FloatWindow::kAllWords;
    case GroupState::kMomentWindows:
      return 1 + FloatMoments::kSums * FloatWindow::kAllWords;
    case GroupState::kLocked:
      return state_words;
    case GroupState::kCount:
    case GroupState::kLeast:
    case GroupState::kGreatest:
    case GroupState::kLeastFloat:
    case GroupState::kGreatestFloat:
      return 1;
  }
  return 0;
}
/// Whether threads take the group's lock for some values or for all.
constexpr bool NeedsLock(GroupState kept) {
  return kept == GroupState::kFloatWindow || kept == GroupState::kMomentWindows || kept == GroupState::kLocked;
}
/// Bytes that a block has for it in shared memory, where it keeps a group apart; 0 if it does not.
constexpr uint32_t PrivateStateBytes(GroupState kept) {
  switch (kept) {
    case GroupState::kCount:
      return 4;
    case GroupState::kHalves:
      return 16;
    case GroupState::kLeast:
    case GroupState::kGreatest:
    case GroupState::kLeastFloat:
    case GroupState::kGreatestFloat:
      return 8;
    case GroupState::kFloatWindow:
      return FloatWindow::kBlockBytes;
    case GroupState::kMomentWindows:
      return 4 + FloatMoments::kSums * FloatWindow::kBlockBytes;
    case GroupState::kParts:
    case GroupState::kLocked:
      return 0;
  }
  return 0;
}

}  // namespace tessera::vm
