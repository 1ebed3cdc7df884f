// A table at one moment, with its tablets and statistics; all tables at one moment.
//
// Start at: Snapshot, TableInfo.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/catalog_names.h"
#include "tablet/catalog/macro.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/view.h"
#include "tablet/files/file_identity.h"
#include "tablet/files/tablet.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/types.h"

namespace tessera {

/// Over all tablets of a table.
struct ColumnStatistics {
  bool has_range = false;     ///< false if there is no row that is not NULL, and for TEXT
  int128_t min = 0, max = 0;  ///< in the integer or ordered form of Chunk::min
  uint64_t null_count = 0;
  uint64_t distinct = 0;  ///< estimate of distinct values, at least 1 if there is any
  uint64_t encoded_bytes = 0;
};

struct TableInfo;

/// What has been made of a table once, by column. A copy of the table, which may be changed, has nothing yet. Any thread.
template <class T>
class MadeByColumn {
 public:
  MadeByColumn() = default;
  MadeByColumn(const MadeByColumn&) {}
  MadeByColumn& operator=(const MadeByColumn&) {
    made_.clear();
    return *this;
  }

  /// nullptr: nothing has been made yet.
  std::shared_ptr<const T> Find(int column) const {
    std::lock_guard lock(mutex_);
    const auto at = made_.find(column);
    return at == made_.end() ? nullptr : at->second;
  }
  /// In place of what there is. Returns it.
  std::shared_ptr<const T> Keep(int column, std::shared_ptr<const T> made) const {
    std::lock_guard lock(mutex_);
    return made_.insert_or_assign(column, std::move(made)).first->second;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<int, std::shared_ptr<const T>> made_;
};

/// Tells an object from all others of the process, also from one that was at its place and is gone. A copy has its own. Any
/// thread.
class ObjectNumber {
 public:
  ObjectNumber() = default;
  ObjectNumber(const ObjectNumber&) : ObjectNumber() {}
  ObjectNumber& operator=(const ObjectNumber&) {
    number_ = ++last_;
    return *this;
  }
  uint64_t value() const { return number_; }

 private:
  inline static std::atomic<uint64_t> last_{0};
  uint64_t number_ = ++last_;
};

/// The values of an integer column in a tablet or in several, NULLs apart; low > high: there are none.
struct ColumnRange {
  int64_t low = INT64_MAX, high = INT64_MIN;

  bool any() const { return low <= high; }
  void Add(const ColumnRange& r) {
    low = std::min(low, r.low);
    high = std::max(high, r.high);
  }
  bool Meets(const ColumnRange& r) const { return any() && r.any() && low <= r.high && r.low <= high; }
};
using ColumnRanges = std::vector<ColumnRange>;

/// Identifiers of tables and tablets that files were read into begin here: no database has given as many.
inline constexpr int64_t kFirstFileTable = int64_t{1} << 40;

struct TableInfo {
  int64_t id = 0;       ///< never reused in a database
  int64_t version = 0;  ///< grows with each change of the table
  TableSchema schema;
  uint64_t rows = 0;         ///< live ones: what a query sees
  uint64_t stored_rows = 0;  ///< of all tablets: those that have been deleted are among them
  /// BOOLEAN: whether a row is live; every scan filters by it first. -1: no row has been deleted. It has no schema.
  int live_column = -1;
  /// One per column, and of live_column if there is one. They are of all stored rows, so what they say of the live ones
  /// are bounds.
  std::vector<ColumnStatistics> statistics;
  std::vector<std::shared_ptr<const Tablet>> tablets;  ///< files are opened when first read
  std::vector<uint8_t> buckets;  ///< by tablet: that of all its rows; empty: the table is not distributed
  /// The rows are runs of this column, see RunsOf; -1: they are as stored.
  int runs_of = -1;
  MadeByColumn<TableInfo> runs = {};
  MadeByColumn<ColumnRanges> ranges = {};
  ObjectNumber number = {};  ///< the same number: the same rows, columns and statistics
  /// What its rows were read of, see tablet/file_tables.h; empty: it is a table of the database.
  std::vector<FileIdentity> files = {};
};

/// The table with the runs of a column in place of its rows: neighbours that are equal in it are one, and how many they are
/// is the last column, a BIGINT. No other column than these two can be read. Errors: as Tablet::Runs.
/// `runs`: how many each tablet has, as another process that has read them says; nullptr: it is not known.
Result<std::shared_ptr<const TableInfo>> RunsOf(const TableInfo& table, int column, const std::vector<int32_t>* runs);

/// Of each tablet, from the descriptors of its chunks, which are looked at once. Errors: as Tablet::Describe; kUnsupported, a
/// chunk has other values than integers of 64 bits.
Result<std::shared_ptr<const ColumnRanges>> RangesOf(const TableInfo& table, int column);

class Snapshot;

/// Another database that a session reads, see session/attached_databases.h.
struct AttachedDatabase {
  std::string name;
  std::string directory;   ///< absolute
  bool is_sqlite = false;  ///< it is a file of SQLite: `tables` are without rows, and are read as 'file'.t is
  /// Sorted by name: AttachedName. Their identifiers are none that another database gives.
  std::vector<std::shared_ptr<const TableInfo>> tables;
  std::shared_ptr<const Snapshot> snapshot;  ///< as it calls them itself
};

/// All tables, types and views at one moment.
class Snapshot {
 public:
  std::vector<std::shared_ptr<const TableInfo>> tables;  ///< sorted by name
  std::vector<std::shared_ptr<const TableInfo>> files;   ///< what the statement reads that is no table but a file
  std::vector<EnumType> types;                           ///< sorted by name
  std::vector<Macro> macros;                             ///< in the order of ComesBefore
  Views views;                                           ///< those of the session, too
  CatalogNames names;                                    ///< sequences, schemas and comments
  std::vector<std::shared_ptr<const AttachedDatabase>> attached;  ///< sorted by name
  /// The schemas of the session in which names alone are looked for, "" for the default one; empty: that alone.
  std::vector<std::string> path;
  /// nullptr if there is none. Names are as PostgreSQL folds them (the parser lower-cases unquoted names).
  std::shared_ptr<const TableInfo> Find(std::string_view name) const;
  /// nullptr if there is none.
  const AttachedDatabase* FindAttached(std::string_view name) const;
  /// The qualified name that a name alone means: of a temporary table, or of a table, view or sequence in the first schema of
  /// the path that has one; else as the first schema of the path would have it.
  std::string Resolve(std::string_view name) const;
  /// A table, also of an attached database, or a file; nullptr if there is none.
  const TableInfo* FindById(int64_t id) const;
};

}  // namespace tessera
