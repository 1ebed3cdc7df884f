#include "vm/encode/read_ahead.h"

#include <algorithm>
#include <utility>

namespace tessera::vm {

ReadAhead::ReadAhead(const SectionEncoder* encoder, const TableInfo* table, std::vector<size_t> order, bool again)
    : encoder_(*encoder),
      table_(*table),
      order_(std::move(order)),
      place_(table->tablets.size()),
      again_(again),
      asked_(1) {
  for (size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
}

void ReadAhead::Begin(size_t tablet) {
  const size_t place = place_[tablet];
  size_t begun = begun_.load(std::memory_order_relaxed);
  while (begun < place && !begun_.compare_exchange_weak(begun, place, std::memory_order_relaxed)) {
  }
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  begun = begun_.load(std::memory_order_relaxed);
  while (asked_.size() <= begun) asked_.push_back(asked_.back());  // it is too late for these
  const uint64_t most = std::clamp(asked_[begun], kLeastBytes, kMostBytes);
  while (asked_.size() <= order_.size()) {
    const size_t next = asked_.size() - 1;
    if (next > begun + 1 && (next - begun >= kMostTablets || asked_[next] - asked_[begun] >= most)) break;
    // A header has to be there before the chunks can be asked for. So it is asked for early: it comes after all that the
    // disk has to read already.
    opened_ = std::max(opened_, next);
    for (; opened_ < std::min(order_.size(), next + 1 + kHeaders); ++opened_)
      table_.tablets[order_[opened_]]->Expect({}, again_);
    asked_.push_back(asked_.back() + encoder_.Expect(*table_.tablets[order_[next]], again_));
  }
}

}  // namespace tessera::vm
