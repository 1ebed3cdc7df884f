// Where rows of tablets lie that writers of this process have stored anew, with other rows or for good of the table: a
// transaction that sees an older state of the table changes these rows where they are now.
//
// Nothing of it is on disk, and the oldest of it is forgotten. A row that is not found here may be anywhere, or nowhere.
//
// Start at: MovedRows::OfProcess, Find. Any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tablet/catalog/table_record.h"
#include "tablet/files/live_rows.h"
#include "tablet/files/tablet.h"

namespace tessera {

/// Tells a tablet from all others of the directory, also from one that had its identifier and was rolled back.
struct StoredTablet {
  int64_t id = 0;
  uint64_t checksum = 0;  ///< of what its header says, which are the checksums of its columns
  uint32_t rows = 0;
  auto operator<=>(const StoredTablet&) const = default;
};
StoredTablet StoredOf(const TabletRecord& tablet);
/// Without an identifier: it is no file of a database.
StoredTablet StoredOf(const Tablet& tablet);

class MovedRows {
 public:
  struct Move {
    std::shared_ptr<const LiveRows> live;  ///< the rows that have moved; nullptr: all
    bool stay = false;                     ///< they have the same numbers in `to[0]`; else they follow each other
    uint64_t first = 0;                    ///< which of the rows of `to` the first of them is
    std::shared_ptr<const std::vector<StoredTablet>> to;
  };
  static MovedRows& OfProcess();

  /// `directory`: of the database. In place of what was said of the tablet before, which was not kept.
  void Note(const std::string& directory, const StoredTablet& from, Move move);
  std::optional<Move> Find(const std::string& directory, const StoredTablet& from) const;

 private:
  using Key = std::pair<std::string, StoredTablet>;
  static uint64_t BytesOf(const Move& move);

  mutable std::mutex mutex_;
  std::map<Key, Move> moves_;
  std::deque<Key> order_;  ///< of their notes
  uint64_t bytes_ = 0;
};

}  // namespace tessera
