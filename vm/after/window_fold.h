// Folds over ranges of rows whose bounds only move on. Where a row can be taken out of a state again, the state of the
// range is kept. Otherwise a range is two parts: of the first part the states of all of its ends are kept, so that a row
// leaves by forgetting one of them; to the second one rows are added. When the first part is empty, the second becomes the
// first. So each row is added twice at most (K. Tangwongsan, M. Hirzel, S. Schneider, "Low-Latency Sliding-Window
// Aggregation in Worst-Case Constant Time", DEBS 2017, as the two stacks that they start from). Private to vm/.
//
// Start at: SlidingFold. One thread.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "base/int128.h"
#include "base/interrupt.h"
#include "vm/after/window_frames.h"
#include "vm/meaning/meaning.h"
#include "vm/meaning/text_meaning.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// The fold of an aggregate with that meaning over a column. NULLs are passed over.
template <class M>
struct ValueFold {
  using State = typename M::State;
  using T = typename M::Type;
  /// Sums in 128 bits cannot overflow, nor lose anything.
  static constexpr bool kInvertible = std::is_same_v<M, meaning::SumI>;
  const RowColumn& column;
  Lane lane = {};

  State Identity() const { return M::Identity(); }
  void Add(State& s, size_t row) { M::Apply(s, Value(row), lane); }
  void Remove(State& s, size_t row) {
    if constexpr (kInvertible) s = WrapSub(s, static_cast<State>(Value(row)));
  }
  void Merge(State& s, const State& other) { M::Merge(s, other, lane); }

 private:
  T Value(size_t row) const {
    if constexpr (std::is_same_v<T, int128_t>) {
      return Make128(column.high[row], column.low[row]);
    } else if constexpr (std::is_same_v<T, double>) {
      return std::bit_cast<double>(column.low[row]);
    } else {
      return column.low[row];
    }
  }
};

/// The same for the least or greatest text: its identifier, or -1.
template <class M>
struct TextFold {
  using State = int64_t;
  static constexpr bool kInvertible = false;
  const RowColumn& column;
  const StringPool& strings;
  Lane lane = {};

  State Identity() const { return -1; }
  void Add(State& s, size_t row) { Merge(s, column.low[row]); }
  void Remove(State&, size_t) {}
  void Merge(State& s, State other) {
    if (s == other || other < 0) return;
    if (s < 0 || M::Better(strings.Get(other), strings.Get(s))) s = other;
  }
};

template <class Fold>
class SlidingFold {
 public:
  using State = typename Fold::State;
  /// `null`: of the column's rows; empty if none is NULL.
  SlidingFold(Fold* fold, const std::vector<uint8_t>& null) : fold_(*fold), null_(null) {}

  /// The range is empty, at the begin of the partition.
  void Enter(RowRange partition) { Reset(partition.begin); }
  /// The range is empty, and begins at `row`.
  void Reset(size_t row) {
    rows_ = {row, row};
    middle_ = row;
    values_ = 0;
    second_ = fold_.Identity();
  }

  /// REQUIRES: no bound moves back.
  void MoveTo(RowRange rows) {
    if (rows.begin >= rows_.end) Reset(rows.begin);
    for (size_t i = rows_.end; i < rows.end; ++i) {
      ThrowIfInterrupted(i);
      if (IsNull(i)) continue;
      ++values_;
      fold_.Add(second_, i);
    }
    for (size_t i = rows_.begin; i < rows.begin; ++i) {
      if (IsNull(i)) continue;
      --values_;
      if constexpr (Fold::kInvertible) fold_.Remove(second_, i);
    }
    rows_ = rows;
    if constexpr (!Fold::kInvertible) {
      if (rows_.begin > middle_) TurnOver();
    }
  }

  /// How many values of the range are not NULL.
  size_t values() const { return values_; }
  /// Adds the range to a state.
  void MergeTo(State* s) {
    if (rows_.begin < middle_) fold_.Merge(*s, first_[rows_.begin - first_begin_]);
    fold_.Merge(*s, second_);
  }

 private:
  bool IsNull(size_t row) const { return !null_.empty() && null_[row] != 0; }

  /// The first part becomes the whole range.
  void TurnOver() {
    first_begin_ = rows_.begin;
    middle_ = rows_.end;
    first_.resize(rows_.size());
    State s = fold_.Identity();
    for (size_t i = rows_.end; i > rows_.begin;) {
      ThrowIfInterrupted(--i);
      if (!IsNull(i)) {
        State one = fold_.Identity();
        fold_.Add(one, i);
        fold_.Merge(one, s);
        s = one;
      }
      first_[i - first_begin_] = s;
    }
    second_ = fold_.Identity();
  }

  Fold& fold_;
  const std::vector<uint8_t>& null_;
  RowRange rows_;
  size_t values_ = 0;
  size_t middle_ = 0, first_begin_ = 0;
  std::vector<State> first_;  ///< state of rows [first_begin_ + i, middle_)
  State second_{};            ///< of rows [middle_, end), or of all if rows can be taken out
};

/// The same over ranges that may move back: a tree of the states of the partition's rows.
template <class Fold>
class RangeFold {
 public:
  using State = typename Fold::State;
  RangeFold(Fold* fold, const std::vector<uint8_t>& null) : fold_(*fold), null_(null) {}

  void Enter(RowRange partition) {
    begin_ = partition.begin;
    leaves_ = std::bit_ceil(std::max<size_t>(partition.size(), 1));
    states_.assign(2 * leaves_, fold_.Identity());
    values_before_.assign(1, 0);
    for (size_t i = 0; i < partition.size(); ++i) {
      ThrowIfInterrupted(i);
      const bool counts = null_.empty() || null_[begin_ + i] == 0;
      if (counts) fold_.Add(states_[leaves_ + i], begin_ + i);
      values_before_.push_back(values_before_.back() + (counts ? 1 : 0));
    }
    for (size_t i = leaves_; i-- > 1;) {
      ThrowIfInterrupted(i);
      states_[i] = states_[2 * i];
      fold_.Merge(states_[i], states_[2 * i + 1]);
    }
  }
  void MoveTo(RowRange rows) { rows_ = {rows.begin - begin_, rows.end - begin_}; }
  size_t values() const { return rows_.size() == 0 ? 0 : values_before_[rows_.end] - values_before_[rows_.begin]; }
  /// Adds the range to a state.
  void MergeTo(State* s) {
    for (size_t low = rows_.begin + leaves_, high = rows_.end + leaves_; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) fold_.Merge(*s, states_[low++]);
      if (high % 2 == 1) fold_.Merge(*s, states_[--high]);
    }
  }

 private:
  Fold& fold_;
  const std::vector<uint8_t>& null_;
  RowRange rows_;  ///< from the partition's begin
  size_t begin_ = 0, leaves_ = 1;
  std::vector<State> states_;  ///< by node: 1 is the root, the children of i are 2 i and 2 i + 1
  std::vector<size_t> values_before_;
};

}  // namespace tessera::vm
