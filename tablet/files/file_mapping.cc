// The list of mappings and the handler that looks into it.
#include "tablet/files/file_mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <mutex>

namespace tessera {

/// Entries are used again, but never freed: a signal handler may be reading the list, without a lock.
struct FileMapping::Entry {
  std::atomic<uintptr_t> begin{0};  ///< 0 while nothing is mapped
  std::atomic<uintptr_t> end{0};    ///< of its last page
  std::atomic<bool> lost{false};
  bool shared = false;
  Entry* next = nullptr;       ///< of all entries; set before the entry is in the list
  Entry* next_free = nullptr;  ///< guarded by the registry's mutex
};

struct FileMapping::Registry {
  std::mutex mutex;
  Entry* free = nullptr;
  bool installed = false;
  // What the handler reads. It takes no lock.
  std::atomic<Entry*> all{nullptr};
  std::atomic<bool> any_lost{false};
  struct sigaction before {};

  static Registry& Get() {
    static Registry* const registry = new Registry;  // mappings of static objects may outlive any other object
    return *registry;
  }
};

namespace {

constexpr uintptr_t kPageBytes = 4096;

}  // namespace

void FileMapping::OnSigbus(int number, siginfo_t* info, void* context) {
  Registry& registry = Registry::Get();
  const int saved_errno = errno;
  const uintptr_t at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Entry* e = registry.all.load(std::memory_order_acquire); e != nullptr; e = e->next) {
    const uintptr_t begin = e->begin.load(std::memory_order_acquire), end = e->end.load(std::memory_order_acquire);
    if (begin == 0 || at < begin || at >= end) continue;
    // What is lost is lost to the end of the mapping: one signal a mapping, not one a page.
    const uintptr_t page = at & ~(kPageBytes - 1);
    e->lost.store(true, std::memory_order_release);
    registry.any_lost.store(true, std::memory_order_release);
    void* const zeros = mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    errno = saved_errno;
    if (zeros != MAP_FAILED) return;
    break;
  }
  errno = saved_errno;
  const struct sigaction& before = registry.before;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    signal(SIGBUS, SIG_DFL);  // the read is tried again, and ends the process
  }
}

int FileMapping::Map(int fd, uint64_t bytes, uint64_t offset) {
  Registry& registry = Registry::Get();
  std::lock_guard lock(registry.mutex);
  if (!registry.installed) {
    struct sigaction action {};
    action.sa_sigaction = &FileMapping::OnSigbus;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, nullptr, &registry.before) != 0 || sigaction(SIGBUS, &action, nullptr) != 0) return errno;
    registry.installed = true;
  }
  if (registry.free == nullptr) {
    Entry* const made = new Entry;
    made->next = registry.all.load(std::memory_order_relaxed);
    registry.all.store(made, std::memory_order_release);
    registry.free = made;
  }
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  const bool shared = mapped != MAP_FAILED;
  if (!shared && errno == ENODEV) mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return errno;
  entry_ = registry.free;
  registry.free = std::exchange(entry_->next_free, nullptr);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapped);
  entry_->lost.store(false, std::memory_order_relaxed);
  entry_->shared = shared;
  entry_->end.store(begin + (bytes + kPageBytes - 1) / kPageBytes * kPageBytes, std::memory_order_release);
  entry_->begin.store(begin, std::memory_order_release);
  return 0;
}

FileMapping::~FileMapping() {
  if (entry_ == nullptr) return;
  Registry& registry = Registry::Get();
  std::lock_guard lock(registry.mutex);
  const uintptr_t begin = entry_->begin.exchange(0, std::memory_order_acq_rel);
  munmap(reinterpret_cast<void*>(begin), entry_->end.load(std::memory_order_relaxed) - begin);
  entry_->next_free = registry.free;
  registry.free = entry_;
}

const uint8_t* FileMapping::data() const {
  return entry_ == nullptr ? nullptr : reinterpret_cast<const uint8_t*>(entry_->begin.load(std::memory_order_relaxed));
}

bool FileMapping::is_shared() const { return entry_ != nullptr && entry_->shared; }

bool FileMapping::lost() const { return entry_ != nullptr && entry_->lost.load(std::memory_order_acquire); }

bool FileMapping::any_lost() { return Registry::Get().any_lost.load(std::memory_order_acquire); }

}  // namespace tessera
