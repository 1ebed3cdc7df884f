// What rows that others refer to were, and became, by UPDATEs: ON UPDATE CASCADE follows them, and ON DELETE does not mean
// them. Internal to session/.
//
// Start at: UpdatedKeys. The thread of the session.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/row_batch.h"

namespace tessera {

class UpdatedKeys {
 public:
  /// Watches the columns that foreign keys with an action refer to.
  explicit UpdatedKeys(const Snapshot& snapshot);

  /// Rows of a table with numbers of its rows (NumberRows of tablet/catalog/live_tablet.h) get the values of `batch`, whose
  /// first columns are those of the table.
  Status Note(const TableInfo& table, std::span<const int64_t> numbers, const RowBatch& batch);
  /// Of the table's columns `columns`, which are watched: the old values, and then the new ones.
  RowBatch Of(const std::string& table, std::span<const int> columns) const;

 private:
  struct Watched {
    std::vector<int> columns;
    RowBatch rows;  ///< the old values of these columns, and then the new ones
  };
  std::map<std::string, Watched, std::less<>> tables_;
};

}  // namespace tessera
