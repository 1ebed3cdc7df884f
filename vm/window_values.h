// What each window function computes of one partition. Private to vm/.
//
// Start at: WindowTask, EvaluateWindow. Threads evaluate different partitions at the same time.
#pragma once

#include <span>

#include "base/status.h"
#include "vm/string_pool.h"
#include "vm/window_frames.h"

namespace tessera::vm {

/// A window of a section, and where its values go.
struct WindowTask {
  const OrderedRows& rows;
  const WindowSpec& window;
  const StringPool& strings;
  std::span<RowColumn> out;  ///< of as many rows; `null` has a byte for each, 0
};

/// Evaluates the window for all partitions of rows [begin, end), which begins and ends with one. Errors: kSql.
Status EvaluateWindow(const WindowTask& task, size_t begin, size_t end);

}  // namespace tessera::vm
