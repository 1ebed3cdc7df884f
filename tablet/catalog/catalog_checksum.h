// The checksums of the catalog: FORMAT.md says what they cover. Private to tablet/.
//
// Start at: TableChecksum. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "tablet/catalog/table_record.h"

namespace tessera {

uint64_t TableChecksum(const TableRecord& table);
/// The next version of the table, without rows.
TableRecord Emptied(const TableRecord& table);
uint64_t DatabaseChecksum(const CatalogContents& contents);

}  // namespace tessera
