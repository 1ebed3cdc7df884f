#include "kernels/memory/spare_encodings.h"

#include <cstddef>
#include <utility>

namespace tessera::kernels {
namespace {

/// Encodings that are kept, and slots of one: 200 bytes each.
constexpr size_t kMostEncodings = 4096, kMostEncodedSlots = 32;

}  // namespace

void SpareEncodings::Reserve() { spare_.reserve(kMostEncodings); }

vm::TabletEncoding SpareEncodings::Take() {
  if (spare_.empty()) return {};
  vm::TabletEncoding encoding = std::move(spare_.back());
  spare_.pop_back();
  return encoding;
}

void SpareEncodings::Keep(vm::TabletEncoding encoding) {
  const size_t slots = encoding.slots.capacity();
  if (slots == 0 || slots > kMostEncodedSlots) return;
  if (spare_.size() == spare_.capacity()) return;
  encoding.Clear();
  spare_.push_back(std::move(encoding));
}

void SpareEncodings::KeepAll(std::vector<vm::TabletEncoding>* encodings) {
  for (vm::TabletEncoding& e : *encodings) Keep(std::move(e));
  encodings->clear();
}

}  // namespace tessera::kernels
