// Window functions: from the ordered rows of a section to the columns that its windows add. Partitions and peers are found
// once, by comparing neighbours. A frame's bounds only move on from row to row, so every function takes time in proportion
// to the rows, whatever the frame: see vm/after/window_frames.h and vm/after/window_fold.h. Threads share the partitions.
//
// Start at: AddWindows. For vm/; one thread.
#pragma once

#include <vector>

#include "base/status.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

/// The types of the columns that a window adds.
std::vector<SqlType> TypesOf(const WindowSpec& window);
/// The types of the section's rows as others read them: Section::columns, and what its windows add.
std::vector<SqlType> TypesOfRows(const Section& section);

/// Adds the columns of the section's windows. REQUIRES: the rows are in the section's order. Errors: kSql (ntile of 0, a
/// text of 2^30 bytes), kResource.
Status AddWindows(const Section& section, const std::vector<Value>& constants, StringPool* strings, ThreadPool* pool,
                  RowSet* rows);

}  // namespace tessera::vm
