#include "vm/rows/known_dictionaries.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

namespace tessera::vm {
namespace {

/// Fewer entries are interned as fast as they are found here.
constexpr size_t kLeastEntries = 64;
constexpr uint64_t kMostBytes = uint64_t{1} << 20;

bool IsWorthKeeping(const DictionaryEntries& entries) {
  return entries.offsets.size() > kLeastEntries && entries.offsets.size_bytes() + entries.text.size() <= kMostBytes;
}

uint64_t HashOf(const DictionaryEntries& entries) {
  return XXH3_64bits_withSeed(entries.offsets.data(), entries.offsets.size_bytes(),
                              XXH3_64bits(entries.text.data(), entries.text.size()));
}

}  // namespace

const KnownDictionaries::Known* KnownDictionaries::FindLocked(uint64_t hash, const DictionaryEntries& entries) const {
  const auto at = std::ranges::find_if(known_, [&](const Known& k) {
    return k.hash == hash && std::ranges::equal(k.offsets, entries.offsets) && std::ranges::equal(k.text, entries.text);
  });
  return at == known_.end() ? nullptr : &*at;
}

KnownDictionaries::Ids KnownDictionaries::Find(const DictionaryEntries& entries) const {
  if (!IsWorthKeeping(entries)) return nullptr;
  const uint64_t hash = HashOf(entries);
  const std::lock_guard lock(mutex_);
  const Known* const known = FindLocked(hash, entries);
  return known == nullptr ? nullptr : known->ids;
}

void KnownDictionaries::Keep(const DictionaryEntries& entries, const Ids& ids) {
  if (!IsWorthKeeping(entries)) return;
  const uint64_t hash = HashOf(entries);
  const std::lock_guard lock(mutex_);
  const uint64_t bytes = 2 * entries.offsets.size_bytes() + entries.text.size();
  if (bytes_ + bytes > kMostBytes || FindLocked(hash, entries) != nullptr) return;
  known_.push_back(
      {hash, {entries.offsets.begin(), entries.offsets.end()}, {entries.text.begin(), entries.text.end()}, ids});
  bytes_ += bytes;
}

uint64_t KnownDictionaries::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace tessera::vm
