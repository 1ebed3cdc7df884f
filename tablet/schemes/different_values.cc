#include "tablet/schemes/different_values.h"

#include <algorithm>
#include <bit>

namespace tessera {
namespace {

/// A map may always have this many words.
constexpr uint64_t kSmallMap = 1024;
constexpr int kFirstSlotsLog2 = 10;

}  // namespace

DifferentValues::DifferentValues(std::span<const uint64_t> values, size_t most) {
  uint64_t least = UINT64_MAX, greatest = 0;
  for (const uint64_t value : values) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  if (values.empty()) return;
  least_ = least;
  const uint64_t words = (greatest - least) / 64 + 1;
  if (words <= std::max<uint64_t>(values.size(), kSmallMap)) {
    Map(values, words);
  } else {
    Hash(values, most);
  }
}

void DifferentValues::Map(std::span<const uint64_t> values, uint64_t words) {
  map_.resize(words);
  for (const uint64_t value : values) map_[(value - least_) / 64] |= uint64_t{1} << (value - least_) % 64;
  for (const uint64_t word : map_) count_ += static_cast<size_t>(std::popcount(word));
}

void DifferentValues::Hash(std::span<const uint64_t> values, size_t most) {
  slots_.resize(size_t{1} << kFirstSlotsLog2);
  shift_ = 64 - kFirstSlotsLog2;
  for (size_t i = 0; i < values.size() && count_ <= most; ++i) {
    const uint64_t value = values[i];
    if (i > 0 && value == values[i - 1]) continue;
    Slot& slot = slots_[Find(value)];
    if (slot.used) continue;
    slot = {value, 0, true};
    if (++count_ * 2 > slots_.size()) Grow();
  }
}

void DifferentValues::Grow() {
  std::vector<Slot> smaller(slots_.size() * 2);
  smaller.swap(slots_);
  --shift_;
  for (const Slot& slot : smaller) {
    if (slot.used) slots_[Find(slot.value)] = slot;
  }
}

size_t DifferentValues::Find(uint64_t value) const {
  size_t at = (value * 0x9E3779B97F4A7C15u) >> shift_;
  while (slots_[at].used && slots_[at].value != value) at = (at + 1) & (slots_.size() - 1);
  return at;
}

Values DifferentValues::Sort() {
  Values different;
  different.reserve(count_);
  if (!IsMapped()) {
    for (const Slot& slot : slots_) {
      if (slot.used) different.push_back(slot.value);
    }
    std::sort(different.begin(), different.end());
    for (size_t i = 0; i < different.size(); ++i) slots_[Find(different[i])].number = static_cast<uint32_t>(i);
    return different;
  }
  before_.reserve(map_.size());
  for (size_t w = 0; w < map_.size(); ++w) {
    before_.push_back(static_cast<uint32_t>(different.size()));
    for (uint64_t word = map_[w]; word != 0; word &= word - 1) {
      different.push_back(least_ + w * 64 + static_cast<uint64_t>(std::countr_zero(word)));
    }
  }
  return different;
}

Values DifferentValues::NumbersOf(std::span<const uint64_t> values) const {
  Values numbers(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (IsMapped()) {
      const uint64_t bit = values[i] - least_;
      const uint64_t lower = map_[bit / 64] & ((uint64_t{1} << bit % 64) - 1);
      numbers[i] = before_[bit / 64] + static_cast<uint64_t>(std::popcount(lower));
    } else {
      numbers[i] = i > 0 && values[i] == values[i - 1] ? numbers[i - 1] : slots_[Find(values[i])].number;
    }
  }
  return numbers;
}

}  // namespace tessera
