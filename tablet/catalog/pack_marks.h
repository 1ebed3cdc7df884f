// The marks of deleted rows as the catalog keeps them, made by several threads before it asks for them one after the other.
//
// Start at: PackMarks. Any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/thread_pool.h"
#include "tablet/catalog/table_record.h"

namespace tessera {

/// The marks of more rows are made by several threads. Of fewer it takes about as long as these take to start.
inline constexpr uint64_t kMarksOfOneThread = uint64_t{1} << 22;
/// These threads.
std::unique_ptr<ThreadPool> ThreadsOfMarks();

/// Calls LiveRows::packed() of those that `after` has and `before` has not, if they are many. Errors: kResource.
Status PackMarks(const CatalogContents& before, const CatalogContents& after);

}  // namespace tessera
