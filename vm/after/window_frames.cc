#include "vm/after/window_frames.h"

#include <algorithm>
#include <bit>

#include "base/int128.h"
#include "base/interrupt.h"
#include "vm/meaning/meaning.h"

namespace tessera::vm {
namespace {

using Bound = WindowFrame::Bound;
using Mode = WindowFrame::Mode;

/// Whether a.row comes before b.row in ascending order; neither is NULL.
bool IsLess(const RowColumn& a, size_t a_row, const RowColumn& b, size_t b_row) {
  switch (a.type.storage()) {
    case StorageClass::kFloat:
      return FloatLess(std::bit_cast<double>(a.low[a_row]), std::bit_cast<double>(b.low[b_row]));
    case StorageClass::kWide:
      return Make128(a.high[a_row], a.low[a_row]) < Make128(b.high[b_row], b.low[b_row]);
    default:
      return a.low[a_row] < b.low[b_row];
  }
}

/// The first row for which `is` does not hold. It holds for all rows before it, and for none after.
template <class F>
size_t FirstNot(RowRange rows, const F& is) {
  while (rows.begin < rows.end) {
    const size_t middle = rows.begin + rows.size() / 2;
    if (is(middle)) {
      rows.begin = middle + 1;
    } else {
      rows.end = middle;
    }
  }
  return rows.begin;
}

constexpr const char* kStartNull = "frame starting offset must not be null";
constexpr const char* kStartNegative = "frame starting offset must not be negative";
constexpr const char* kEndNull = "frame ending offset must not be null";
constexpr const char* kEndNegative = "frame ending offset must not be negative";

}  // namespace

Frames::Frames(const OrderedRows& rows, const WindowSpec& window)
    : rows_(rows), frame_(window.frame), peer_keys_(window.partition_keys + window.order_keys) {
  if (frame_.key >= 0) {
    key_ = &rows.column(frame_.key);
    descending_ = rows.section.after.order[static_cast<size_t>(window.partition_keys)].descending;
  }
  counts_groups_ = frame_.mode == Mode::kGroups && (HasOffset(frame_.start) || HasOffset(frame_.end));
}

void Frames::Enter(size_t begin, size_t end) {
  partition_ = {begin, end};
  peers_ = {begin, begin};
  if (key_ != nullptr) {
    keyed_ = partition_;
    while (keyed_.begin < end && HasNoKey(keyed_.begin)) ThrowIfInterrupted(keyed_.begin++);
    while (keyed_.end > keyed_.begin && HasNoKey(keyed_.end - 1)) ThrowIfInterrupted(keyed_.end--);
    range_start_ = range_end_ = keyed_.begin;
  }
  if (counts_groups_) {
    groups_.clear();
    group_ = static_cast<size_t>(-1);
    for (size_t i = begin; i < end; i = rows_.EndOfEqual(i, end, peer_keys_)) groups_.push_back(i);
    groups_.push_back(end);
  }
}

void Frames::MoveTo(size_t row) {
  if (row >= peers_.end) {
    peers_ = {row, rows_.EndOfEqual(row, partition_.end, peer_keys_)};
    ++group_;
  }
  const size_t start = Start(row), end = std::max(start, End(row));
  before = {start, end};
  if (!excludes()) return;
  const bool row_only = frame_.exclusion == WindowFrame::Exclusion::kCurrentRow;
  const RowRange hole = row_only ? RowRange{row, row + 1} : peers_;
  before.end = std::clamp(hole.begin, start, end);
  after = {std::clamp(hole.end, start, end), end};
  own = frame_.exclusion == WindowFrame::Exclusion::kTies && start <= row && row < end;
}

size_t Frames::Offset(size_t row, int64_t offset, int32_t column, const char* null, const char* negative) {
  if (column < 0 || frame_.mode == Mode::kRange) return static_cast<size_t>(offset);
  const RowColumn& c = rows_.column(column);
  const bool is_null = !c.null.empty() && c.null[row] != 0;
  if (!is_null && c.low[row] >= 0) return static_cast<size_t>(c.low[row]);
  wrong_offset_ = is_null ? null : negative;
  return 0;
}

bool Frames::ComesBefore(const RowColumn& a, size_t i, const RowColumn& b, size_t j) const {
  return descending_ ? IsLess(b, j, a, i) : IsLess(a, i, b, j);
}

bool Frames::IsOffset(size_t row, const RowColumn& bound, bool forward, const char* null, const char* negative) {
  if (!bound.null.empty() && bound.null[row] != 0) {
    wrong_offset_ = null;
  } else if (forward ? ComesBefore(bound, row, *key_, row) : ComesBefore(*key_, row, bound, row)) {
    wrong_offset_ = negative;
  }
  return wrong_offset_ == nullptr;
}

size_t Frames::Start(size_t row) {
  const size_t offset = Offset(row, frame_.start_offset, frame_.start_column, kStartNull, kStartNegative);
  const bool forward = frame_.start == Bound::kFollowing;
  switch (frame_.start) {
    case Bound::kCurrentRow:
      return frame_.mode == Mode::kRows ? row : peers_.begin;
    case Bound::kPreceding:
    case Bound::kFollowing:
      break;
    default:
      return partition_.begin;
  }
  switch (frame_.mode) {
    case Mode::kRows:
      return forward ? row + std::min(offset, partition_.end - row) : row - std::min(offset, row - partition_.begin);
    case Mode::kGroups: {
      const size_t behind = groups_.size() - 1 - group_;
      return groups_[forward ? group_ + std::min(offset, behind) : group_ - std::min(offset, group_)];
    }
    case Mode::kRange:
      break;
  }
  if (HasNoKey(row)) return peers_.begin;
  const RowColumn& bound = rows_.column(frame_.start_column);
  const auto is_before = [&](size_t i) { return ComesBefore(*key_, i, bound, row); };
  if (frame_.varies)
    return IsOffset(row, bound, forward, kStartNull, kStartNegative) ? FirstNot(keyed_, is_before) : row;
  while (range_start_ < keyed_.end && is_before(range_start_)) ++range_start_;
  return range_start_;
}

size_t Frames::End(size_t row) {
  const size_t offset = Offset(row, frame_.end_offset, frame_.end_column, kEndNull, kEndNegative);
  const bool forward = frame_.end == Bound::kFollowing;
  switch (frame_.end) {
    case Bound::kCurrentRow:
      return frame_.mode == Mode::kRows ? row + 1 : peers_.end;
    case Bound::kPreceding:
    case Bound::kFollowing:
      break;
    default:
      return partition_.end;
  }
  switch (frame_.mode) {
    case Mode::kRows:
      if (forward) return row + 1 + std::min(offset, partition_.end - row - 1);
      return offset > row - partition_.begin ? partition_.begin : row - offset + 1;
    case Mode::kGroups: {
      const size_t last = groups_.size() - 2;
      if (forward) return groups_[group_ + 1 + std::min(offset, last - group_)];
      return offset > group_ ? partition_.begin : groups_[group_ - offset + 1];
    }
    case Mode::kRange:
      break;
  }
  if (HasNoKey(row)) return peers_.end;
  const RowColumn& bound = rows_.column(frame_.end_column);
  const auto is_in = [&](size_t i) { return !ComesBefore(bound, row, *key_, i); };
  if (frame_.varies) return IsOffset(row, bound, forward, kEndNull, kEndNegative) ? FirstNot(keyed_, is_in) : row;
  while (range_end_ < keyed_.end && is_in(range_end_)) ++range_end_;
  return range_end_;
}

}  // namespace tessera::vm
