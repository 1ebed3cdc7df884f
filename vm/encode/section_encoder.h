// Makes tablet encodings: chunk descriptors and logical predicates become codes, sets and maps. Host only; private to
// the interpreters (vm/ and kernels/). The records are described in tablet_encoding.h.
//
// Start at: SectionEncoder.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/shared_loops.h"
#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/tablet.h"
#include "tablet/schemes/packed_reader.h"
#include "vm/encode/dictionary_map.h"
#include "vm/encode/tablet_encoding.h"
#include "vm/program/program.h"
#include "vm/program/text_uses.h"
#include "vm/rows/late_texts.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// Codes of a slot that are unpacked as tiles need them.
struct TileCodes {
  std::unique_ptr<const PackedReader> reader;
  const Tablet& tablet;
  int column;

  /// The error of codes that cannot be read.
  Status Damaged(const char* reason) const;
};

/// One tablet as one section reads it. `slots` and `predicates` have host pointers into `storage` or into the tablet,
/// which must outlive this.
struct TabletEncoding {
  uint32_t rows = 0;
  bool skip = false;  ///< a predicate that every row must pass became "none": the tablet has no row for the section
  std::vector<SlotEncoding> slots;            ///< one per Section::slots
  std::vector<PredicateEncoding> predicates;  ///< one per Section::predicates
  /// The chunk of each slot, for moving its streams to a device; nullptr for intermediate results.
  std::vector<ChunkPointer> chunks;
  /// Where a slot's codes are packed and read by tiles: its `codes` are nullptr then. Empty: all are unpacked.
  std::vector<std::shared_ptr<const TileCodes>> tile_codes;
  uint64_t encoded_bytes = 0;  ///< of the chunks of all slots
  uint64_t decoded_bytes = 0;  ///< of codes that are stored packed and read unpacked here
  /// Owns the maps and sets, which tablets with the same dictionary may share, and codes that were made.
  std::vector<std::shared_ptr<uint8_t[]>> storage;

  /// Forgets the tablet, and keeps the vectors' memory for another one.
  void Clear();
};

/// The least and greatest first key of a join table that has been built, for Predicate::Kind::kKeyRange.
struct KeyRange {
  bool known = false;
  int64_t low = 0, high = -1;  ///< low > high: the table is empty
};

/// One thread of a device tests an entry.
inline constexpr uint64_t kLongestOnDevice = 4096;

/// Whether two TEXT chunks have the same dictionary, entry by entry. False if one is stored plain.
bool SameDictionary(const Chunk& a, const Chunk& b);

/// Encodes the tablets of a table for section `section` of `program`, in any order and from any thread. All arguments
/// but the section's traits must outlive it. `interpreter`: of its dictionary sections. `key_ranges` has one entry per join table (may be empty). `lazy`: for the host, which finds the
/// values of large dictionaries when a row needs them, see TextForm.
class SectionEncoder {
 public:
  SectionEncoder(const Program& program, int section, const SectionTraits& traits, StringPool* strings,
                 EntryInterpreterMaker interpreter, const std::vector<KeyRange>& key_ranges, bool lazy = false);

  /// Predicates on texts that the device decides from the entries of a chunk: numbers of Section::predicates, of kind
  /// kMapped. Chunks qualify if they are plain, have many entries, none longer than kLongestOnDevice bytes, and all
  /// together up to `most_bytes`.
  void LeaveToDevice(std::vector<size_t> predicates, uint64_t most_bytes) {
    on_device_ = std::move(predicates);
    most_text_bytes_ = most_bytes;
  }

  /// Slots whose texts are only handed on: large chunks get numbers of `late` in place of identifiers. Both must
  /// outlive this.
  void HandOn(const std::vector<bool>* slots, LateTexts* late) {
    handed_on_ = slots;
    late_ = late;
  }
  /// Whether there are such slots.
  bool hands_on() const {
    return handed_on_ != nullptr && std::find(handed_on_->begin(), handed_on_->end(), true) != handed_on_->end();
  }
  /// Codes that are stored packed go to the device as they are.
  void LeavePacked() { leave_packed_ = true; }
  /// ... are read by tiles (TabletEncoding::tile_codes), where that is possible and they have not come before.
  void ReadByTiles() { by_tiles_ = true; }

  /// `like`: a tablet encoded before; may be nullptr. Its maps and sets are reused where the dictionaries are the same,
  /// which is so in most tablets of a table. Errors: those of Tablet::Chunk and of the dictionary sections.
  /// `loop`: for work on many texts, see ForEntries. `spare`: its vectors' memory is used.
  Result<TabletEncoding> Encode(const Tablet& tablet, const TabletEncoding* like = nullptr, const LoopRunner& loop = {},
                                TabletEncoding spare = {}) const;
  /// Encode() of this tablet will soon be called: see Tablet::Expect. Returns the bytes that it will read; 0 if the ranges
  /// of the chunks already leave no row, or if it is not `again` and all of them have been read.
  uint64_t Expect(const Tablet& tablet, bool again) const;
  /// Encodes rows collected from encoded tablets: one chunk for each slot, with or without codes. The chunks must
  /// outlive the result. `like`: one of these tablets. REQUIRES: text chunks have the dictionaries of `like`; no chunk
  /// has NULL bytes; lists of numbers test chunks of at most 2 bytes a code (others are tested row by row).
  Result<TabletEncoding> EncodeChunks(uint32_t rows, std::vector<ChunkPointer> chunks,
                                      const TabletEncoding& like) const;
  /// Encodes the key ranges of a tablet that was encoded before all of key_ranges were known.
  Status EncodeKeyRanges(TabletEncoding* encoded) const;
  /// Whether the predicates leave no row, as far as it is known from the ranges of the chunks, before any of them is read.
  Result<bool> RangesLeaveNone(const Tablet& tablet) const;

 private:
  // Both from out->chunks.
  Status EncodeSlots(const TabletEncoding* like, const LoopRunner& loop, TabletEncoding* out) const;
  Status EncodePredicates(const TabletEncoding* like, const LoopRunner& loop, TabletEncoding* out) const;
  /// Whether the predicates leave no row.
  bool LeavesNone(const TabletEncoding& encoded) const;
  Status EncodeSlot(size_t number, const TabletEncoding* like, const LoopRunner& loop, TabletEncoding* out) const;
  Status Unpack(const Tablet& tablet, size_t slot, TabletEncoding* out) const;
  /// Unpacks the codes of a slot, or sees to it that they can be read by tiles.
  Status UnpackOrRead(const Tablet& tablet, size_t slot, TabletEncoding* out) const;

  const Program& program_;
  const Section& section_;
  StringPool* const strings_;
  const EntryInterpreterMaker interpreter_;
  const std::vector<KeyRange>& key_ranges_;
  const bool lazy_;
  TextUses uses_;            ///< if lazy_
  bool drops_rows_ = false;  ///< TopRowsOf: most rows are not emitted
  struct SlotUse {
    StorageClass storage;  ///< what chunks have to be
    bool repeated;         ///< an earlier slot reads the same column
    bool value;            ///< read as a value, not only through predicates: only these need a TEXT map
  };
  std::vector<SlotUse> slots_;
  std::vector<int> columns_;  ///< of the slots, each once
  bool leave_packed_ = false, by_tiles_ = false;
  std::vector<size_t> on_device_;
  uint64_t most_text_bytes_ = 0;
  const std::vector<bool>* handed_on_ = nullptr;  ///< by slot; nullptr: none
  LateTexts* late_ = nullptr;
  std::vector<size_t> heads_;  ///< predicates at the head of the code, which every row must pass
};

}  // namespace tessera::vm
