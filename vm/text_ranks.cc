#include "vm/text_ranks.h"

#include <algorithm>

namespace tessera::vm {
namespace {

/// Shorter strings are filled up with zeros. If heads are equal, the strings are compared.
uint64_t Head(std::string_view s) {
  uint64_t head = 0;
  for (size_t i = 0; i < 8; ++i) head = head << 8 | (i < s.size() ? static_cast<uint8_t>(s[i]) : 0);
  return head;
}

}  // namespace

void TextRanks::Update(const StringPool& pool) {
  const size_t had = sorted_.size(), count = pool.count();
  if (had == count) return;
  for (size_t id = had; id < count; ++id) {
    sorted_.push_back({Head(pool.Get(static_cast<int64_t>(id))), static_cast<uint32_t>(id)});
  }
  const auto less = [&](const Entry& a, const Entry& b) {
    return a.head != b.head ? a.head < b.head : pool.Get(a.id) < pool.Get(b.id);
  };
  const auto middle = sorted_.begin() + static_cast<ptrdiff_t>(had);
  std::sort(middle, sorted_.end(), less);
  std::inplace_merge(sorted_.begin(), middle, sorted_.end(), less);
  ranks_.resize(count);
  for (size_t rank = 0; rank < count; ++rank) ranks_[sorted_[rank].id] = static_cast<uint32_t>(rank);
}

}  // namespace tessera::vm
