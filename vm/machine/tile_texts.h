// Texts as values of 64 bits, in a tile. A value is an identifier of the pool, or, where it is only read (text_uses.h), it
// stands for a text that lies elsewhere: from kFirstMade on it is the number of a text that this tile has made, from
// kFirstEntry on an entry of a slot's chunk. Private to vm/machine/.
//
// Start at: MachineTexts, TileTexts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string_view>
#include <vector>

#include "base/text_head.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/program/text_uses.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

inline constexpr int64_t kFirstMade = int64_t{1} << 61, kFirstEntry = int64_t{1} << 62;

/// The value of an entry of a slot's chunk.
inline int64_t EntryValue(size_t slot, uint64_t entry) {
  return kFirstEntry + static_cast<int64_t>(uint64_t{slot} << 32 | entry);
}

/// What the values of a tile stand for, and the texts that it has made.
class TileTexts {
 public:
  explicit TileTexts(const StringPool& strings) : strings_(strings) {}

  /// Forgets the texts of the tile before.
  void Begin(const TabletEncoding& tablet);
  /// The text of a value, valid until the next tile.
  std::string_view Get(int64_t value) const { return value < kFirstMade ? strings_.Get(value) : Here(value); }
  /// The same of a value that is none of the pool.
  std::string_view Here(int64_t value) const;
  /// The value of a text, of which a copy is kept.
  int64_t Keep(std::string_view text);
  /// The same of a text that lasts as long as the tile.
  int64_t Note(std::string_view text) {
    made_.push_back(text);
    return kFirstMade + static_cast<int64_t>(made_.size() - 1);
  }

 private:
  const StringPool& strings_;
  const TabletEncoding* tablet_ = nullptr;
  std::vector<std::string_view> made_;
  std::pmr::monotonic_buffer_resource bytes_;
};

/// Identifiers of texts, of which functions often give the same few that all threads would ask the pool for: those given
/// last are known here.
class KnownIdentifiers {
 public:
  explicit KnownIdentifiers(StringPool* strings) : strings_(*strings) {}

  int64_t Of(std::string_view text);

 private:
  struct Known {
    std::string_view text;
    uint64_t start = 0;  ///< FirstBytes(text)
    int64_t id = -1;
  };
  static constexpr size_t kProbes = 4;

  StringPool& strings_;
  std::array<Known, 256> known_;  ///< by their first bytes, a few places on if others were there first
};

inline int64_t KnownIdentifiers::Of(std::string_view text) {
  const uint64_t start = FirstBytes(text);
  const size_t first = HashWord(text.size(), static_cast<int64_t>(start)) % known_.size();
  const auto is = [&](const Known& known) {
    return known.start == start && known.text.size() == text.size() && (text.size() <= 8 || known.text == text);
  };
  const auto take = [&](Known* place) {
    place->id = strings_.Intern(text);
    place->text = strings_.Get(place->id);
    place->start = start;
    return place->id;
  };
  // Two strings that took the same place alternately would bring all threads to the pool's locks again.
  for (size_t at = first; at < first + kProbes; ++at) {
    Known& known = known_[at % known_.size()];
    if (known.id < 0) return take(&known);
    if (is(known)) return known.id;
  }
  return take(&known_[first]);
}

/// Rows whose texts get identifiers together.
class AskedTexts {
 public:
  /// `entry`: of a lazy map.
  struct Asked {
    size_t row;
    uint64_t entry = 0;
  };

  void Clear() {
    asked_.clear();
    texts_.clear();
  }
  void Add(const Asked& asked, std::string_view text) {
    asked_.push_back(asked);
    texts_.push_back(text);
  }
  /// Calls f(asked, identifier) for each.
  template <class F>
  void Intern(StringPool* strings, F f) {
    if (asked_.empty()) return;
    ids_.resize(asked_.size());
    strings->Intern(texts_, ids_.data());
    for (size_t k = 0; k < asked_.size(); ++k) f(asked_[k], ids_[k]);
  }

 private:
  std::vector<Asked> asked_;
  std::vector<std::string_view> texts_;
  std::vector<int64_t> ids_;
};

/// All that a machine has for texts.
struct MachineTexts {
  MachineTexts(const Section& section, const SectionTraits& traits, StringPool* strings);

  const TextUses uses;
  const bool may_be_made;  ///< a value of class TEXT may be none of the pool
  TileTexts of_tile;
  KnownIdentifiers identifiers;
  AskedTexts asked;
};

}  // namespace tessera::vm
