// Operations on rows in the machine's form: appending, hashing keys, sorting, decoding. For vm/ and the devices that
// run its sections.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"
#include "vm/vm.h"

namespace tessera::vm {

/// Empty columns of the given types.
RowSet MakeRowSet(const std::vector<SqlType>& types);
/// Appends the rows of `from`, which has the same columns.
void AppendRows(RowSet* to, RowSet&& from);
/// Appends the rows of all of `from`, one after the other. Uses the threads of `pool`, if not nullptr, for many rows.
/// Errors: kResource, out of memory.
Status AppendAll(RowSet* to, std::vector<RowSet> from, ThreadPool* pool);
/// Appends rows [first, first + count) of `from`, which has the same columns.
void AppendRange(RowSet* to, const RowSet& from, size_t first, size_t count);
/// How many of `rows` rows travel together, where `usual` would do: with texts more, so that there are few pieces, because each
/// has its own list of the texts in it.
size_t RowsTogether(const std::vector<SqlType>& types, size_t rows, size_t usual);
/// Leaves the rows of the numbers `kept`, which rise.
void KeepRows(std::span<const uint32_t> kept, RowSet* rows);
/// Each row stands as often as its value in `column`, an integer, says; never, if that is less than 1.
void RepeatRows(int column, RowSet* rows);
/// The rows of all shipments in the order of their units. Where two shipments have the same unit, the first shipment's
/// rows come first.
RowSet InUnitOrder(const Section& section, std::vector<Shipment> shipments);
/// Adds a column that holds the number of each row's unit.
void AppendUnitColumn(Shipment* shipment);
/// Brings rows into the section's order and leaves those within its OFFSET and LIMIT. Text is compared through
/// `strings`. Uses the threads of `pool`, if not nullptr, for many rows. Errors: kResource, out of memory.
Status OrderAndLimit(const Section& section, const StringPool& strings, ThreadPool* pool, RowSet* rows);
/// Leaves the rows within the section's OFFSET and LIMIT. They are in its order already.
void ApplyBounds(const Section& section, RowSet* rows);
/// The section, changed to order only some of its rows while it is not known which rows come before them: its LIMIT is
/// OFFSET rows greater, and it skips none.
Section WithoutOffset(const Section& section);
/// Merges the runs of `rows` and leaves the rows within the section's OFFSET and LIMIT. Run i begins at row starts[i],
/// ends where the next one begins, and is in the section's order. Equal rows keep their order. Uses the threads of
/// `pool`, if not nullptr, for many rows. Errors: kResource, out of memory.
Status MergeRuns(const Section& section, const std::vector<size_t>& starts, const StringPool& strings, ThreadPool* pool,
                 RowSet* rows);
/// Sorts rows by one column as JoinSpec::order requires: ascending, NULL last. Equal rows keep their order.
Status SortRows(int column, const StringPool& strings, ThreadPool* pool, RowSet* rows);
/// Decodes rows [first, first + count) of the first `columns.size()` columns to the result's types. Uses the threads of
/// `pool`, if not nullptr, for many texts. Errors: as ThreadPool::Run.
Result<RowBatch> DecodeRows(const RowSet& rows, const std::vector<ResultColumn>& columns, size_t first, size_t count,
                            const StringPool& strings, ThreadPool* pool);

/// One step of the hash of a key: a multiplication and a shift per word spread the low bits upward and back.
inline uint64_t HashWord(uint64_t hash, int64_t word) {
  hash = (hash ^ static_cast<uint64_t>(word)) * 0xD6E8FEB86659FD93u;
  return hash ^ (hash >> 32);
}
inline constexpr uint64_t kHashSeed = 0x9AE16A3B2F90404Fu;

}  // namespace tessera::vm
