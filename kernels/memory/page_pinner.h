// Which pages of tablets' files are pinned, and when: what had to be dropped and comes again, by a thread of its own. CUDA
// lets nothing else happen while it pins pages, so they are pinned between runs, and during one in a twentieth of the
// time. Private to kernels/memory/.
//
// Start at: PagePinner::PinSoon. One owner at a time, but for BeginRun and EndRun.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "base/status.h"
#include "kernels/memory/pinned_pages.h"
#include "tablet/files/tablet.h"

namespace tessera::kernels {

class PagePinner {
 public:
  PagePinner() = default;
  ~PagePinner() { Stop(); }
  PagePinner(const PagePinner&) = delete;
  PagePinner& operator=(const PagePinner&) = delete;

  /// REQUIRES: the device is current.
  void Open(int device);
  /// Whether the device can read pinned pages at all.
  bool is_supported() const { return usable_memory_ != 0; }
  uint64_t pinned_bytes() const { return *pinned_; }
  /// Has the pages of a stream of a tablet's file pinned, if there may be more. `pages`: those of the tablet.
  void PinSoon(const std::shared_ptr<const Tablet>& tablet, const uint8_t* at, uint64_t bytes,
               std::weak_ptr<PinnedPages>* pages);
  /// Nothing more is pinned that was to be, once this returns.
  void ForgetRequests();
  /// A run begins or ends. Any thread.
  void BeginRun();
  void EndRun();
  /// Ends the thread.
  void Stop();

  /// Whether the tablet's file has its end, as far as is known.
  static bool IsWhole(const Tablet& tablet);

 private:
  struct Request {
    std::weak_ptr<const Tablet> tablet;
    std::weak_ptr<PinnedPages> pages;
    const uint8_t* at;
    uint64_t bytes;
  };

  uint64_t MostPinned() const;
  /// What the thread does until the end.
  void PinPages();
  Status Pin(const Request& request);

  int device_ = 0;
  uint64_t usable_memory_ = 0;  ///< of the host; 0: not supported
  std::shared_ptr<std::atomic<uint64_t>> pinned_ = std::make_shared<std::atomic<uint64_t>>(0);  ///< bytes
  std::thread thread_;
  std::mutex mutex_;  // of what follows
  std::condition_variable more_, done_;
  std::deque<Request> requests_;
  bool is_pinning_ = false;
  bool stop_ = false;
  int runs_ = 0;  ///< that have begun
};

}  // namespace tessera::kernels
