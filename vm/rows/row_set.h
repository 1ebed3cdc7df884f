// Rows in the form in which sections make them and hand them on, and what is done with them: appending, hashing keys,
// sorting, decoding. For vm/ and the devices that run its sections.
//
// Start at: RowSet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

class LateTexts;

/// Rows in the machine's form, as sections make them. Text is identifiers of the query's pool, or numbers of late texts.
struct RowColumn {
  SqlType type;
  std::vector<int64_t> low;   ///< the value, the double's bits, the identifier; kWide: the low half
  std::vector<int64_t> high;  ///< kWide: the high half; else empty
  std::vector<uint8_t> null;  ///< 1 for NULL, one byte a row; empty if no row is NULL
};
struct RowSet {
  size_t rows = 0;
  std::vector<RowColumn> columns;
};

/// How many rows of a shipment come from one unit of work. Units are numbered in the order of the source's rows,
/// equally on all ranks, so that the rows of many ranks can be put into the order in which one process would make them.
struct UnitRows {
  uint64_t unit = 0;
  uint64_t rows = 0;
};

/// Rows on their way to another rank.
struct Shipment {
  RowSet rows;
  std::vector<UnitRows> units;  ///< the units of `rows`, in order; units without rows may be missing
  uint64_t through = 0;         ///< in a stream: all of the sender's units below this number have been shipped
  bool last = true;             ///< in a stream: nothing follows
};

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
/// Decodes rows [first, first + count) of the first `columns.size()` columns to the result's types. `late`: of texts
/// that got no identifiers. Uses the threads of `pool`, if not nullptr, for many texts. Errors: as ThreadPool::Run.
Result<RowBatch> DecodeRows(const RowSet& rows, const std::vector<ResultColumn>& columns, size_t first, size_t count,
                            const StringPool& strings, const LateTexts& late, ThreadPool* pool);

/// One step of the hash of a key: a multiplication and a shift per word spread the low bits upward and back.
inline uint64_t HashWord(uint64_t hash, int64_t word) {
  hash = (hash ^ static_cast<uint64_t>(word)) * 0xD6E8FEB86659FD93u;
  return hash ^ (hash >> 32);
}
inline constexpr uint64_t kHashSeed = 0x9AE16A3B2F90404Fu;

}  // namespace tessera::vm
