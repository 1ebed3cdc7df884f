// Making bound tablets: chunk descriptors and logical predicates become codes, sets and maps. Host only; private to the
// interpreters (vm/ and kernels/). What the records mean is in binding.h.
//
// Start at: BindTablet.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/status.h"
#include "tablet/tablet.h"
#include "vm/binding.h"
#include "vm/program.h"
#include "vm/string_pool.h"

namespace tessera::vm {

/// One tablet, bound to one section. The pointers in `slots` and `predicates` are host pointers; they point into the tablet,
/// which must outlive this, or into `storage`.
struct BoundTablet {
  uint32_t rows = 0;
  bool skip = false;  ///< a predicate that every row must pass was bound to none: the tablet has no row for the section
  std::vector<BoundSlot> slots;            ///< one per Section::slots
  std::vector<BoundPredicate> predicates;  ///< one per Section::predicates
  /// The chunk of each slot, for whoever has to move its streams to a device; nullptr for intermediate results.
  std::vector<const Chunk*> chunks;
  /// Entries behind each slot's map, map_null (in entries) and each predicate's set (in bytes); 0 if it has none.
  std::vector<uint64_t> map_entries;
  std::vector<uint64_t> set_bytes;
  /// What slots' map and map_null point to; tablets with the same dictionary may share it.
  std::vector<std::array<std::shared_ptr<uint8_t[]>, 2>> maps;
  uint64_t encoded_bytes = 0;              ///< of the chunks of all slots
  std::vector<std::unique_ptr<uint8_t[]>> storage;
};

/// The least and greatest key of a join table that has been built, for Predicate::Kind::kKeyRange.
struct KeyRange {
  bool known = false;
  int64_t low = 0, high = -1;  ///< low > high: the table is empty
};

/// Which slots of a section are read as values (not only through predicates): only these need a TEXT map.
std::vector<bool> SlotsReadAsValues(const Section& section);

/// Binds `tablet` to section `section` of `program`. `key_ranges` has one entry per join table (may be empty). Errors: those
/// of Tablet::Chunk and of the dictionary sections. `like`: a tablet bound before to the same section, whose maps are taken where
/// the dictionaries are the same, as they are in most tablets of a table; may be nullptr. `values`: SlotsReadAsValues, if the caller
/// binds many tablets. `lazy_maps`: large dictionaries get their identifiers when a row asks for one, see BoundSlot::lazy_map.
Result<BoundTablet> BindTablet(const Program& program, int section, const Tablet& tablet, StringPool* strings,
                               const std::vector<KeyRange>& key_ranges, const BoundTablet* like = nullptr,
                               const std::vector<bool>* values = nullptr, bool lazy_maps = false);

}  // namespace tessera::vm
