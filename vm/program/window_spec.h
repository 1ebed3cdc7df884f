// Windows as a program has them: what is computed of each row and the rows around it, once the rows of a section are in
// order. Part of vm/program/program.h.
//
// Start at: WindowSpec. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "tablet/values/types.h"
#include "vm/program/opcode.h"

namespace tessera::vm {

enum class WindowFunction : uint8_t {
#define WINDOW_FUNCTION(Name, ...) k##Name,
#include "vm/program/window_functions.def"
  kAggregate,  ///< of the rows of the frame, by an opcode
  kFold,       ///< of the values of the frame's rows, in an order of their own
};

struct SortKey {
  int32_t column = 0;  ///< of the emitted row
  bool descending = false, nulls_first = false;
  friend bool operator==(const SortKey&, const SortKey&) = default;
};

/// What becomes of values in order. NULLs do not count, except in kFirst.
enum class Fold : uint8_t {
  kNone,      ///< they all stay
  kFirst,     ///< the first one
  kMode,      ///< that of the longest run of equal ones
  kQuantile,  ///< that at a fraction, a constant, of their number
  kBetween,   ///< class F, INTERVAL: the same, between the two values there
  kJoin,      ///< TEXT: all values, a constant between them
  kCounts,    ///< TEXT: each run of equal values and its length, as {a=2, b=1}; of sections only
};

/// Which rows of its partition a row's frame has. The default is SQL's.
struct WindowFrame {
  enum class Mode : uint8_t {
    kRows,    ///< offsets count rows
    kRange,   ///< offsets are differences of the value ordered by
    kGroups,  ///< offsets count groups of peers
  };
  enum class Bound : uint8_t { kUnboundedPreceding, kPreceding, kCurrentRow, kFollowing, kUnboundedFollowing };
  enum class Exclusion : uint8_t { kNone, kCurrentRow, kGroup, kTies };
  Mode mode = Mode::kRange;
  Bound start = Bound::kUnboundedPreceding, end = Bound::kCurrentRow;
  Exclusion exclusion = Exclusion::kNone;
  int64_t start_offset = 0, end_offset = 0;  ///< kRows, kGroups with kPreceding or kFollowing
  // With kPreceding or kFollowing, columns of the emitted row, else -1. kRange: the frame has the rows whose `key`, the
  // value ordered by, lies between the values that the bounds' columns have in the row. kRows, kGroups: the offset, if it
  // is not the same in all rows.
  int32_t key = -1, start_column = -1, end_column = -1;
  bool varies = false;  ///< kRange: the offset is not the same in all rows
  friend bool operator==(const WindowFrame&, const WindowFrame&) = default;
};

/// Whether the bounds may move back from one row to the next.
constexpr bool MayMoveBack(const WindowFrame& f) {
  return f.mode == WindowFrame::Mode::kRange ? f.varies : f.start_column >= 0 || f.end_column >= 0;
}

/// Whether a frame has all rows of its partition. `order_keys`: without any, all rows are peers.
constexpr bool IsWholePartition(const WindowFrame& f, int32_t order_keys) {
  using Bound = WindowFrame::Bound;
  const bool to_the_end = f.end == Bound::kUnboundedFollowing ||
                          (f.end == Bound::kCurrentRow && f.mode != WindowFrame::Mode::kRows && order_keys == 0);
  return f.start == Bound::kUnboundedPreceding && to_the_end && f.exclusion == WindowFrame::Exclusion::kNone;
}

/// Whether that bound is an offset from the row.
constexpr bool HasOffset(WindowFrame::Bound b) {
  return b == WindowFrame::Bound::kPreceding || b == WindowFrame::Bound::kFollowing;
}

/// Columns are those of the emitted row.
struct WindowSpec {
  WindowFunction function = WindowFunction::kRowNumber;
  Opcode aggregate = Opcode::CountRows;  ///< kAggregate: the opcode that folds the values of `value`
  SqlType type;                          ///< of the (first) column that it adds; an aggregate adds its state's columns
  // Leading entries of RowsAfter::order: the rows that are equal in the first ones are a partition, and those of them that
  // are equal in the next ones, too, are peers.
  int32_t partition_keys = 0, order_keys = 0;
  int32_t value = -1;  ///< the argument; -1: there is none
  int32_t count = -1;  ///< n of ntile, lag, lead, nth_value; -1: it is `number`
  int64_t number = 1;
  int32_t fallback = -1;       ///< lag, lead: the value where there is no such row; -1: NULL
  bool ignore_nulls = false;   ///< functions of a value: rows where it is NULL do not count
  bool distinct = false;       ///< kAggregate, kFold: of equal values one counts
  Fold fold = Fold::kNone;     ///< kFold
  int32_t fold_constant = -1;  ///< kQuantile, kBetween: DOUBLE, 0 to 1; kJoin: TEXT; else -1
  /// kFold: the order of the values; of equal ones the row that comes first. It begins with `value` if equal values have
  /// to be found: `distinct`, kMode.
  std::vector<SortKey> order;
  WindowFrame frame;
  friend bool operator==(const WindowSpec&, const WindowSpec&) = default;
};

/// Whether the function reads the rows of the frame.
constexpr bool HasFrame(WindowFunction f) { return f >= WindowFunction::kFirstValue; }

/// The name in SQL; "aggregate" of kAggregate.
const char* NameOf(WindowFunction function);

}  // namespace tessera::vm
