#include "kernels/memory/page_pinner.h"

#include <algorithm>
#include <span>

#include "base/background_thread.h"
#include "base/clock.h"
#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "kernels/cuda/cuda_memory.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/files/file_mapping.h"

namespace tessera::kernels {
namespace {

/// The part of the host's memory limit, a rank's if there are several, that may be pinned.
constexpr uint64_t kPinnedShare = 8;
/// Most bytes of one call of CUDA, during which nothing else happens.
constexpr uint64_t kPinnedTogether = uint64_t{16} << 20;
constexpr size_t kMostRequests = 4096;
/// The part of the time of a run in which pages may be pinned, if there was no time between runs for so long.
constexpr int kPinningShare = 20;
constexpr std::chrono::seconds kPinningWait{1};

}  // namespace

void PagePinner::Open(int device) {
  device_ = device;
  if (PinnedPages::AreSupported(device)) usable_memory_ = UsableMemory();
}

void PagePinner::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  more_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool PagePinner::IsWhole(const Tablet& tablet) {
  TouchLast(tablet.Mapping());
  return !FileMapping::any_lost();
}

uint64_t PagePinner::MostPinned() const {
  return (MemoryLimit() == UINT64_MAX ? usable_memory_ : MemoryLimit()) / kPinnedShare;
}

void PagePinner::PinSoon(const std::shared_ptr<const Tablet>& tablet, const uint8_t* at, uint64_t bytes,
                         std::weak_ptr<PinnedPages>* pages) {
  bytes = AlignToStream(bytes);
  if (*pinned_ + bytes > MostPinned()) return;
  const std::span<const uint8_t> mapping = tablet->Mapping();
  if (at < mapping.data() || at + bytes > mapping.data() + mapping.size()) return;
  std::shared_ptr<PinnedPages> held = pages->lock();
  if (held == nullptr) {
    held = std::make_shared<PinnedPages>(device_, pinned_);
    tablet->HoldWhileMapped(held);
    *pages = held;
  }
  // Without the thread nothing is pinned, and everything goes on as before.
  if (!thread_.joinable() && !StartThread(&thread_, &PagePinner::PinPages, this).ok()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // (What finds no room is asked for again when it comes again.)
    for (uint64_t done = 0; done < bytes && requests_.size() < kMostRequests; done += kPinnedTogether)
      requests_.push_back({tablet, held, at + done, std::min(bytes - done, kPinnedTogether)});
  }
  more_.notify_one();
}

void PagePinner::ForgetRequests() {
  std::unique_lock<std::mutex> lock(mutex_);
  requests_.clear();
  done_.wait(lock, [&] { return !is_pinning_; });
}

void PagePinner::PinPages() {
  IgnoreError(cudaSetDevice(device_));
  Clock::time_point next = Clock::now() + kPinningWait;  // during a run not before
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    while (!stop_ && (requests_.empty() || (runs_ > 0 && Clock::now() < next))) {
      if (requests_.empty()) {
        more_.wait(lock);
        next = Clock::now() + kPinningWait;
      } else {
        more_.wait_until(lock, next);
      }
    }
    if (stop_) return;
    const Request request = requests_.front();
    requests_.pop_front();
    is_pinning_ = true;
    lock.unlock();
    const Clock::time_point start = Clock::now();
    (void)Caught([&] { return Pin(request); });
    next = Clock::now() + kPinningShare * (Clock::now() - start);
    lock.lock();
    is_pinning_ = false;
    done_.notify_all();
  }
}

Status PagePinner::Pin(const Request& request) {
  // The tablet first: the pages have to go before the mapping does.
  const std::shared_ptr<const Tablet> tablet = request.tablet.lock();
  if (tablet == nullptr) return Status::Ok();
  const std::shared_ptr<PinnedPages> pages = request.pages.lock();
  if (pages != nullptr && IsWhole(*tablet) && *pinned_ + request.bytes <= MostPinned())
    pages->Pin(request.at, request.bytes);
  return Status::Ok();
}

void PagePinner::BeginRun() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++runs_;
}

void PagePinner::EndRun() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --runs_;
  }
  more_.notify_one();
}

}  // namespace tessera::kernels
