#include "kernels/memory/pinned_pages.h"

#include <algorithm>
#include <iterator>

#include "kernels/cuda/cuda_memory.h"

namespace tessera::kernels {
namespace {

constexpr uintptr_t kPageBytes = 4096;

}  // namespace

bool PinnedPages::AreSupported(int device) {
  for (const cudaDeviceAttr a :
       {cudaDevAttrHostRegisterReadOnlySupported, cudaDevAttrCanUseHostPointerForRegisteredMem}) {
    int value = 0;
    const cudaError_t error = cudaDeviceGetAttribute(&value, a, device);
    IgnoreError(error);
    if (error != cudaSuccess || value == 0) return false;
  }
  return true;
}

void PinnedPages::Unpin() {
  std::lock_guard<std::mutex> lock(mutex_);
  // (The thread that drops a tablet last may not have used the device.)
  if (!ranges_.empty()) IgnoreError(cudaSetDevice(device_));
  for (const auto& [begin, end] : ranges_) {
    IgnoreError(cudaHostUnregister(reinterpret_cast<void*>(begin)));
    *pinned_ -= end - begin;
  }
  ranges_.clear();
}

PinnedPages::Ranges::const_iterator PinnedPages::Find(uintptr_t at) const {
  const auto after = ranges_.upper_bound(at);
  if (after == ranges_.begin()) return ranges_.end();
  const auto range = std::prev(after);
  return range->second > at ? range : ranges_.end();
}

void PinnedPages::Pin(const uint8_t* at, uint64_t bytes) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(at) / kPageBytes * kPageBytes,
                  end = (reinterpret_cast<uintptr_t>(at) + bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  std::lock_guard<std::mutex> lock(mutex_);
  for (uintptr_t begin = first; begin < end && !refused_;) {
    if (const auto range = Find(begin); range != ranges_.end()) {
      begin = range->second;
      continue;
    }
    const auto next = ranges_.lower_bound(begin);
    const uintptr_t until = next == ranges_.end() ? end : std::min(end, next->first);
    const auto range = ranges_.emplace(begin, until).first;  // what is pinned must not be forgotten
    const cudaError_t error = cudaHostRegister(reinterpret_cast<void*>(begin), until - begin, cudaHostRegisterReadOnly);
    IgnoreError(error);
    if (error != cudaSuccess) {
      ranges_.erase(range);
      refused_ = true;
      return;
    }
    *pinned_ += until - begin;
    begin = until;
  }
}

bool PinnedPages::Hold(const uint8_t* at, uint64_t bytes) const {
  const uintptr_t end = reinterpret_cast<uintptr_t>(at) + bytes;
  std::lock_guard<std::mutex> lock(mutex_);
  for (uintptr_t begin = reinterpret_cast<uintptr_t>(at); begin < end;) {
    const auto range = Find(begin);
    if (range == ranges_.end()) return false;
    begin = range->second;
  }
  return true;
}

void PinnedPages::ForEachPart(const uint8_t* at, uint64_t bytes,
                              const std::function<void(const uint8_t*, uint64_t)>& f) const {
  std::lock_guard<std::mutex> lock(mutex_);
  while (bytes > 0) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(at);
    uintptr_t end = begin + bytes;
    if (const auto range = Find(begin); range != ranges_.end()) {
      end = std::min(end, range->second);
    } else if (const auto next = ranges_.lower_bound(begin); next != ranges_.end()) {
      end = std::min(end, next->first);
    }
    const uint64_t part = end - begin;
    f(at, part);
    at += part;
    bytes -= part;
  }
}

}  // namespace tessera::kernels
