#include "vm/text_ranks.h"

#include <algorithm>

#include "base/interrupt.h"

namespace tessera::vm {
namespace {

/// Up to so many strings are compared with each other.
constexpr size_t kFew = 8;

/// Eight bytes of a string from `depth` on as a big-endian number, filled up with zeros.
uint64_t HeadAt(std::string_view s, size_t depth) {
  uint64_t head = 0;
  for (size_t i = depth; i < depth + 8; ++i) head = head << 8 | (i < s.size() ? static_cast<uint8_t>(s[i]) : 0);
  return head;
}

size_t CommonPrefix(std::string_view a, std::string_view b, size_t most) {
  most = std::min({most, a.size(), b.size()});
  size_t i = 0;
  while (i < most && a[i] == b[i]) ++i;
  return i;
}

/// A text on its way to its place.
struct Sorting {
  std::string_view text;
  uint64_t head;
  uint32_t number;
};

/// Sorts texts that are all different and alike up to `depth`. Names and numbered keys often begin alike: numbers made of
/// what is behind the common part are sorted, not strings.
void SortFrom(size_t depth, std::span<Sorting> texts) {
  const auto compare = [](std::span<Sorting> some) {
    std::sort(some.begin(), some.end(),
              InterruptibleLess([](const Sorting& a, const Sorting& b) { return a.text < b.text; }));
  };
  if (texts.size() <= kFew) return compare(texts);
  size_t common = texts.front().text.size();
  for (const Sorting& s : texts) common = CommonPrefix(texts.front().text, s.text, common);
  depth = std::max(depth, common);
  for (Sorting& s : texts) {
    ThrowIfInterrupted(s.number);
    s.head = HeadAt(s.text, depth);
  }
  std::sort(texts.begin(), texts.end(),
            InterruptibleLess([](const Sorting& a, const Sorting& b) { return a.head < b.head; }));
  for (size_t begin = 0, end = 0; begin < texts.size(); begin = end) {
    while (end < texts.size() && texts[end].head == texts[begin].head) ++end;
    const std::span<Sorting> alike = texts.subspan(begin, end - begin);
    // Where one ends, zeros may be another one's own.
    const bool ends = std::ranges::any_of(alike, [&](const Sorting& s) { return s.text.size() < depth + 8; });
    if (alike.size() > 1) ends ? compare(alike) : SortFrom(depth + 8, alike);
  }
}

}  // namespace

std::vector<uint32_t> OrderOf(std::span<const std::string_view> texts) {
  std::vector<Sorting> sorting;
  sorting.reserve(texts.size());
  for (const std::string_view text : texts) sorting.push_back({text, 0, static_cast<uint32_t>(sorting.size())});
  SortFrom(0, sorting);
  std::vector<uint32_t> order;
  order.reserve(texts.size());
  for (const Sorting& s : sorting) order.push_back(s.number);
  return order;
}

void TextRanks::Update(const StringPool& pool) {
  const size_t had = sorted_.size(), count = pool.count();
  if (had == count) return;
  const InterruptScope without_interrupts{nullptr};  // the device may be at work
  std::vector<std::string_view> added;
  for (size_t id = had; id < count; ++id) added.push_back(pool.Get(static_cast<int64_t>(id)));
  for (const uint32_t place : OrderOf(added)) sorted_.push_back(static_cast<uint32_t>(had) + place);
  std::inplace_merge(sorted_.begin(), sorted_.begin() + static_cast<ptrdiff_t>(had), sorted_.end(),
                     [&](uint32_t a, uint32_t b) { return pool.Get(a) < pool.Get(b); });
  ranks_.resize(count);
  for (size_t rank = 0; rank < count; ++rank) ranks_[sorted_[rank]] = static_cast<uint32_t>(rank);
}

}  // namespace tessera::vm
