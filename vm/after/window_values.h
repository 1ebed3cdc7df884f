// What each window function computes of one partition. Private to vm/.
//
// Start at: WindowTask, EvaluateWindow. Threads evaluate different partitions at the same time.
#pragma once

#include <span>

#include "base/status.h"
#include "vm/after/window_frames.h"
#include "vm/rows/sort_keys.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// A window of a section, and where its values go.
struct WindowTask {
  const OrderedRows& rows;
  const WindowSpec& window;
  StringPool& strings;
  std::span<RowColumn> out;         ///< of as many rows; `null` has a byte for each, 0
  const Value* constant = nullptr;  ///< of WindowSpec::fold_constant
  const SortKeys* order = nullptr;  ///< OrdersValues: of all rows, by the order of the values
};

/// Whether the values of a frame are looked at in an order of their own, see vm/after/window_bag.h.
inline bool OrdersValues(const WindowSpec& window) {
  return window.function == WindowFunction::kFold || window.distinct;
}

/// Evaluates the window for all partitions of rows [begin, end), which begins and ends with one. Errors: kSql.
Status EvaluateWindow(const WindowTask& task, size_t begin, size_t end);
/// The same. REQUIRES: OrdersValues.
Status EvaluateBags(const WindowTask& task, size_t begin, size_t end);

}  // namespace tessera::vm
