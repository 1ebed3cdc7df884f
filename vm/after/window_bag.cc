// Windows whose value depends on the order or the equality of the frame's values: string_agg, median, mode and their kin,
// and aggregates of DISTINCT values.
#include "vm/after/window_bag.h"

#include <numeric>
#include <string>
#include <utility>

#include "vm/after/fold_rows.h"
#include "vm/after/window_fold.h"
#include "vm/after/window_values.h"
#include "vm/meaning/aggregate.h"
#include "vm/meaning/interval_meaning.h"
#include "vm/meaning/lane_error.h"
#include "vm/meaning/text_functions.h"

namespace tessera::vm {
namespace {

/// Counts values.
struct CountFold {
  using State = int64_t;
  static constexpr bool kInvertible = true;
  Lane lane = {};
  static State Identity() { return 0; }
  static void Add(State& s, size_t) { ++s; }
  static void Remove(State& s, size_t) { --s; }
  static void Merge(State& s, State other) { s += other; }
};

/// The state of the values that are there, each once. Where none can be taken out of a state again, it is a tree.
template <class F>
class DistinctFold {
 public:
  using State = typename F::State;
  explicit DistinctFold(F fold) : fold_(std::move(fold)) {}

  void Reset(size_t places) {
    leaves_ = F::kInvertible ? 1 : std::bit_ceil(std::max<size_t>(places, 1));
    states_.assign(2 * leaves_, fold_.Identity());
  }
  /// The value of the row comes to the place, or goes from it.
  void Change(size_t place, size_t row, bool comes) {
    if constexpr (F::kInvertible) {
      comes ? fold_.Add(states_[1], row) : fold_.Remove(states_[1], row);
    } else {
      size_t i = leaves_ + place;
      states_[i] = fold_.Identity();
      if (comes) fold_.Add(states_[i], row);
      while ((i /= 2) > 0) {
        State s = states_[2 * i];
        fold_.Merge(s, states_[2 * i + 1]);
        states_[i] = s;
      }
    }
  }
  const State& state() const { return states_[1]; }
  LaneError error() const { return fold_.lane.error; }

 private:
  F fold_;
  size_t leaves_ = 1;
  std::vector<State> states_;  // by node, as in ValueBag
};

class BagEvaluation {
 public:
  explicit BagEvaluation(const WindowTask& task)
      : task_(task), rows_(task.rows), w_(task.window), out_(task.out), value_(rows_.column(w_.value)) {}

  Status Run(size_t begin, size_t end) {
    if (w_.function == WindowFunction::kFold) return Fold(begin, end);
    if (Info(w_.aggregate).role == Role::Count) return Distinct(CountFold(), begin, end);
    Status status;
    WithFold(w_.aggregate, [&]<class M>() { status = Distinct(ValueFold<M>{value_}, begin, end); });
    return status;
  }

 private:
  static bool IsNull(const RowColumn& c, size_t row) { return !c.null.empty() && c.null[row] != 0; }
  bool Counts(size_t row) const { return w_.fold == tessera::vm::Fold::kFirst || !IsNull(value_, row); }

  int128_t Wide(size_t row) const { return Make128(value_.high[row], value_.low[row]); }

  bool IsSameValue(size_t a, size_t b) const {
    if (IsNull(value_, a) || IsNull(value_, b)) return IsNull(value_, a) == IsNull(value_, b);
    if (value_.type.storage() == StorageClass::kFloat)
      return FloatEqual(std::bit_cast<double>(value_.low[a]), std::bit_cast<double>(value_.low[b]));
    if (value_.type.id == TypeId::kInterval) return LengthOfPacked(Wide(a)) == LengthOfPacked(Wide(b));
    return value_.low[a] == value_.low[b] && (value_.high.empty() || value_.high[a] == value_.high[b]);
  }

  /// Gives each row of the partition its place among the values; equal ones have one place if that matters.
  void FindPlaces(RowRange p) {
    const size_t n = p.size();
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), static_cast<uint32_t>(p.begin));
    if (task_.order != nullptr)
      std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return task_.order->Less(a, b); });
    const bool once = w_.distinct || w_.fold == tessera::vm::Fold::kMode;
    begin_ = p.begin;
    place_.resize(n);
    row_at_.clear();
    for (size_t i = 0; i < n; ++i) {
      ThrowIfInterrupted(i);
      if (!once || i == 0 || !IsSameValue(order[i - 1], order[i])) row_at_.push_back(order[i]);
      place_[order[i] - p.begin] = static_cast<uint32_t>(row_at_.size() - 1);
    }
    taken_.assign(row_at_.size(), 0);
  }

  /// `reset`() begins a partition; `change`(place, comes) is called for each value of the frame; `put`(row) stores the
  /// result.
  template <class Reset, class Change, class Put>
  Status EachFrame(size_t begin, size_t end, const Reset& reset, const Change& change, const Put& put) {
    Frames frames(rows_, w_);
    while (begin < end) {
      ThrowIfInterrupted();
      const RowRange p = {begin, rows_.EndOfEqual(begin, end, w_.partition_keys)};
      FindPlaces(p);
      reset();
      frames.Enter(p.begin, p.end);
      FrameRows in_frame;
      for (size_t i = p.begin; i < p.end; ++i) {
        frames.MoveTo(i);
        if (frames.wrong_offset() != nullptr) return SqlError(ErrorKind::kInvalidParameterValue, frames.wrong_offset());
        const bool changed = in_frame.MoveTo(frames, i, [&](size_t row, bool comes) {
          if (Counts(row)) change(place_[row - begin_], comes);
        });
        if (!changed && i > p.begin) {
          CopyResult(i);
        } else {
          TESSERA_TRY(put(i));
        }
      }
      begin = p.end;
    }
    return Status::Ok();
  }

  // ---- Aggregates of different values

  template <class F>
  Status Distinct(F fold, size_t begin, size_t end) {
    DistinctFold<F> states(std::move(fold));
    size_t different = 0;
    const auto reset = [&] {
      states.Reset(row_at_.size());
      different = 0;
    };
    const auto change = [&](size_t place, bool comes) {
      if (comes ? taken_[place]++ > 0 : --taken_[place] > 0) return;
      comes ? ++different : --different;
      states.Change(place, row_at_[place], comes);
    };
    TESSERA_TRY(EachFrame(begin, end, reset, change, [&](size_t row) {
      different == 0 && !std::is_same_v<F, CountFold> ? SetNull(row) : SetState(row, states.state());
      return Status::Ok();
    }));
    return states.error() == LaneError::kNone ? Status::Ok() : LaneErrorStatus(states.error(), {});
  }

  // ---- Folds of values in order

  Status Fold(size_t begin, size_t end) {
    const auto reset = [&] { bag_.Reset(row_at_.size()); };
    const auto change = [&](size_t place, bool comes) {
      taken_[place] += comes ? 1 : -1;
      bag_.Set(place, w_.distinct ? std::min<uint32_t>(taken_[place], 1) : taken_[place]);
    };
    return EachFrame(begin, end, reset, change, [&](size_t row) { return PutFold(row); });
  }

  size_t RowOf(size_t k) const { return row_at_[bag_.Find(k)]; }

  Status PutFold(size_t row) {
    using F = tessera::vm::Fold;
    const size_t n = bag_.size();
    if (n == 0) {
      SetNull(row);
      return Status::Ok();
    }
    switch (w_.fold) {
      case F::kMode:
        SetFrom(row, row_at_[bag_.Fullest()]);
        break;
      case F::kQuantile:
        SetFrom(row, RowOf(PlaceOfQuantile(task_.constant->f64, n)));
        break;
      case F::kBetween: {
        const PlaceBetween place(task_.constant->f64, n);
        const size_t below = RowOf(place.below), above = RowOf(place.above);
        if (value_.type.id == TypeId::kInterval) {
          Lane lane;
          const int128_t between = meaning::IntervalAt(Wide(below), Wide(above), place.fraction, lane);
          if (lane.error != LaneError::kNone) return LaneErrorStatus(lane.error, {});
          SetState(row, between);
          out_[0].null[row] = 0;
          break;
        }
        const auto value = [&](size_t i) { return std::bit_cast<double>(value_.low[i]); };
        out_[0].low[row] = std::bit_cast<int64_t>(place.Value(value(below), value(above)));
        out_[0].null[row] = 0;
        break;
      }
      case F::kJoin:
        return Join(row, n);
      default:
        SetFrom(row, RowOf(0));
    }
    return Status::Ok();
  }

  Status Join(size_t row, size_t n) {
    text_.clear();
    for (size_t k = 0; k < n; ++k) {
      ThrowIfInterrupted(k);
      if (k > 0) text_ += task_.constant->text;
      text_ += task_.strings.Get(value_.low[RowOf(k)]);
      if (text_.size() > static_cast<size_t>(kMostTextBytes)) return LaneErrorStatus(LaneError::kTextTooLong, {});
    }
    out_[0].low[row] = task_.strings.Intern(text_);
    return Status::Ok();
  }

  // ---- Results

  void SetNull(size_t row) {
    for (RowColumn& c : out_) c.null[row] = 1;
  }
  void SetFrom(size_t row, size_t from) {
    if (IsNull(value_, from)) return SetNull(row);
    out_[0].low[row] = value_.low[from];
    if (!value_.high.empty()) out_[0].high[row] = value_.high[from];
  }
  template <class State>
  void SetState(size_t row, const State& s) {
    if constexpr (std::is_same_v<State, int128_t>) {
      out_[0].low[row] = Low64(s);
      out_[0].high[row] = High64(s);
    } else {
      uint64_t words[kStateWords<State>];
      ToWords(s, words);
      for (int k = 0; k < kStateWords<State>; ++k)
        out_[static_cast<size_t>(k)].low[row] = static_cast<int64_t>(words[k]);
    }
  }
  /// The frame is that of the row before.
  void CopyResult(size_t row) {
    for (RowColumn& c : out_) {
      c.low[row] = c.low[row - 1];
      if (!c.high.empty()) c.high[row] = c.high[row - 1];
      c.null[row] = c.null[row - 1];
    }
  }

  const WindowTask& task_;
  const OrderedRows& rows_;
  const WindowSpec& w_;
  const std::span<RowColumn> out_;
  const RowColumn& value_;
  // Of the partition that begins with row begin_.
  size_t begin_ = 0;
  std::vector<uint32_t> place_;   // of each row
  std::vector<uint32_t> row_at_;  // by place: the first of its rows
  std::vector<uint32_t> taken_;   // by place: how many of its rows are in the frame
  ValueBag bag_;
  std::string text_;
};

}  // namespace

Status EvaluateBags(const WindowTask& task, size_t begin, size_t end) { return BagEvaluation(task).Run(begin, end); }

}  // namespace tessera::vm
