// What a record of the commit log says: a table's next version, which has the same schema, and the files that come with it.
// FORMAT.md gives the bytes. Private to tablet/catalog.
//
// Start at: EncodeChange, ApplyChange. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_record.h"

namespace tessera {

/// A tablet's file, in a record.
struct LoggedFile {
  int64_t tablet = 0;
  uint64_t offset = 0;  ///< in the record
  uint64_t bytes = 0;
};

/// What a record did.
struct LoggedChange {
  std::shared_ptr<const TableRecord> before, after;
  std::vector<std::string> sketches;  ///< by column
  std::vector<LoggedFile> files;
};

/// The files of new tablets, whole, in their order.
struct NewFile {
  int64_t tablet = 0;
  std::string bytes;
};

/// Of `after`, version and checksum are set; its schema is that of `before`, whose tablets have lost rows at most.
/// `*placed`: where the files are in the record.
std::string EncodeChange(const TableRecord& before, const TableRecord& after, const std::vector<std::string>& sketches,
                         int64_t next_tablet_id, const std::vector<NewFile>& files, std::vector<LoggedFile>* placed);

/// Brings the table to its next version. Errors: kCorrupt, with the reason alone; then nothing has changed.
Result<LoggedChange> ApplyChange(std::string_view record, CatalogContents* contents);

}  // namespace tessera
