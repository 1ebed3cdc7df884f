// The functions by number of the row, by peers, by distance and by frame; aggregates are folds over frames.
#include "vm/after/window_values.h"

#include <algorithm>
#include <bit>

#include "base/interrupt.h"
#include "vm/after/window_fold.h"
#include "vm/meaning/lane_error.h"

namespace tessera::vm {
namespace {

class Evaluation {
 public:
  explicit Evaluation(const WindowTask& task)
      : rows_(task.rows), w_(task.window), strings_(task.strings), out_(task.out) {}

  Status Run(size_t begin, size_t end) {
    switch (w_.function) {
      case WindowFunction::kRowNumber:
        return EachPartition(begin, end, [&](RowRange p) {
          for (size_t i = p.begin; i < p.end; ++i) SetNumber(i, i - p.begin + 1);
          return Status::Ok();
        });
      case WindowFunction::kRank:
        return EachPeers(begin, end, [&](RowRange p, RowRange peers, size_t) {
          for (size_t i = peers.begin; i < peers.end; ++i) SetNumber(i, peers.begin - p.begin + 1);
        });
      case WindowFunction::kDenseRank:
        return EachPeers(begin, end, [&](RowRange, RowRange peers, size_t group) {
          for (size_t i = peers.begin; i < peers.end; ++i) SetNumber(i, group + 1);
        });
      case WindowFunction::kPercentRank:
        return EachPeers(begin, end, [&](RowRange p, RowRange peers, size_t) {
          const double rank = static_cast<double>(peers.begin - p.begin), others = static_cast<double>(p.size() - 1);
          for (size_t i = peers.begin; i < peers.end; ++i) SetReal(i, others == 0 ? 0 : rank / others);
        });
      case WindowFunction::kCumeDist:
        return EachPeers(begin, end, [&](RowRange p, RowRange peers, size_t) {
          const double value = static_cast<double>(peers.end - p.begin) / static_cast<double>(p.size());
          for (size_t i = peers.begin; i < peers.end; ++i) SetReal(i, value);
        });
      case WindowFunction::kNtile:
        return EachPartition(begin, end, [&](RowRange p) { return Ntile(p); });
      case WindowFunction::kLag:
      case WindowFunction::kLead:
        FindValues(begin, end);
        return EachPartition(begin, end, [&](RowRange p) { return Shift(p); });
      case WindowFunction::kFirstValue:
      case WindowFunction::kLastValue:
      case WindowFunction::kNthValue:
        FindValues(begin, end);
        return EachFrame(begin, end, [&](size_t i, const Frames& f) { return ValueOfFrame(i, f); });
      case WindowFunction::kAggregate:
      case WindowFunction::kFold:  // EvaluateBags
        break;
    }
    return Aggregate(begin, end);
  }

 private:
  // ---- Loops

  template <class F>
  Status EachPartition(size_t begin, size_t end, const F& f) {
    while (begin < end) {
      ThrowIfInterrupted();
      const RowRange p = {begin, rows_.EndOfEqual(begin, end, w_.partition_keys)};
      TESSERA_TRY(f(p));
      begin = p.end;
    }
    return Status::Ok();
  }

  template <class F>
  Status EachPeers(size_t begin, size_t end, const F& f) {
    return EachPartition(begin, end, [&](RowRange p) {
      size_t group = 0;
      for (RowRange peers = {p.begin, p.begin}; peers.end < p.end; ++group) {
        ThrowIfInterrupted(group);
        peers = {peers.end, rows_.EndOfEqual(peers.end, p.end, w_.partition_keys + w_.order_keys)};
        f(p, peers, group);
      }
      return Status::Ok();
    });
  }

  template <class F>
  Status EachFrame(size_t begin, size_t end, const F& f) {
    Frames frames(rows_, w_);
    return EachPartition(begin, end, [&](RowRange p) {
      frames.Enter(p.begin, p.end);
      for (size_t i = p.begin; i < p.end; ++i) {
        ThrowIfInterrupted(i);
        frames.MoveTo(i);
        if (frames.wrong_offset() != nullptr) return SqlError(ErrorKind::kInvalidParameterValue, frames.wrong_offset());
        TESSERA_TRY(f(i, frames));
      }
      return Status::Ok();
    });
  }

  // ---- Results

  void SetNumber(size_t row, size_t v) { out_[0].low[row] = static_cast<int64_t>(v); }
  void SetReal(size_t row, double v) { out_[0].low[row] = std::bit_cast<int64_t>(v); }
  void SetNull(size_t row) {
    for (RowColumn& c : out_) c.null[row] = 1;
  }
  /// The value that `column` has in row `from`.
  void SetFrom(size_t row, const RowColumn& column, size_t from) {
    if (!column.null.empty() && column.null[from] != 0) return SetNull(row);
    out_[0].low[row] = column.low[from];
    if (!column.high.empty()) out_[0].high[row] = column.high[from];
  }

  // ---- Functions

  /// The number that the call has in the row; false if it is NULL.
  bool Count(size_t row, int64_t* n) const {
    *n = w_.number;
    if (w_.count < 0) return true;
    const RowColumn& c = rows_.column(w_.count);
    *n = c.low[row];
    return c.null.empty() || c.null[row] == 0;
  }

  /// Of a partition's rows, the remainder goes to the first parts. The number is that of the first row that has one.
  Status Ntile(RowRange p) {
    size_t first = p.begin;
    int64_t n = 0;
    for (; first < p.end && !Count(first, &n); ++first) SetNull(first);
    if (first == p.end) return Status::Ok();
    if (n <= 0) return SqlError(ErrorKind::kInvalidParameterValue, "argument of ntile must be greater than zero");
    const size_t parts = static_cast<size_t>(n), size = p.size() / parts, larger = p.size() % parts;
    const size_t in_larger = larger * (size + 1);
    for (size_t i = first; i < p.end; ++i) {
      const size_t at = i - first;
      SetNumber(i, 1 + (at < in_larger ? at / (size + 1) : larger + (at - in_larger) / size));
    }
    return Status::Ok();
  }

  /// LAG and LEAD.
  Status Shift(RowRange p) {
    const RowColumn& value = rows_.column(w_.value);
    const RowColumn* const fallback = w_.fallback < 0 ? nullptr : &rows_.column(w_.fallback);
    const bool back = w_.function == WindowFunction::kLag;
    for (size_t i = p.begin; i < p.end; ++i) {
      ThrowIfInterrupted(i);
      int64_t n = 0;
      if (!Count(i, &n)) {
        SetNull(i);
        continue;
      }
      const bool before = back == (n >= 0);
      const uint64_t distance = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
      size_t from = 0;
      if (FindRow(p, i, before, distance, &from)) {
        SetFrom(i, value, from);
      } else if (fallback != nullptr) {
        SetFrom(i, *fallback, i);
      } else {
        SetNull(i);
      }
    }
    return Status::Ok();
  }

  /// The row of the partition that is that many rows before or after `row`, of those that count; false: there is none.
  bool FindRow(RowRange p, size_t row, bool before, uint64_t distance, size_t* from) const {
    if (valued_.empty()) {
      *from = before ? row - distance : row + distance;
      return distance <= (before ? row - p.begin : p.end - row - 1);
    }
    const RowRange values = ValuesIn(p), own = ValuesIn({row, row + 1});
    if (distance > (before ? own.begin - values.begin : values.end - own.end)) return false;
    *from = distance == 0 ? row : valued_[before ? own.begin - distance : own.end + distance - 1];
    return true;
  }

  // ---- IGNORE NULLS: the same functions over the rows whose value is not NULL

  /// Numbers these rows, if they are others than all.
  void FindValues(size_t begin, size_t end) {
    const std::vector<uint8_t>& null = rows_.column(w_.value).null;
    if (!w_.ignore_nulls || null.empty()) return;
    begin_ = begin;
    valued_before_.reserve(end - begin + 1);
    for (size_t i = begin; i < end; ++i) {
      ThrowIfInterrupted(i);
      valued_before_.push_back(valued_.size());
      if (null[i] == 0) valued_.push_back(i);
    }
    valued_before_.push_back(valued_.size());
    valued_.push_back(end);  // so that it is not empty
  }
  RowRange ValuesIn(RowRange rows) const {
    if (rows.size() == 0) return {};  // it may lie before all rows of this turn
    return {valued_before_[rows.begin - begin_], valued_before_[rows.end - begin_]};
  }

  /// The value number `at`, from 0, of the frame, or the last one.
  void SetValueOfFrame(size_t row, const Frames& f, uint64_t at, bool last) {
    const RowRange before = ValuesIn(f.before), after = ValuesIn(f.after);
    const RowRange own = f.own ? ValuesIn({row, row + 1}) : RowRange();
    const size_t size = before.size() + own.size() + after.size();
    if (last) at = size - 1;
    if (size == 0 || at >= size) return SetNull(row);
    for (const RowRange& r : {before, own, after}) {
      if (at < r.size()) return SetFrom(row, rows_.column(w_.value), valued_[r.begin + at]);
      at -= r.size();
    }
  }

  /// FIRST_VALUE, LAST_VALUE and NTH_VALUE.
  Status ValueOfFrame(size_t row, const Frames& f) {
    int64_t n = 1;
    if (w_.function == WindowFunction::kNthValue) {
      if (!Count(row, &n)) {
        SetNull(row);
        return Status::Ok();
      }
      if (n <= 0) return SqlError(ErrorKind::kInvalidParameterValue, "argument of nth_value must be greater than zero");
    }
    const size_t size = f.size();
    auto at = static_cast<uint64_t>(n) - 1;
    if (!valued_.empty()) {
      SetValueOfFrame(row, f, at, w_.function == WindowFunction::kLastValue);
      return Status::Ok();
    }
    if (w_.function == WindowFunction::kLastValue) at = size - 1;
    if (size == 0 || at >= size) {
      SetNull(row);
      return Status::Ok();
    }
    size_t from = f.before.begin + at;
    if (at >= f.before.size()) {
      at -= f.before.size();
      from = f.own && at == 0 ? row : f.after.begin + at - (f.own ? 1 : 0);
    }
    SetFrom(row, rows_.column(w_.value), from);
    return Status::Ok();
  }

  // ---- Aggregates

  Status Aggregate(size_t begin, size_t end) {
    const OpcodeInfo& info = Info(w_.aggregate);
    const bool counts_rows =
        w_.aggregate == Opcode::CountRows || (info.role == Role::Count && rows_.column(w_.value).null.empty());
    if (counts_rows && IsWholePartition(w_.frame, w_.order_keys)) {
      return EachPartition(begin, end, [&](RowRange p) {
        for (size_t i = p.begin; i < p.end; ++i) SetNumber(i, p.size());
        return Status::Ok();
      });
    }
    if (counts_rows) {
      return EachFrame(begin, end, [&](size_t i, const Frames& f) {
        SetNumber(i, f.size());
        return Status::Ok();
      });
    }
    if (info.role == Role::Count) return Fold(NoFold(), begin, end);
    if (w_.aggregate == Opcode::MinT)
      return Fold(TextFold<meaning::MinT>{rows_.column(w_.value), strings_}, begin, end);
    if (w_.aggregate == Opcode::MaxT)
      return Fold(TextFold<meaning::MaxT>{rows_.column(w_.value), strings_}, begin, end);
    Status status;
    WithFold(w_.aggregate, [&]<class M>() { status = Fold(ValueFold<M>{rows_.column(w_.value)}, begin, end); });
    return status;
  }

  /// Only counts values.
  struct NoFold {
    using State = int64_t;
    static constexpr bool kInvertible = true;
    Lane lane = {};
    static State Identity() { return 0; }
    static void Add(State& s, size_t) { ++s; }
    static void Remove(State& s, size_t) { --s; }
    static void Merge(State& s, State other) { s += other; }
  };

  template <class F>
  Status Fold(F fold, size_t begin, size_t end) {
    if (IsWholePartition(w_.frame, w_.order_keys)) return FoldPartitions(std::move(fold), begin, end);
    return MayMoveBack(w_.frame) ? FoldBy<RangeFold<F>>(std::move(fold), begin, end)
                                 : FoldBy<SlidingFold<F>>(std::move(fold), begin, end);
  }

  /// Frames that are whole partitions have one value each.
  template <class F>
  Status FoldPartitions(F fold, size_t begin, size_t end) {
    const std::vector<uint8_t>& null = rows_.column(w_.value).null;
    return EachPartition(begin, end, [&](RowRange p) {
      auto s = fold.Identity();
      bool any = false;
      for (size_t i = p.begin; i < p.end; ++i) {
        ThrowIfInterrupted(i);
        if (!null.empty() && null[i] != 0) continue;
        fold.Add(s, i);
        any = true;
      }
      if (fold.lane.error != LaneError::kNone) return LaneErrorStatus(fold.lane.error, {});
      for (size_t i = p.begin; i < p.end; ++i) {
        if (any || std::is_same_v<F, NoFold>) {
          SetState(i, s);
        } else {
          SetNull(i);
        }
      }
      return Status::Ok();
    });
  }

  template <class Range, class F>
  Status FoldBy(F fold, size_t begin, size_t end) {
    using State = typename F::State;
    const std::vector<uint8_t>& null = rows_.column(w_.value).null;
    Frames frames(rows_, w_);
    Range before(&fold, null), after(&fold, null);
    return EachPartition(begin, end, [&](RowRange p) {
      frames.Enter(p.begin, p.end);
      before.Enter(p);
      if (frames.excludes()) after.Enter(p);
      for (size_t i = p.begin; i < p.end; ++i) {
        ThrowIfInterrupted(i);
        frames.MoveTo(i);
        if (frames.wrong_offset() != nullptr) return SqlError(ErrorKind::kInvalidParameterValue, frames.wrong_offset());
        State s = fold.Identity();
        before.MoveTo(frames.before);
        before.MergeTo(&s);
        size_t values = before.values();
        if (frames.excludes()) {
          if (frames.own && (null.empty() || null[i] == 0)) {
            fold.Add(s, i);
            ++values;
          }
          after.MoveTo(frames.after);
          after.MergeTo(&s);
          values += after.values();
        }
        if (values == 0 && !std::is_same_v<F, NoFold>) {
          SetNull(i);
        } else {
          SetState(i, s);
        }
      }
      if (fold.lane.error != LaneError::kNone) return LaneErrorStatus(fold.lane.error, {});
      return Status::Ok();
    });
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

  const OrderedRows& rows_;
  const WindowSpec& w_;
  const StringPool& strings_;
  const std::span<RowColumn> out_;
  size_t begin_ = 0;                   ///< the first row of those that are evaluated
  std::vector<size_t> valued_before_;  ///< per row from there, and at the end: how many values there are before it
  std::vector<size_t> valued_;         ///< the rows with values, and the end; empty: all rows count
};

}  // namespace

Status EvaluateWindow(const WindowTask& task, size_t begin, size_t end) {
  return OrdersValues(task.window) ? EvaluateBags(task, begin, end) : Evaluation(task).Run(begin, end);
}

}  // namespace tessera::vm
