// The values of a frame in an order of their own: how often each place of the order is taken. A tree over the places, so
// that a row comes or goes, and a value is found, in the logarithm of the partition's rows. Private to vm/.
//
// Start at: ValueBag, FrameRows. One thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "vm/after/window_frames.h"

namespace tessera::vm {

class ValueBag {
 public:
  /// This many places, none of them taken.
  void Reset(size_t places) {
    leaves_ = std::bit_ceil(std::max<size_t>(places, 1));
    counts_.assign(2 * leaves_, 0);
    most_.assign(2 * leaves_, 0);
  }
  /// The place is taken this many times.
  void Set(size_t place, uint32_t times) {
    size_t i = leaves_ + place;
    counts_[i] = most_[i] = times;
    while ((i /= 2) > 0) {
      counts_[i] = counts_[2 * i] + counts_[2 * i + 1];
      most_[i] = std::max(most_[2 * i], most_[2 * i + 1]);
    }
  }
  size_t size() const { return counts_[1]; }
  /// The place of value number `k`, from 0. REQUIRES: there are more.
  size_t Find(size_t k) const {
    size_t i = 1;
    while (i < leaves_) {
      i *= 2;
      if (k < counts_[i]) continue;
      k -= counts_[i++];
    }
    return i - leaves_;
  }
  /// The place that is taken most often, the first one of several. REQUIRES: one is taken.
  size_t Fullest() const {
    size_t i = 1;
    while (i < leaves_) {
      i *= 2;
      if (most_[i] < most_[i + 1]) ++i;
    }
    return i - leaves_;
  }

 private:
  size_t leaves_ = 1;                    ///< a power of two
  std::vector<uint32_t> counts_, most_;  ///< by node: 1 is the root, the children of i are 2 i and 2 i + 1
};

/// Follows frames from row to row.
class FrameRows {
 public:
  /// Calls change(row, true) for each row that comes into the frame, change(row, false) for each that goes. Returns
  /// whether there were any.
  template <class F>
  bool MoveTo(const Frames& frame, size_t row, const F& change) {
    const bool moved = Move(&before_, frame.before, change), later = Move(&after_, frame.after, change);
    return Move(&own_, frame.own ? RowRange{row, row + 1} : RowRange{row, row}, change) || moved || later;
  }

 private:
  template <class F>
  static bool Move(RowRange* at, RowRange to, const F& change) {
    bool any = false;
    const auto each = [&](size_t begin, size_t end, bool comes) {
      for (size_t i = begin; i < end; ++i) {
        ThrowIfInterrupted(i);
        change(i, comes);
        any = true;
      }
    };
    const RowRange from = *at;
    *at = to;
    if (to.begin >= from.end || from.begin >= to.end) {
      each(from.begin, from.end, false);
      each(to.begin, to.end, true);
      return any;
    }
    each(from.begin, to.begin, false);
    each(to.end, from.end, false);
    each(to.begin, from.begin, true);
    each(from.end, to.end, true);
    return any;
  }

  RowRange before_, after_, own_;
};

}  // namespace tessera::vm
