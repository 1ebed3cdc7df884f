// What a record of the commit log says: the next versions of tables, which have the same schemas, the files that come with
// them, and values of sequences. FORMAT.md gives the bytes. Private to tablet/catalog.
//
// Start at: EncodeChange, ApplyChange. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/catalog_names.h"
#include "tablet/catalog/sequence.h"
#include "tablet/catalog/table_record.h"

namespace tessera {

/// A tablet's file, in a record.
struct LoggedFile {
  int64_t tablet = 0;
  uint64_t offset = 0;  ///< in the record
  uint64_t bytes = 0;
};

struct LoggedTable {
  std::shared_ptr<const TableRecord> before, after;
  std::vector<std::string> sketches;  ///< by column
  std::vector<LoggedFile> files;
};

/// What a record does.
struct LoggedChange {
  std::vector<LoggedTable> tables;
  Sequences sequences;  ///< those that have got another value, with it
  int64_t next_tablet_id = 1;

  bool IsEmpty() const { return tables.empty() && sequences.empty(); }
  /// Only catalogs from version kVersionWithSeveral on have records of anything but one table.
  bool IsOfOneTable() const { return tables.size() == 1 && sequences.empty(); }
};
inline constexpr int kVersionWithSeveral = 11, kVersionWithRoles = 12;

/// Whether nothing differs but values of sequences: a record may bring the one to the other.
bool DifferInValuesAlone(const CatalogNames& a, const CatalogNames& b);

/// What makes `after` of `before`. `sketches`: of the tables that differ, by identifier. REQUIRES: the same tables, with the same
/// schemas, and the same names but for values of sequences.
LoggedChange DifferenceOf(const CatalogContents& before, const CatalogContents& after,
                          const std::unordered_map<int64_t, std::vector<std::string>>& sketches);

/// The files of new tablets of a table, whole, in their order.
struct NewFile {
  int64_t tablet = 0;
  std::string bytes;
};

/// Of each table's `after`, version and checksum are set; its schema is that of `before`, whose tablets have lost rows at most.
/// `files`: by table. The change gets where they are in the record.
std::string EncodeChange(std::span<const std::vector<NewFile>> files, LoggedChange* change);

/// Brings tables to their next versions, and sequences to their values. Errors: kCorrupt, with the reason alone; then the contents
/// are of no use any more.
Result<LoggedChange> ApplyChange(std::string_view record, CatalogContents* contents);

}  // namespace tessera
