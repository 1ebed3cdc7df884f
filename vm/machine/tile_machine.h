// The host interpreter's machine for one thread: the state of one tile, and the loops around the opcodes' meanings.
// Private to vm/.
//
// A tile is 2048 rows: the accumulators, the mask and a few registers stay in L1 and L2. Masks and NULL bits are one
// byte a row here, because the compiler vectorises loops over bytes. If few rows are live, their numbers are kept
// beside the mask and the loops run over these rows ("sparse"); otherwise they run over all rows of the tile, dead ones
// included ("dense").
//
// Start at: RunTile.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string_view>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "vm/encode/dictionary_map.h"
#include "vm/encode/section_encoder.h"
#include "vm/meaning/format.h"
#include "vm/meaning/meaning.h"
#include "vm/meaning/regex.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/program/text_uses.h"
#include "vm/program/tile_rows.h"
#include "vm/rows/string_pool.h"
#include "vm/sinks/direct_groups.h"
#include "vm/sinks/group_table.h"
#include "vm/sinks/join_index.h"
#include "vm/sinks/top_rows.h"

namespace tessera::vm {

/// Where a section's rows go; each worker has its own.
struct TileSinks {
  RowSet* rows = nullptr;        ///< kRows and kJoin
  GroupTable* groups = nullptr;  ///< kGroups
  DictionaryMap* map = nullptr;  ///< kMap
  uint32_t map_first = 0;        ///< the entry that row 0 is; a text may be a value of this tile
};

class TileMachine {
 public:
  /// `joins`: one per join table of the program, finished before the section runs; may hold nullptr for others.
  /// `traits`: of the section.
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
  void SuspendAt(size_t rows) { suspend_at_ = rows; }
  bool suspended() const { return suspended_; }
  Status ResumeTile(const TileSinks& sinks);
  /// Bytes of packed codes that tiles have unpacked since the last call.
  uint64_t TakeDecodedBytes() { return std::exchange(decoded_bytes_, 0); }
  /// A text value is an identifier of the pool, or, where it is only read (text_uses.h): from kFirstMade on the number
  /// of a text that this tile has made, from kFirstEntry on an entry of a slot's chunk.
  static constexpr int64_t kFirstMade = int64_t{1} << 61, kFirstEntry = int64_t{1} << 62;
  static int64_t EntryValue(size_t slot, uint64_t entry) {
    return kFirstEntry + static_cast<int64_t>(uint64_t{slot} << 32 | entry);
  }
  /// The text of a value, valid until the next tile.
  std::string_view Text(int64_t value) const { return value < kFirstMade ? strings_->Get(value) : TextHere(value); }
  /// The number of the first row of the next tiles' tablet in its source, for PlaceI.
  void StartAt(uint64_t row) { row_before_ = row; }
  /// A flag that ends a tile with kCancelled: one tile of a nested-loop join of large tables can take minutes. May be
  /// nullptr.
  void StopOn(const std::atomic<bool>* cancel) { cancel_ = cancel; }
  /// Rows that an ORDER BY with LIMIT cannot return are not emitted. May be nullptr.
  void EmitOnly(const TopRows* top);
  /// How many rows are left after each join, and the time.
  struct JoinCounter {
    std::atomic<uint64_t> rows{0};
    std::atomic<uint64_t> cycles{0};  ///< since the join before it, or since the tile began; if wanted
  };
  /// `counters`: an array by number of the join table, or nullptr.
  void CountJoined(JoinCounter* counters, bool with_cycles) {
    joined_ = counters;
    counts_cycles_ = with_cycles;
  }
  /// `stop` is called within a tile at every backward jump; nested-loop joins make very many of them.
  void StopIf(std::function<bool()> stop) { stop_ = std::move(stop); }

 private:
  /// Values of an operand for the live rows: an array, or one value for all (stride 0).
  template <class T>
  struct Source {
    const T* values;
    const uint8_t* nulls;  // one byte a row; nullptr if none is NULL
    bool one;              // values[0] stands for every row
    bool one_null;         // ... and it is NULL
  };
  struct Register {
    std::vector<int64_t> narrow;
    std::vector<int128_t> wide;
    std::vector<uint8_t> null;
    bool may_be_null = false;
  };
  /// Makes the NULL bytes of a register valid before the first NULL goes in.
  void MayBecomeNull(Register* r) {
    if (!r->may_be_null) std::fill(r->null.begin(), r->null.end(), uint8_t{0});
    r->may_be_null = true;
  }
  struct MaskRegister {
    std::vector<uint8_t> rows;
  };
  struct Scratch {
    alignas(64) int64_t narrow[kTileRows];
    alignas(64) uint8_t null[kTileRows];
  };
  struct WideScratch {
    int128_t wide[kTileRows];
    uint8_t null[kTileRows];
  };

  /// (Counts are copied first: what f writes could be members, as far as the compiler knows.)
  template <class F>
  void ForLive(F f) {
    const int n = n_, live = live_;
    if (sparse_) {
      for (int k = 0; k < live; ++k) f(static_cast<int>(list_[k]));
    } else {
      for (int i = 0; i < n; ++i) f(i);
    }
  }
  /// As ForLive, but never calls f for a dead row.
  template <class F>
  void ForOnlyLive(F f) {
    const int n = n_, live = live_;
    if (live == n) {
      for (int i = 0; i < n; ++i) f(i);
    } else {
      // (A branch a row on a mask that is neither nearly empty nor nearly full costs more than the list.)
      if (!listed_) ListLive();
      for (int k = 0; k < live; ++k) f(static_cast<int>(list_[k]));
    }
  }
  /// Narrows the mask to the live rows for which `f` holds.
  template <class F>
  void Keep(F f);
  void MaskChanged();
  void ListLive();
  void SetMaskToAll();
  std::string_view TextHere(int64_t value) const;
  int64_t Intern(std::string_view text);
  /// The value of a text that the current instruction has made.
  int64_t MadeText(std::string_view text) { return uses_.results[Current()] ? KeepMade(text) : Intern(text); }
  /// The same, of a part of another value's text.
  int64_t PartOfText(std::string_view text) { return uses_.results[Current()] ? NoteMade(text) : Intern(text); }
  int64_t KeepMade(std::string_view text);
  int64_t NoteMade(std::string_view text) {
    made_.push_back(text);
    return kFirstMade + static_cast<int64_t>(made_.size() - 1);
  }
  size_t Current() const { return static_cast<size_t>(next_ - 1); }
  void NoteError(LaneError error) {
    if (error_ == LaneError::kNone) error_ = error;
  }

  template <class T>
  Source<T> Fetch(int32_t packed, int scratch);
  Source<int64_t> FetchSlot(int slot, int scratch);
  /// Asks for the identifiers of texts_, one for each of asked_, and calls f(asked, identifier).
  template <class F>
  void InternAsked(F f);
  /// The identifiers of live rows' entries of a slot with a lazy map. `entry_of`: of a row; nothing for a NULL.
  template <class EntryOf>
  void AskMap(int slot, int64_t* out, EntryOf entry_of);
  /// Slots of form kComputed.
  Source<int64_t> ComputeSlot(int slot, int scratch);
  Source<int128_t> FetchWideSlot(int slot);
  /// Codes of the tile's rows, of the slot's width: of live ones at least. REQUIRES: the slot has codes.
  const uint8_t* CodesOf(int slot);
  /// The same of packed ones.
  const uint8_t* ReadCodes(int slot);
  template <class Code, class Convert>
  void DecodeSlot(const uint8_t* stream, int64_t* out, Convert convert);
  void CopyToA(const Source<int64_t>& s);
  uint8_t* NullsA();

  /// Opcodes that call a function for each row, in tile_machine_functions.cc. The compiler inlines only so much into one
  /// translation unit: with their loops beside the others, those of comparisons and groups were calls, and a GROUP BY
  /// of two keys took 6 % more instructions.
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

  // One loop per shape.
  template <class M>
  void DoEnd(const Instruction&) {}
  template <class M>
  void DoSkipIfNone(const Instruction& in) {
    if (joined_ != nullptr && join_before_[static_cast<size_t>(next_ - 1)] >= 0) {
      JoinCounter& counter = joined_[join_before_[static_cast<size_t>(next_ - 1)]];
      if (live_ > 0) counter.rows.fetch_add(static_cast<uint64_t>(live_), std::memory_order_relaxed);
      if (counts_cycles_) {
        const uint64_t now = __builtin_ia32_rdtsc();
        counter.cycles.fetch_add(now - std::exchange(last_cycle_, now), std::memory_order_relaxed);
      }
    }
    if (live_ == 0) next_ = in.p2;
  }
  template <class M>
  void DoNext(const Instruction& in);
  template <class M>
  void DoMaskRegister(const Instruction& in);
  template <class M>
  void DoFilter(const Instruction& in);
  template <class Code>
  void FilterCodes(const PredicateEncoding& p, const SlotEncoding& s);
  template <class M>
  void DoTest(const Instruction& in);
  template <class M>
  void DoTestNull(const Instruction& in);
  template <class M>
  void DoCompare(const Instruction& in);
  template <class M>
  void CompareTexts(const Source<int64_t>& s);
  template <class M>
  void DoTextCompare(const Instruction& in);
  template <class M>
  void DoLike(const Instruction& in);
  template <class M>
  void DoLoad(const Instruction& in);
  template <class M>
  void DoLoadWide(const Instruction& in);
  template <class M>
  void DoStore(const Instruction& in);
  template <class M>
  void DoStoreWide(const Instruction& in);
  template <class M>
  void DoBinary(const Instruction& in);
  template <class M>
  void DoTernary(const Instruction& in);
  template <class M>
  void DoUnary(const Instruction& in);
  template <class M>
  void DoUnaryField(const Instruction& in);
  template <class M>
  void DoBinaryField(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoCheck(const Instruction& in);
  template <class M>
  void DoTextUnary(const Instruction& in);
  template <class M>
  void DoTextCut(const Instruction& in);
  template <class M>
  void DoTextLength(const Instruction& in);
  template <class M>
  void DoTextNumber(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoTextFind(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoTextReplace(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoTextPad(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoTextPart(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoRegexPart(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoAddInterval(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoBetween(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoIntervalTimes(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoMakeWide(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoZone(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoRegexReplace(const Instruction& in) {
    DoApart(in);
  }
  void NullsOfW();
  /// The regular expression of a constant, compiled when it is first asked for.
  const Regex& RegexOf(int32_t constant);
  /// False for an error of a row, which is noted.
  bool Succeeds(const Status& status);
  /// The format of the current instruction, likewise.
  const Format& FormatOf(const Instruction& in);
  template <class M>
  void DoTextConcat(const Instruction& in);
  template <class M>
  void DoTextSubstring(const Instruction& in);
  template <class M>
  void DoToText(const Instruction& in);
  template <class M>
  void DoFormat(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoPlace(const Instruction& in) {
    DoApart(in);
  }
  template <class M>
  void DoFromText(const Instruction& in);
  void KeepPresent(const Source<int64_t>& s, const JoinIndex& join);
  void FindDirect(const Source<int64_t>& s, const JoinIndex& join, uint32_t* cursor);
  template <class M>
  void DoProbe(const Instruction& in);
  template <class M>
  void DoProbeOuter(const Instruction& in);
  template <class M>
  void DoNextOuter(const Instruction& in);
  template <class M>
  void DoTestMatch(const Instruction& in);
  template <class M>
  void DoRefuse(const Instruction& in);
  void Jump(const Instruction& next, uint8_t* saved);
  template <bool kOuter>
  void NextCrossed(const Instruction& in);
  Status Interpret();
  template <class M>
  void DoBuild(const Instruction& in);
  template <class M>
  void DoGroup(const Instruction& in);
  /// Finds the groups of the live rows by direct_. False: their keys do not lie close together.
  bool FindGroupsDirectly(const Instruction& in, GroupTable* table);
  void FindGroupsOf(const uint16_t* missed, int misses, int keys, const int64_t* const* values,
                    const uint8_t* const* nulls, GroupTable* table);
  /// Rows whose groups are looked for together: `keys` different from those before, in the first places of many_keys_,
  /// many_hashes_ and many_rows_, and rows with the key of the row before, which group_ has the number of.
  struct ManyRows {
    size_t keys = 0, repeats = 0;
    uint16_t repeated[kTileRows];
  };
  void AddTo(ManyRows* rows, int i, const int64_t* key, size_t words);
  void FindGroupsOf(const ManyRows& rows, GroupTable* table);
  /// Finds the groups of the live rows in a table of many groups.
  void FindManyGroups(const Instruction& in, GroupTable* table);
  void FindGroupsOfManyKeys(const Instruction& in, GroupTable* table);
  template <class M>
  void DoCountRows(const Instruction& in);
  template <class M>
  void DoCountValues(const Instruction& in);
  template <class M>
  void DoFold(const Instruction& in);
  template <class M>
  void DoFoldText(const Instruction& in);
  template <class M>
  void DoEmit(const Instruction& in);
  /// Drops live rows that are behind the bound of top_, if there is one yet.
  void KeepTop();

  template <class T>
  T* Accumulator();
  template <class T>
  uint8_t* AccumulatorNulls();
  template <class T>
  bool& AccumulatorMayBeNull();
  template <class F>
  void MapText(F f);
  void AppendLiveRegisters(RowSet* rows, size_t columns);
  void SettleTexts(size_t first, RowColumn* column);
  template <class F>
  void WithKeyWords(const Instruction& in, const std::vector<SqlType>& types, F f);

  const Program& program_;
  const Section& section_;
  const SectionTraits& traits_;
  const std::vector<std::unique_ptr<JoinIndex>>& joins_;
  StringPool* strings_;
  const TextUses uses_;
  bool reads_texts_ = false;            ///< a value of class TEXT may be none of the pool
  std::vector<std::string_view> made_;  ///< the texts that this tile has made
  std::pmr::monotonic_buffer_resource made_bytes_;
  std::map<int, std::unique_ptr<EntryInterpreter>> computed_;  ///< by slot
  // Rows whose texts get identifiers together, and those.
  struct Asked {
    size_t row;
    uint64_t entry = 0;  ///< of a lazy map
  };
  std::vector<Asked> asked_;
  std::vector<std::string_view> texts_;
  std::vector<int64_t> ids_;
  struct Interned {
    std::string_view text;
    uint64_t start = 0;  ///< FirstBytes(text)
    int64_t id = -1;
  };
  static constexpr size_t kInternedProbes = 4;
  std::array<Interned, 256> interned_;  ///< by their first bytes, a few places on if others were there first

  // The tile.
  const TabletEncoding* tablet_ = nullptr;
  /// Recently found groups, by their keys. In a query with few groups, most rows find theirs here, without the hash
  /// table (20 M rows into 201 groups: 140 ms with them, 231 without, see bench/HISTORY.md).
  struct RecentGroup {
    int64_t first = 0, second = 0;
    uint32_t number = 0;  ///< 1 + the group; 0: none
  };
  /// From this number of groups on, the group table has outgrown the caches, and recent groups do not help.
  static constexpr size_t kManyGroups = 1 << 15;
  static constexpr int kRecentBits = 10;
  static constexpr size_t kRecentGroups = size_t{1} << kRecentBits;
  std::vector<RecentGroup> recent_;
  DirectGroups direct_;
  const GroupTable* recent_of_ = nullptr;
  uint32_t recent_generation_ = 0;
  // Keys of the tile's live rows that are looked up in a hash table, and those rows.
  std::vector<int64_t> many_keys_;
  uint64_t many_hashes_[kTileRows];
  uint16_t many_rows_[kTileRows];
  TileSinks sinks_;
  uint64_t tile_ = 0;  ///< counts tiles
  struct CodesOfTile {
    std::unique_ptr<uint64_t[]> bytes;
    uint64_t tile = 0;  ///< whose codes it has
    int by_places = 0;  ///< so many of them one by one, perhaps some again; n_: all
  };
  std::vector<CodesOfTile> codes_of_tile_;  ///< by slot
  uint64_t decoded_bytes_ = 0;
  uint64_t row_before_ = 0;
  uint32_t first_ = 0;
  int n_ = 0;

  // The machine.
  alignas(64) uint8_t mask_[kTileRows];
  alignas(64) int64_t a_[kTileRows];
  alignas(64) uint8_t a_null_[kTileRows];
  bool a_may_be_null_ = false;
  std::vector<int128_t> w_;
  std::vector<uint8_t> w_null_;
  bool w_may_be_null_ = false;
  std::vector<Register> registers_;
  std::vector<MaskRegister> masks_;
  std::vector<std::vector<uint32_t>> cursors_;  // per join table of the program
  /// Keys that were tested by a join table's Bloom filter, and how many of them may be there.
  struct BloomUse {
    uint64_t tested = 0, passed = 0;
    /// Whether it leaves enough of them out, or that is not known yet.
    bool Helps() const { return tested < 16 * kTileRows || passed < tested / 4 * 3; }
  };
  std::vector<BloomUse> bloom_uses_;  // per join table of the program
  /// A join table without keys. All rows of the tile are compared with the same row of it at a time, so they share one
  /// cursor, and each of its columns is one value for the tile (see bench/HISTORY.md).
  struct CrossedRows {
    uint32_t first = 0, end = 0;
    uint32_t at = kNoRow;
  };
  std::vector<CrossedRows> crossed_;  // per join table of the program
  std::vector<uint8_t> outer_;        // per join table: 1 if ProbeOuter probes it, so that a cursor may be kNoRow
  std::vector<uint32_t> group_;       // per row: ordinal in the group table
  std::vector<int64_t> constants_;    // narrow constants; text interned
  std::vector<uint8_t> constant_null_;
  std::map<int32_t, Regex> regexes_;   // by constant
  std::map<int32_t, Format> formats_;  // by address
  std::vector<int32_t> probed_;        // join tables, in the order of the code

  int live_ = 0;
  bool sparse_ = false;
  bool listed_ = false;           // list_ has the live rows: if sparse_, and where somebody asked
  uint16_t list_[kTileRows + 8];  // they are written eight at a time
  int next_ = 0;                  // address of the next instruction
  const std::atomic<bool>* cancel_ = nullptr;
  std::function<bool()> stop_;
  bool cancelled_ = false;
  std::vector<int> join_before_;  // by instruction: the join whose rows are counted there (ProbeTrait::counted), or -1
  JoinCounter* joined_ = nullptr;
  bool counts_cycles_ = false;
  uint64_t last_cycle_ = 0;
  const TopRows* top_ = nullptr;
  int top_known_at_ = -1;  ///< behind the Store of the column that top_ limits, if nothing up to Emit can fail; else -1
  int emit_at_ = -1;
  int leave_at_ = -1, go_on_at_ = -1;  // MeetRows: at the first address the loop goes on at the second
  size_t suspend_at_ = SIZE_MAX;
  bool suspended_ = false;
  LaneError error_ = LaneError::kNone;
  Status text_error_;  // with the text in it, or the tablet

  std::unique_ptr<Scratch[]> scratch_;
  std::unique_ptr<WideScratch> wide_scratch_;
  std::string text_;
};

}  // namespace tessera::vm
