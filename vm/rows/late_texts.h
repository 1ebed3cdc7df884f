// Texts that a section only hands on: it has numbers in their place that stand for entries of chunks, and the texts are
// read when rows have come to the host. So a query that shows a hundred names does not look at a million; and where the host
// streams rows to the consumer, they get no identifiers at all: threads would wait for each other at the pool. Private to
// the interpreters (vm/ and kernels/).
//
// Start at: FindHandedOn, LateTexts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

struct ProgramTraits;

/// Where a program only hands texts on: it copies them to rows, and from there to others, and does not compare, group or
/// compute with them on the way. They may be sorted by in the end. A section that builds a join table may do so by itself:
/// then its rows get identifiers as soon as they are made, and the texts of rows that it drops are not looked at.
struct HandedOn {
  std::vector<std::vector<bool>> slots;    ///< by section, then by slot: a TEXT column of a stored table
  std::vector<std::vector<bool>> columns;  ///< by section, then by column of its rows: may hold such texts
  std::vector<std::vector<bool>> settled;  ///< the same: gets identifiers when the rows are made
};
/// How many different texts a column has. Few get identifiers at once: rows with late texts go from rank to rank by way of
/// the hosts. Nearly as many as rows are left for later even if something is sorted by them (otherwise to sort their few
/// ranks is faster), or settled.
enum class Variety : uint8_t { kFew, kMany, kNearlyUnique };
Variety VarietyOf(const TableInfo& table, int column);
/// `variety`: of a column (table, column) of the program.
HandedOn FindHandedOn(const Program& program, const ProgramTraits& traits,
                      const std::function<Variety(int, int)>& variety);

/// Any thread.
class LateTexts {
 public:
  /// A chunk with fewer entries has identifiers for all of them sooner.
  static constexpr uint32_t kLeastEntries = 4096;

  /// The number of the chunk's first entry; those of the others follow. The chunk is kept, but its tablet must outlive
  /// this.
  int64_t Add(const ChunkPointer& chunk);
  /// Puts identifiers in the place of numbers, in the TEXT columns of rows that have come to the host. `pool`: may be
  /// nullptr.
  Status Resolve(StringPool* strings, ThreadPool* pool, RowSet* rows) const;
  /// The same for one column.
  Status Resolve(StringPool* strings, ThreadPool* pool, std::span<int64_t> values) const;
  /// The texts of numbers and identifiers alike: out[i] is that of values[i]. REQUIRES: no other thread calls Add().
  void Read(const StringPool& strings, std::span<const int64_t> values, std::string_view* out) const;

 private:
  /// The chunk and its entry; nullptr for what is the number of none, which a NULL may have.
  std::pair<const Chunk*, uint32_t> Find(int64_t number) const;

  /// Greater than every identifier.
  static constexpr int64_t kFirst = int64_t{1} << 40;

  mutable std::mutex mutex_;
  std::map<const Chunk*, int64_t> numbers_;
  std::map<int64_t, ChunkPointer> chunks_;  ///< by the number of the first entry
  int64_t next_ = kFirst;
};

}  // namespace tessera::vm
