// Working on rows in the machine's form: joining pieces, hashing keys, sorting, decoding. For vm/ and the
// devices that run its sections.
#pragma once

#include <cstdint>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "vm/program.h"
#include "vm/string_pool.h"
#include "vm/vm.h"

namespace tessera::vm {

/// Empty columns of the given types.
RowSet MakeRowSet(const std::vector<SqlType>& types);
/// Appends the rows of `from`, which has the same columns.
void AppendRows(RowSet* to, RowSet&& from);
/// Appends rows [first, first + count) of `from`, which has the same columns.
void AppendRange(RowSet* to, const RowSet& from, size_t first, size_t count);
/// The rows of all shipments in the order of their units. Where two shipments have the same unit, the first shipment's
/// rows come first.
RowSet InUnitOrder(const Section& section, std::vector<Shipment> shipments);
/// Adds a column with the number of each row's unit.
void AppendUnitColumn(Shipment* shipment);
/// Rows in the order and between the bounds that the section asks for. Text is compared through `strings`.
/// By the threads of `pool`, if there is one and there are many rows. Errors: kResource, no memory for it.
Status OrderAndLimit(const Section& section, const StringPool& strings, ThreadPool* pool, RowSet* rows);
/// Leaves the rows between the section's bounds. They are in its order already.
void ApplyBounds(const Section& section, RowSet* rows);
/// The section with the bounds for ordering only some of its rows, while it is not known which rows come before them:
/// its LIMIT is OFFSET rows greater, and it skips none.
Section WithoutOffset(const Section& section);
/// `rows` consists of runs that are sorted as the section asks for, each from where `starts` says to the next one's
/// start: merged, between the section's bounds. Equal rows keep their order. By the threads of `pool`, if there is one
/// and there are many rows. Errors: kResource, no memory for it.
Status MergeRuns(const Section& section, const std::vector<size_t>& starts, const StringPool& strings, ThreadPool* pool,
                 RowSet* rows);
/// Sorts rows by one column, as JoinSpec::order says: ascending, NULL last, equal rows in the order they had.
Status SortRows(int column, const StringPool& strings, ThreadPool* pool, RowSet* rows);
/// Rows [first, first + count) of the first `columns.size()` columns, decoded, with the result's types.
RowBatch DecodeRows(const RowSet& rows, const std::vector<ResultColumn>& columns, size_t first, size_t count,
                    const StringPool& strings);

/// One step of the hash of a key: a multiplication and a shift per word spread the low bits upward and back.
inline uint64_t HashWord(uint64_t hash, int64_t word) {
  hash = (hash ^ static_cast<uint64_t>(word)) * 0xD6E8FEB86659FD93u;
  return hash ^ (hash >> 32);
}
inline constexpr uint64_t kHashSeed = 0x9AE16A3B2F90404Fu;

}  // namespace tessera::vm
