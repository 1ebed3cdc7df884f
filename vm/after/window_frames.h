// The frame of each row of a partition, from the first row to the last. All bounds only move on, but with offsets that are
// columns. What EXCLUDE leaves out
// is a hole, so that a frame is two ranges, and for EXCLUDE TIES the row itself between them. Private to vm/.
//
// Start at: Frames::Enter, MoveTo. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vm/program/program.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {

/// Ordered rows, and where they differ.
struct OrderedRows {
  static constexpr uint8_t kSame = 255;
  const Section& section;
  const RowSet& rows;
  /// Per row: the first entry of the order in which it differs from the row before; kSame: none.
  std::vector<uint8_t> differs;

  /// The end of the rows from `begin` on, before `end`, that are equal in the first `keys` entries of the order.
  size_t EndOfEqual(size_t begin, size_t end, int32_t keys) const {
    size_t i = begin + 1;
    while (i < end && differs[i] >= keys) ++i;
    return i;
  }
  const RowColumn& column(int32_t number) const { return rows.columns[static_cast<size_t>(number)]; }
};

/// Rows [begin, end).
struct RowRange {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

class Frames {
 public:
  Frames(const OrderedRows& rows, const WindowSpec& window);

  /// From here on the partition is rows [begin, end).
  void Enter(size_t begin, size_t end);
  /// Makes this row's frame. REQUIRES: the partition's rows, one after the other.
  void MoveTo(size_t row);

  /// The frame: the rows of `before`, the row itself if `own`, the rows of `after`.
  RowRange before, after;
  bool own = false;

  /// An offset that was NULL or negative, in words; nullptr: there was none.
  const char* wrong_offset() const { return wrong_offset_; }
  bool excludes() const { return frame_.exclusion != WindowFrame::Exclusion::kNone; }
  size_t size() const { return before.size() + after.size() + (own ? 1 : 0); }

 private:
  size_t Start(size_t row);
  size_t End(size_t row);
  /// The offset of a bound in the row.
  size_t Offset(size_t row, int64_t offset, int32_t column, const char* null, const char* negative);
  bool HasNoKey(size_t row) const { return !key_->null.empty() && key_->null[row] != 0; }
  /// Whether the value of `a` in row i comes before that of `b` in row j, in the order of the keys.
  bool ComesBefore(const RowColumn& a, size_t i, const RowColumn& b, size_t j) const;
  /// RANGE with offsets that vary: checks that the bound lies where its offset, which must not be negative, puts it.
  bool IsOffset(size_t row, const RowColumn& bound, bool forward, const char* null, const char* negative);

  const OrderedRows& rows_;
  const WindowFrame& frame_;
  const int32_t peer_keys_;  ///< rows that are equal in this many entries of the order are peers
  const RowColumn* key_ = nullptr;
  const char* wrong_offset_ = nullptr;
  bool descending_ = false;  ///< the order of `key_`
  bool counts_groups_ = false;
  RowRange partition_, peers_;
  RowRange keyed_;  ///< the rows of the partition whose key is not NULL
  size_t range_start_ = 0, range_end_ = 0;
  std::vector<size_t> groups_;  ///< counts_groups_: where the partition's groups of peers begin, and its end
  size_t group_ = 0;            ///< that of the row
};

}  // namespace tessera::vm
