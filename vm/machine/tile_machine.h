// The host interpreter's machine for one thread: the state of one tile, and the loops around the opcodes' meanings.
// Private to vm/.
//
// A tile is 2048 rows: the accumulators, the mask and a few registers stay in L1 and L2. The parts of the state are in
// headers of their own; the loops are in tile_machine_*.h, which interpreter.cc includes.
//
// Start at: RunTile, and the state at the end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "vm/encode/dictionary_map.h"
#include "vm/encode/section_encoder.h"
#include "vm/machine/group_search.h"
#include "vm/machine/machine_constants.h"
#include "vm/machine/probe_state.h"
#include "vm/machine/registers.h"
#include "vm/machine/tile.h"
#include "vm/machine/tile_mask.h"
#include "vm/machine/tile_stops.h"
#include "vm/machine/tile_texts.h"
#include "vm/machine/unpacked_codes.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/program/text_uses.h"
#include "vm/program/tile_rows.h"
#include "vm/rows/string_pool.h"
#include "vm/sinks/group_table.h"
#include "vm/sinks/join_index.h"
#include "vm/sinks/top_rows.h"

namespace tessera::vm {

/// Rows that may come after the bound of an ORDER BY with LIMIT are dropped.
struct TopFilter {
  const TopRows* rows = nullptr;  ///< nullptr: none is
  int known_at = -1;  ///< after the Store of the column that has the bound, if nothing up to Emit can fail; else -1
  int emit_at = -1;   ///< the Emit
};

/// At address `from` the code goes on at `to`; -1: nowhere.
struct Detour {
  int from = -1, to = -1;
};

/// What the machine's owner wants of it.
struct TileRequests {
  TileStops stops;
  JoinCounts counts;
  TopFilter top;
  Detour detour;  ///< MeetRows
};

class TileMachine {
 public:
  /// `joins`: one per join table of the program, finished before the section runs; may hold nullptr for others.
  /// `traits`: of the section. All arguments must outlive this.
  TileMachine(const Program& program, int section, const SectionTraits& traits,
              const std::vector<std::unique_ptr<JoinIndex>>& joins, StringPool* strings);
  ~TileMachine();
  TileMachine(const TileMachine&) = delete;
  TileMachine& operator=(const TileMachine&) = delete;

  /// Runs the section over rows [first, first + rows) of `tablet`. On an error the sinks may hold part of the tile: the
  /// run is over. REQUIRES: 1 <= rows <= kTileRows.
  Status RunTile(const TabletEncoding& tablet, uint32_t first, int rows, const TileSinks& sinks);
  /// From the next tile on, compares only with rows [first, end) of join table `join`, which has no keys. `all_from`:
  /// where a turn of the loop over them may begin, if its filters let all pairs pass (RangeProgram::all_from); -1: at
  /// its body. REQUIRES: end <= its rows.
  void MeetRows(int join, uint32_t first, uint32_t end, int all_from);
  /// A tile stops at a backward jump if its sink has `rows` rows or more: RunTile returns OK, and suspended() is true
  /// until ResumeTile has finished the tile.
  void SuspendAt(size_t rows) { requests_.stops.suspend_at = rows; }
  bool suspended() const { return requests_.stops.suspended; }
  Status ResumeTile(const TileSinks& sinks);
  /// Bytes of packed codes that tiles have unpacked since the last call.
  uint64_t TakeDecodedBytes() { return codes_.TakeBytes(); }
  /// The text of a value, valid until the next tile.
  std::string_view Text(int64_t value) const { return texts_.of_tile.Get(value); }
  /// The number of the first row of the next tiles' tablet in its source, for PlaceI.
  void StartAt(uint64_t row) { tile_.row_before = row; }
  /// A flag that ends a tile with kCancelled. May be nullptr.
  void StopOn(const std::atomic<bool>* cancel) { requests_.stops.cancel = cancel; }
  /// `stop` is called within a tile at every backward jump; nested-loop joins make very many of them.
  void StopIf(std::function<bool()> stop) { requests_.stops.stop = std::move(stop); }
  /// Rows that an ORDER BY with LIMIT cannot return are not emitted. May be nullptr.
  void EmitOnly(const TopRows* top);
  /// `counters`: an array by number of the join table, or nullptr.
  void CountJoined(JoinCounter* counters, bool with_cycles) { requests_.counts.CountIn(counters, with_cycles); }

 private:
  /// From instruction next_ on. Accumulators are dead where a loop starts, so the rest of the machine is all that a tile
  /// which was suspended there needs.
  Status Interpret();

  // One loop per shape: A, W, mask and registers become what the opcode of meaning M makes of them.
#define SHAPE(Name, ...) \
  template <class M>     \
  void Do##Name(const Instruction& in);
#include "vm/program/shapes.def"
#undef SHAPE

  // Opcodes that call a function for each row, in tile_machine_functions.cc. The compiler inlines only so much into one
  // translation unit: with their loops beside the others, those of comparisons and groups were calls, and a GROUP BY
  // of two keys took 6 % more instructions.
  void DoApart(const Instruction& in);
  template <class M, Shape kShape>
  void RunApart(const Instruction& in);
  /// A = M of the text of A and one or two operands, each a std::string_view or an int64_t; C is void if there is one.
  template <class M, class B, class C>
  void TextOfOperands(const Instruction& in);
  /// Whether an opcode of a shape that others have, too, is one of them.
  template <class M>
  static constexpr bool kApart = requires {
    M::kApart;
  };

  // Operands.
  template <class T>
  Source<T> Fetch(int32_t packed, int scratch);
  Source<int64_t> FetchSlot(int slot, int scratch);
  Source<int128_t> FetchWideSlot(int slot);
  /// Slots of form kComputed.
  Source<int64_t> ComputeSlot(int slot, int scratch);
  /// The identifiers of live rows' entries of a slot with a lazy map. `entry_of`: of a row; nothing for a NULL.
  template <class EntryOf>
  void AskMap(int slot, int64_t* out, EntryOf entry_of);
  /// Codes of the tile's rows, of the slot's width: of live ones at least. REQUIRES: the slot has codes.
  const uint8_t* CodesOf(int slot);
  /// The same of packed ones.
  const uint8_t* ReadCodes(int slot);
  template <class Code, class Convert>
  void DecodeSlot(const uint8_t* stream, int64_t* out, Convert convert);
  void CopyToA(const Source<int64_t>& s);
  uint8_t* NullsOfA() { return acc_.NullsOfA(mask_.rows()); }

  // Filters and texts.
  template <class Code>
  void FilterCodes(const PredicateEncoding& p, const SlotEncoding& s);
  template <class M>
  void CompareTexts(const Source<int64_t>& s);
  template <class F>
  void MapText(F f);
  /// The value of a text that the current instruction has made.
  int64_t MadeText(std::string_view text) {
    return texts_.uses.results[Current()] ? texts_.of_tile.Keep(text) : texts_.identifiers.Of(text);
  }
  /// The same, of a part of another value's text.
  int64_t PartOfText(std::string_view text) {
    return texts_.uses.results[Current()] ? texts_.of_tile.Note(text) : texts_.identifiers.Of(text);
  }
  size_t Current() const { return static_cast<size_t>(next_ - 1); }
  /// False for an error of a row, which is noted.
  bool Succeeds(const Status& status);

  // Joins and rows.
  template <class F>
  void WithKeyWords(const Instruction& in, const std::vector<SqlType>& types, F f);
  void KeepPresent(const Source<int64_t>& s, const JoinIndex& join);
  void FindDirect(const Source<int64_t>& s, const JoinIndex& join, uint32_t* cursor);
  void Jump(const Instruction& next, uint8_t* saved);
  template <bool kOuter>
  void NextCrossed(const Instruction& in);
  void TakeRemainders(uint64_t divisor);
  void AppendLiveRegisters(RowSet* rows, size_t columns);
  void SettleTexts(size_t first, RowColumn* column);
  /// Drops live rows that are after the bound of requests_.top, if there is one yet.
  void KeepTop();

  // Groups.
  /// Finds the groups of the live rows by groups_.direct. False: their keys do not lie close together.
  bool FindGroupsDirectly(const Instruction& in, GroupTable* table);
  void FindGroupsOf(const uint16_t* missed, int misses, int keys, const int64_t* const* values,
                    const uint8_t* const* nulls, GroupTable* table);
  void AddTo(BatchedRows* rows, int i, const int64_t* key, size_t words);
  void FindGroupsOf(const BatchedRows& rows, GroupTable* table);
  /// Finds the groups of the live rows in a table of many groups.
  void FindManyGroups(const Instruction& in, GroupTable* table);
  void FindGroupsOfManyKeys(const Instruction& in, GroupTable* table);
  template <class M>
  void AddFloats(const uint8_t* nulls, AggregateStates* states);

  // What runs.
  const Program& program_;
  const Section& section_;
  const SectionTraits& traits_;
  const std::vector<std::unique_ptr<JoinIndex>>& joins_;
  StringPool* const strings_;
  MachineConstants constants_;
  MachineTexts texts_;

  // The tile.
  Tile tile_;
  TileMask mask_;
  Accumulators acc_;
  std::vector<Register> registers_;
  std::vector<MaskRegister> masks_;
  std::vector<ProbeState> probes_;  ///< by join table of the program
  int next_ = 0;                    ///< address of the next instruction
  TileError error_;

  // What helps from instruction to instruction, and from tile to tile.
  Scratch scratch_;
  UnpackedCodes codes_;
  std::map<int, std::unique_ptr<EntryInterpreter>> computed_;  ///< by slot of form kComputed
  KeyBatch keys_;
  GroupSearch groups_;

  TileRequests requests_;
};

}  // namespace tessera::vm
