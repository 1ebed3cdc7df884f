// What an interpreter needs to know about one tablet. Encodings differ from tablet to tablet, so programs contain
// values, and the tablet encoding has the codes for them. An interpreter reads a record once per instruction and tile,
// never per row. Both interpreters use these structs; for the GPU the pointers are device pointers.
//
// Start at: SlotEncoding, PredicateEncoding (section_encoder.h has those of a whole tablet). Plain data, shared read-only
// by the threads that run the tablet. Compiled by g++ and nvcc.
#pragma once

#include <cstdint>

namespace tessera::vm {

/// How the code of a row becomes the value of a slot.
enum class Decode : uint8_t {
  kConstant,  ///< `base` (and base_high) for every row; NULL for every row if `all_null`
  kFrame,     ///< base + code
  kFloat,     ///< FromOrderedFloat(base + code)
  kReal,      ///< FromOrderedFloat32(base + code), widened to double
  kMap,       ///< map[code]: TEXT, and functions of TEXT
  kMapRow,    ///< map[row]: TEXT stored plain
  kRaw,       ///< the 8 bytes are the value, or its lower half: an intermediate result, with null_bytes
};

/// Where kMap and kMapRow find the value of an entry. Devices know kMap only.
enum class TextForm : uint8_t {
  kMap,       ///< in the map
  kLazyMap,   ///< the map holds 1 + identifier, or 0 for an entry that was not needed yet
  kEntries,   ///< the text itself is in the chunk; the value only says which (TileMachine::Text)
  kLate,      ///< kMapRow on the host: `base` and the row are a number of LateTexts
  kComputed,  ///< the slot's dictionary section is run for the rows that are needed
};

/// A column slot in one tablet.
struct SlotEncoding {
  const uint8_t* codes = nullptr;       ///< `width` bytes a row; nullptr for kConstant and kMapRow
  const int64_t* map = nullptr;         ///< kMap: one per code; kMapRow: one per row
  const uint8_t* null_bytes = nullptr;  ///< 1 for NULL, one byte a row (kRaw, kMapRow); nullptr if there are none
  const uint8_t* map_null = nullptr;    ///< 1 where map gives NULL, indexed as map; nullptr if it never does
  uint64_t map_entries = 0;             ///< of map and of map_null, if there
  uint64_t made_bytes = 0;              ///< of codes that are not the chunk's but in TabletEncoding::storage, padded
  uint64_t base = 0;                    ///< low half
  int64_t base_high = 0;                ///< high half: wide slots only
  uint64_t null_code = 0;               ///< if has_null_code; of width 16: the low half
  int64_t null_code_high = 0;           ///< width 16
  uint8_t width = 0;                    ///< 0 (no codes), 1, 2, 4, 8, 16
  Decode decode = Decode::kConstant;
  bool wide = false;  ///< the value has 128 bits
  bool has_null_code = false;
  bool all_null = false;
  bool row_codes = false;           ///< a row's code is its number in the tablet: `codes` is nullptr (devices only)
  TextForm texts = TextForm::kMap;  ///< kMap, kMapRow

  /// Whether any row can be NULL.
  bool MayBeNull() const { return all_null || has_null_code || null_bytes != nullptr || map_null != nullptr; }
};

/// A predicate in one tablet: a test of a row's code c.
struct PredicateEncoding {
  enum class Kind : uint8_t {
    kAll,    ///< every row passes
    kNone,   ///< no row passes
    kRange,  ///< c - low <= span (unsigned, in the width of the code); != negated; then not the NULL code if
             ///< exclude_null
    kSet,    ///< set[c] (one byte a code); set[row] if by_row; bits are already negated and NULL is already decided
    kNulls,  ///< null_bytes[row] != negated: IS NULL on columns that have null_bytes
  };
  Kind kind = Kind::kAll;
  bool negated = false;
  bool exclude_null = false;
  bool by_row = false;
  uint64_t low = 0, span = 0;
  uint64_t low_high = 0, span_high = 0;  ///< width 16: high halves
  const uint8_t* set = nullptr;
  uint64_t set_bytes = 0;  ///< size of set
  /// The set, by row, is made by the device that runs the section, see SectionEncoder::LeaveToDevice; `set` is nullptr.
  bool on_device = false;
  float share = 0;  ///< on_device: of the rows that pass, from a sample
  const uint8_t* null_bytes = nullptr;
  int32_t slot = 0;  ///< whose codes are tested
};

}  // namespace tessera::vm
