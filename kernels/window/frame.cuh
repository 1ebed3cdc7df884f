// The frame of a row, found from the runs that it lies in: what vm/after/window_frames.cc finds by moving on from row to row.
// Private to kernels/window/.
#pragma once

#include <type_traits>

#include "base/int128.h"
#include "kernels/window/window_columns.h"
#include "vm/meaning/meaning.h"

namespace tessera::kernels {

inline constexpr uint32_t kWindowBlock = 256;

/// A thread for each row: a loop would save little, and a frame has no more than 2^31 rows.
inline uint32_t WindowBlocks(uint32_t rows) { return (rows + kWindowBlock - 1) / kWindowBlock; }
__device__ inline uint32_t WindowRow() { return blockIdx.x * kWindowBlock + threadIdx.x; }

/// Rows [begin, end).
struct RowSpan {
  uint32_t begin, end;
  __device__ uint32_t size() const { return end - begin; }
};
__device__ inline RowSpan RunOf(const RowRuns& runs, uint32_t row) {
  const uint32_t run = runs.number[row];
  return {runs.begin[run], runs.begin[run + 1]};
}

/// The rows of `before`, the row itself if `own`, the rows of `after`.
struct FrameRows {
  RowSpan before, after;
  bool own;
  __device__ uint32_t size() const { return before.size() + after.size() + (own ? 1 : 0); }
};

__device__ inline bool IsNull(const WindowColumn& c, uint32_t row) { return c.null[row] != 0; }
template <class T>
__device__ T ValueOf(const WindowColumn& c, uint32_t row) {
  if constexpr (std::is_same_v<T, int128_t>) {
    return Make128(static_cast<int64_t>(c.high[row]), static_cast<int64_t>(c.low[row]));
  } else if constexpr (std::is_same_v<T, double>) {
    return __longlong_as_double(static_cast<long long>(c.low[row]));
  } else {
    return static_cast<int64_t>(c.low[row]);
  }
}

/// Whether a.row comes before b.row in ascending order; neither is NULL.
__device__ inline bool IsLess(const WindowColumn& a, uint32_t a_row, const WindowColumn& b, uint32_t b_row) {
  if (a.is_float) return vm::FloatLess(ValueOf<double>(a, a_row), ValueOf<double>(b, b_row));
  if (a.high != nullptr) return ValueOf<int128_t>(a, a_row) < ValueOf<int128_t>(b, b_row);
  return ValueOf<int64_t>(a, a_row) < ValueOf<int64_t>(b, b_row);
}

/// Of the rows whose key is not NULL, the first that does not come before the bound; `behind`: that comes after it.
__device__ inline uint32_t FindBound(const FrameColumns& f, const WindowColumn& bound, uint32_t row, RowSpan keyed,
                                     bool behind) {
  while (keyed.begin < keyed.end) {
    const uint32_t middle = keyed.begin + keyed.size() / 2;
    const bool less = IsLess(f.key, middle, bound, row), greater = IsLess(bound, row, f.key, middle);
    const bool before = f.descending ? greater : less, after = f.descending ? less : greater;
    if (behind ? !after : before) {
      keyed.begin = middle + 1;
    } else {
      keyed.end = middle;
    }
  }
  return keyed.begin;
}

__device__ inline FrameRows FrameOf(const FrameColumns& f, uint32_t row) {
  using Bound = vm::WindowFrame::Bound;
  using Mode = vm::WindowFrame::Mode;
  using Exclusion = vm::WindowFrame::Exclusion;
  const vm::WindowFrame& w = f.frame;
  const RowSpan partition = RunOf(f.partitions, row), peers = RunOf(f.peers, row);
  // The rows of the partition whose key is not NULL. NULLs are peers, before or after all others.
  const bool has_key = f.key.low != nullptr && !IsNull(f.key, row);
  RowSpan keyed = partition;
  if (has_key) {
    if (IsNull(f.key, partition.begin)) keyed.begin = RunOf(f.peers, partition.begin).end;
    if (IsNull(f.key, partition.end - 1)) keyed.end = RunOf(f.peers, partition.end - 1).begin;
  }
  // The first row of the peers that are that many groups away, or the end of the partition.
  const auto group_begin = [&](int64_t groups) {
    const int64_t first = f.peers.number[partition.begin], last = f.peers.number[partition.end - 1];
    int64_t at = f.peers.number[row] + groups;
    at = at < first ? first : at > last + 1 ? last + 1 : at;
    return f.peers.begin[at];
  };
  const auto row_at = [&](int64_t at) {
    return static_cast<uint32_t>(at < partition.begin ? partition.begin : at > partition.end ? partition.end : at);
  };
  // (Offsets beyond the rows are the same as the number of rows.)
  const int64_t most = f.rows;
  const int64_t from = w.start_offset > most ? most : w.start_offset, to = w.end_offset > most ? most : w.end_offset;

  uint32_t start = partition.begin;
  if (w.start == Bound::kCurrentRow) {
    start = w.mode == Mode::kRows ? row : peers.begin;
  } else if (vm::HasOffset(w.start)) {
    const int64_t offset = w.start == Bound::kFollowing ? from : -from;
    if (w.mode == Mode::kRows) start = row_at(int64_t{row} + offset);
    if (w.mode == Mode::kGroups) start = group_begin(offset);
    if (w.mode == Mode::kRange) start = has_key ? FindBound(f, f.start, row, keyed, false) : peers.begin;
  }
  uint32_t end = partition.end;
  if (w.end == Bound::kCurrentRow) {
    end = w.mode == Mode::kRows ? row + 1 : peers.end;
  } else if (vm::HasOffset(w.end)) {
    const int64_t offset = (w.end == Bound::kFollowing ? to : -to) + 1;
    if (w.mode == Mode::kRows) end = row_at(int64_t{row} + offset);
    if (w.mode == Mode::kGroups) end = group_begin(offset);
    if (w.mode == Mode::kRange) end = has_key ? FindBound(f, f.end, row, keyed, true) : peers.end;
  }
  if (end < start) end = start;

  FrameRows out = {{start, end}, {end, end}, false};
  if (w.exclusion == Exclusion::kNone) return out;
  const RowSpan hole = w.exclusion == Exclusion::kCurrentRow ? RowSpan{row, row + 1} : peers;
  const auto clamp = [&](uint32_t at) { return at < start ? start : at > end ? end : at; };
  out.before.end = clamp(hole.begin);
  out.after.begin = clamp(hole.end);
  out.own = w.exclusion == Exclusion::kTies && start <= row && row < end;
  return out;
}

/// The values of a frame that are not NULL. `counts`: of the first i + 1 rows.
__device__ inline uint32_t CountOf(const FrameRows& f, uint32_t row, const uint32_t* counts) {
  const auto before = [&](uint32_t at) { return at == 0 ? 0 : counts[at - 1]; };
  const uint32_t own = f.own ? counts[row] - before(row) : 0;
  return before(f.before.end) - before(f.before.begin) + before(f.after.end) - before(f.after.begin) + own;
}

}  // namespace tessera::kernels
