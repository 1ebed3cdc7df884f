// ORDER BY with a LIMIT: rows that cannot be in the result are not kept. Each unit's rows are cut to the best of them,
// and the worst of these gives a bound: rows after it are dropped before they are emitted, by all workers. Private to
// vm/.
//
// Start at: TopRows::Cut. Shared by the workers of a section.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/text_head.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/rows/row_order.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

class TopRows {
 public:
  TopRows(const Section& section, const SectionTraits& traits);

  /// Whether the section has an order and a LIMIT that is small enough to make cutting pay, or folds all rows to the
  /// first. If not, nothing is cut or dropped.
  bool active() const { return keep_ > 0; }
  /// Cuts a unit's rows to the best ones if they have become many, or at the unit's end. Equal rows keep their order.
  Status Cut(bool end, const StringPool& strings, RowSet* rows);

  /// Whether the ranges of a tablet's chunks show that all its rows are after the bound. (Only where no instruction
  /// can fail: a row that is left out must not be one that raises an error.)
  bool LeavesOut(const TabletEncoding& tablet) const;
  /// Whether units should run from the last to the first: in tables loaded in the order of time, the latest rows are
  /// last.
  bool Backwards() const { return active() && descends(); }

  /// The section's column that the bound limits.
  size_t column() const { return static_cast<size_t>(section_.after.order[0].column); }
  /// Rows with greater codes are not wanted. UINT64_MAX: there is no bound yet.
  uint64_t bound() const { return bound_.load(std::memory_order_relaxed); }
  /// The code of a value of column(): rows with lower codes come first. REQUIRES: bound() < UINT64_MAX.
  uint64_t Code(int64_t value) const { return OrderCode(value, is_float_, descends()); }
  /// The same of a text; texts that begin alike have one code.
  uint64_t Code(std::string_view text) const { return descends() ? ~TextHead(text) : TextHead(text); }
  /// The value of column() whose code is the bound. REQUIRES: bound() < UINT64_MAX, and it is an integer.
  int64_t LastInteger() const { return ValueOfOrderCode(bound(), false, descends()); }
  bool is_float() const { return is_float_; }
  bool is_text() const { return is_text_; }
  bool descends() const { return section_.after.order[0].descending; }
  bool keeps_nulls() const { return section_.after.order[0].nulls_first; }

 private:
  const Section& section_;
  size_t keep_ = 0;  ///< OFFSET + LIMIT; 0: not active
  bool has_bound_ = false, is_float_ = false, is_text_ = false;
  int slot_ = -1;  ///< the slot that column() is a copy of; -1: none, or LeavesOut must not use it
  std::atomic<uint64_t> bound_{UINT64_MAX};
};

}  // namespace tessera::vm
