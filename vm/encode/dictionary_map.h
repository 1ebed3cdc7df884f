// Functions of a TEXT column are evaluated once per dictionary entry, not per row: a dictionary section runs over the
// entries of a chunk when a tablet is encoded. Private to vm/.
//
// Start at: MapDictionary, EntryInterpreter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/shared_loops.h"
#include "base/status.h"
#include "base/uninitialized.h"
#include "tablet/chunk/chunk.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// One item per entry of the chunk (kPlain: per row, where a NULL row's entry is "").
struct DictionaryMap {
  UninitializedVector<int64_t> values;  ///< the value that Emit gave, if the section emits one
  std::vector<uint8_t> null;            ///< 1 where the value is NULL or the entry did not reach Emit
  std::vector<uint8_t> kept;            ///< 1 where the entry reached Emit
};

/// Interprets a dictionary section, for entries of any chunk. One thread at a time. (The machine, in a room above, is one:
/// vm/machine/entry_machine.h.)
class EntryInterpreter {
 public:
  virtual ~EntryInterpreter() = default;

  /// Makes the values of these entries of the chunk. REQUIRES: at most kTileRows. Errors: those of its opcodes.
  virtual Status Run(const Chunk& chunk, std::span<const uint32_t> entries) = 0;
  /// One item per entry of the last run; Text(i) is what a value of class TEXT stands for, until the next one.
  virtual const DictionaryMap& values() const = 0;
  virtual std::string_view Text(size_t i) const = 0;
};
/// Makes one for section `section`. Program and pool must outlive it.
using EntryInterpreterMaker = std::unique_ptr<EntryInterpreter> (*)(const Program& program, int section,
                                                                    StringPool* strings);

/// `interpreter`: asked for one for each thread that needs it. `loop`: as in ForEntries.
Result<DictionaryMap> MapDictionary(const Program& program, int section, const Chunk& chunk, StringPool* strings,
                                    EntryInterpreterMaker interpreter, const LoopRunner& loop);

/// Parts of texts, few different ones.
struct CodedParts {
  static constexpr size_t kMostTexts = 255;
  static constexpr uint8_t kNullCode = 255;
  UninitializedVector<uint8_t> codes;  ///< by row, padded as the streams of chunks are
  std::vector<int64_t> ids;            ///< by code: identifiers of the texts
  bool has_nulls = false;
};
/// If a dictionary section gives a part of each entry of a plain chunk, at the same place and of up to 8 bytes, and there are
/// up to kMostTexts different ones: these. Far fewer bytes than a map of the rows. `loop`: as in ForEntries.
Result<std::optional<CodedParts>> CodeParts(const Program& program, int section, const Chunk& chunk,
                                            StringPool* strings, const LoopRunner& loop);

/// The identifiers of entries [first, end): ids[0] is that of the first. For parts of ForEntries.
void InternEntries(const Chunk& chunk, uint32_t first, uint32_t end, StringPool* strings, int64_t* ids);

/// A tablet of 65,536 rows is work for sixteen threads, and a part takes longer than to hand it out.
inline constexpr uint32_t kEntriesPerPart = 4096;
/// Calls f(first, end) for parts of [0, entries), of `per_part` each, by `loop` if there are several; an empty `loop` makes
/// the calls one after the other. Errors: that of the earliest part that failed.
Status ForEntries(uint32_t entries, const LoopRunner& loop, const std::function<Status(uint32_t, uint32_t)>& f,
                  uint32_t per_part = kEntriesPerPart);

}  // namespace tessera::vm
