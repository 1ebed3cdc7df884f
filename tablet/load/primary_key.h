// Uniqueness of primary keys and UNIQUE.
//
// New rows are checked among themselves and against the rows the table had, which are taken to be unique. Integer keys
// whose values are dense enough go into a bitmap (one bit for each possible key, 1 GiB at most); other keys into a hash
// table of the new rows, 32 bytes a row, in as many passes as keep it below 1 GiB. Old rows are only streamed past it,
// and only from tablets whose key ranges overlap those of the new rows. Rows that have been deleted do not count.
//
// Start at: CheckKeys. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/files/tablet.h"

namespace tessera {

using TabletPointers = std::vector<std::shared_ptr<const Tablet>>;

/// What bounds the check's memory; tests make it small.
struct PrimaryKeyLimits {
  uint64_t bitmap_bits = uint64_t{1} << 33;
  uint64_t hashed_rows = uint64_t{1} << 25;  ///< a pass
};

/// Errors: kConstraint, `duplicate key value violates primary key of "t": (k)=(5)`; kCancelled; those of
/// Tablet::Chunk(). `cancel` may be nullptr. REQUIRES: the columns of schema.primary_key have no NULLs.
Status CheckKeys(const TableSchema& schema, const TabletPointers& old_tablets, const TabletPointers& new_tablets,
                 const std::atomic<bool>* cancel, const PrimaryKeyLimits& limits = {});

}  // namespace tessera
