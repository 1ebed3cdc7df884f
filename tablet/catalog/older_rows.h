// A table as a transaction sees it that changes rows after other sessions have: the rows of its first statement, without those
// that it has deleted itself, and with its own. For each of them it is known where it is in the table that there is now, and
// whether it is there at all: others may have deleted it, or given it other values.
//
// Start at: OlderRows::See, PlaceOf. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/files/live_rows.h"
#include "tablet/files/tablet.h"

namespace tessera {

class OlderRows {
 public:
  /// States of one table with the same columns. `before`: at the first statement; `first`: when the transaction began to change
  /// the database, before it did; `now`: with its changes, which have kept the tablets of `first` but for those that are empty.
  /// `directory`: of the database. Errors: those of Tablet::Describe.
  static Result<std::shared_ptr<const OlderRows>> See(const std::string& directory,
                                                      const std::shared_ptr<const TableInfo>& before,
                                                      const TableInfo& first,
                                                      const std::shared_ptr<const TableInfo>& now);

  /// What is seen. It keeps the files of both states.
  const std::shared_ptr<const TableInfo>& table() const { return table_; }
  /// Of the state `now` that this was made of.
  int64_t version() const { return version_; }

  static constexpr int64_t kChanged = -1;
  /// The number that a row of `table()` has in `now`, both as NumberRows has them. kChanged: others have deleted it or given it other
  /// values, or it is not known where they have written it.
  int64_t PlaceOf(int64_t number) const;

  /// Tablets with those of the rows that PlaceOf does not find.
  const std::vector<std::shared_ptr<const Tablet>>& changed() const { return changed_; }
  /// Tablets of the rows that the transaction has added.
  const std::vector<std::shared_ptr<const Tablet>>& own() const { return own_; }

 private:
  struct Place {
    int64_t tablet = kChanged;                  ///< in `now`, where the rows have the same numbers in it
    std::shared_ptr<const LiveRows> unchanged;  ///< ... of these; nullptr: all
    std::vector<int64_t> rows;                  ///< else, by row
  };
  class Maker;

  std::shared_ptr<const TableInfo> table_;
  int64_t version_ = 0;
  std::vector<Place> places_;  ///< by tablet of the table
  std::vector<std::shared_ptr<const Tablet>> changed_, own_;
};

}  // namespace tessera
