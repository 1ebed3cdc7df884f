#include "base/slab_ranges.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace tessera {

SlabRanges::SlabRanges(size_t most_slabs) : most_slabs_(most_slabs) {
  slabs_.reserve(most_slabs);
  free_.reserve(most_slabs);
}

std::vector<SlabRanges::Slab>::iterator SlabRanges::Find(const uint8_t* at) {
  return std::ranges::find_if(slabs_, [at](const Slab& s) { return s.Holds(at); });
}

bool SlabRanges::Holds(const uint8_t* at) const {
  return std::ranges::any_of(slabs_, [at](const Slab& s) { return s.Holds(at); });
}

void SlabRanges::Touch(std::vector<Slab>::iterator slab) { std::rotate(slab, slab + 1, slabs_.end()); }

std::vector<SlabRanges::FreeRange>::iterator SlabRanges::FindFree(const uint8_t* at) {
  return std::ranges::lower_bound(free_, at, {}, [](const FreeRange& f) { return f.range.data; });
}

uint8_t* SlabRanges::Take(uint64_t bytes) {
  // Between two free ranges of a slab lies a piece, so there is room for what Put brings.
  if (const size_t most = taken_ + 1 + most_slabs_; free_.capacity() < most) {
    try {
      free_.reserve(2 * most);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  auto best = free_.end();
  for (auto f = free_.begin(); f != free_.end(); ++f) {
    if (f->range.bytes < bytes || (f->is_slab && bytes < f->range.bytes / kLeastPart)) continue;
    if (best == free_.end() || f->range.bytes < best->range.bytes) best = f;
  }
  if (best == free_.end()) return nullptr;
  uint8_t* const data = best->range.data;
  if (best->is_slab) removable_bytes_ -= best->range.bytes;
  *best = {{data + bytes, best->range.bytes - bytes}, false};
  if (best->range.bytes == 0) free_.erase(best);
  ++taken_;
  free_bytes_ -= bytes;
  const auto slab = Find(data);
  slab->free_bytes -= bytes;
  Touch(slab);
  return data;
}

void SlabRanges::Put(Range range) {
  auto slab = Find(range.data);
  if (slab == slabs_.end()) {
    slabs_.push_back({range, 0});
    slab = std::prev(slabs_.end());
  } else {
    --taken_;
  }
  free_bytes_ += range.bytes;
  slab->free_bytes += range.bytes;
  auto next = FindFree(range.data);
  if (next != free_.end() && next->range.data == range.end() && slab->Holds(next->range.data)) {
    range.bytes += next->range.bytes;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->range.end() == range.data && slab->Holds(before->range.data)) {
      range = {before->range.data, before->range.bytes + range.bytes};
      next = free_.erase(before);
    }
  }
  free_.insert(next, {range, slab->is_free()});
  if (slab->is_free()) removable_bytes_ += range.bytes;
  Touch(slab);
}

SlabRanges::Range SlabRanges::RemoveSlab() {
  const auto slab = std::ranges::find_if(slabs_, [](const Slab& s) { return s.is_free(); });
  if (slab == slabs_.end()) return {};
  const Range whole = slab->whole;
  free_.erase(FindFree(whole.data));
  free_bytes_ -= whole.bytes;
  removable_bytes_ -= whole.bytes;
  slabs_.erase(slab);
  return whole;
}

}  // namespace tessera
