// Keys of files. A file declares none, but one that was written from a table is often sorted by its key. Where the ranges of
// row groups ascend, columns that a query reads in any case are looked at once: with a key the query is compiled to what it would be
// over the table.
//
// Start at: FileKeys::Find. One thread.
#pragma once

#include <set>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/load/copy_options.h"

namespace tessera {

/// What has been looked at of a table whose tablets do not change.
class FileKeys {
 public:
  /// Those that the table does not have yet: columns of integers without NULLs that ascend from row to row, and pairs of one that never
  /// descends and another one that differs wherever the first is the same. `read`: by column: only these are looked at. What cannot
  /// be read is no key. Errors: kCancelled.
  Result<std::vector<std::vector<int>>> Find(const TableInfo& table, const std::vector<bool>& read,
                                             const CopyFromOptions& options);

 private:
  std::set<int> looked_at_;
  std::set<int> ascending_;  ///< their ranges are, from row group to row group
  std::set<int> unique_;     ///< keys of one column
  std::set<std::vector<int>> tried_;
};

}  // namespace tessera
