// The marks of deleted rows as the catalog keeps them, made by several threads before it asks for them one after the other.
//
// Start at: PackMarks. A pure function; any thread.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "tablet/catalog/table_record.h"

namespace tessera {

/// The marks of more rows are made by several threads. Of fewer it takes about as long as these take to start.
inline constexpr uint64_t kMarksOfOneThread = uint64_t{1} << 22;
inline constexpr unsigned kGreatestMarkThreads = 16;

/// Calls LiveRows::packed() of those that `after` has and `before` has not, if they are many. Errors: kResource.
Status PackMarks(const CatalogContents& before, const CatalogContents& after);

}  // namespace tessera
