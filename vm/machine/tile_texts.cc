#include "vm/machine/tile_texts.h"

#include <algorithm>
#include <cstring>

namespace tessera::vm {
namespace {

bool ReadsTexts(const Section& section, const TextUses& uses) {
  bool reads = std::find(uses.results.begin(), uses.results.end(), true) != uses.results.end();
  for (size_t i = 0; i < section.slots.size(); ++i)
    reads |= uses.emitted[i] && section.slots[i].type.storage() == StorageClass::kText;
  return reads;
}

}  // namespace

MachineTexts::MachineTexts(const Section& section, const SectionTraits& traits, StringPool* strings)
    : uses(FindTextUses(section, traits)),
      may_be_made(ReadsTexts(section, uses)),
      of_tile(*strings),
      identifiers(strings) {}

void TileTexts::Begin(const TabletEncoding& tablet) {
  tablet_ = &tablet;
  if (made_.empty()) return;
  made_.clear();
  bytes_.release();
}

std::string_view TileTexts::Here(int64_t value) const {
  // A row that holds no value may hold one of an earlier tile.
  if (value < kFirstEntry) {
    const auto number = static_cast<size_t>(value - kFirstMade);
    return number < made_.size() ? made_[number] : std::string_view();
  }
  const auto place = static_cast<uint64_t>(value - kFirstEntry);
  const size_t slot = place >> 32;
  const auto entry = static_cast<uint32_t>(place);
  if (slot >= tablet_->chunks.size() || entry >= tablet_->chunks[slot]->entries) return {};
  return tablet_->chunks[slot]->Entry(entry);
}

int64_t TileTexts::Keep(std::string_view text) {
  if (text.empty()) return Note({});
  char* const bytes = static_cast<char*>(bytes_.allocate(text.size(), 1));
  memcpy(bytes, text.data(), text.size());
  return Note({bytes, text.size()});
}

}  // namespace tessera::vm
