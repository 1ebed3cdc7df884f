// Pages of a tablet's file, pinned where they are mapped: the device copies from them without the host's help, and kernels
// can read them over the link. Private to kernels/.
//
// To pin a page takes the host as long as to copy it (17 GB a second on the host of an H100, by one thread or by many), so
// it pays for what crosses the link again and again.
//
// Start at: PinnedPages::Pin. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "base/status.h"

namespace tessera::kernels {

class PinnedPages {
 public:
  /// Whether the device can read such pages at all. REQUIRES: the device is current.
  static bool AreSupported(int device);

  /// `pinned`: counts the bytes of all objects.
  PinnedPages(int device, std::shared_ptr<std::atomic<uint64_t>> pinned)
      : device_(device), pinned_(std::move(pinned)) {}
  ~PinnedPages() { Unpin(); }
  PinnedPages(const PinnedPages&) = delete;
  PinnedPages& operator=(const PinnedPages&) = delete;

  /// Pins the pages of `bytes` bytes at `at` that are not yet. They must belong to one shared mapping of a file. Once the
  /// system has refused, nothing more is pinned.
  void Pin(const uint8_t* at, uint64_t bytes);
  /// All of them. REQUIRES: no device reads them.
  void Unpin();
  bool Hold(const uint8_t* at, uint64_t bytes) const;
  /// Calls f(at, bytes) for each part of a stream, in order: it was pinned together, or is not pinned. A copy must not cross
  /// from one to the next.
  void ForEachPart(const uint8_t* at, uint64_t bytes, const std::function<void(const uint8_t*, uint64_t)>& f) const;

 private:
  using Ranges = std::map<uintptr_t, uintptr_t>;  ///< begin and end of what was pinned together
  /// The range that `at` is in, or end().
  Ranges::const_iterator Find(uintptr_t at) const;

  const int device_;
  const std::shared_ptr<std::atomic<uint64_t>> pinned_;
  mutable std::mutex mutex_;
  Ranges ranges_;
  bool refused_ = false;
};

}  // namespace tessera::kernels
