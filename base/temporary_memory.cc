#include "base/temporary_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace tessera {
namespace {

constexpr uintptr_t kPageBytes = 4096;
/// A part of the disk that stays free.
constexpr uint64_t kFreeShare = 20;

constinit std::atomic<uint64_t> limit{0}, used{0}, peak{0};
constinit std::atomic<TemporaryRefusal> refusal{TemporaryRefusal::kNone};

/// A new file without a name; -1 if there cannot be one.
int OpenNameless(const char* directory) {
  const int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  // Some file systems have only files with names.
  char path[4096];
  const int length = std::snprintf(path, sizeof path, "%s/tessera-XXXXXX", directory);
  if (length < 0 || length >= static_cast<int>(sizeof path)) return -1;
  const int named = mkostemp(path, O_CLOEXEC);
  if (named >= 0) unlink(path);
  return named;
}

int OpenTemporary() {
  const char* const named = std::getenv("TMPDIR");
  if (named != nullptr && *named != '\0') return OpenNameless(named);
  const int file = OpenNameless("/var/tmp");
  return file >= 0 ? file : OpenNameless("/tmp");
}

bool HasRoom(int file, size_t bytes) {
  struct statvfs disk {};
  if (fstatvfs(file, &disk) != 0) return false;
  const uint64_t unit = disk.f_frsize, all = disk.f_blocks * unit, free = disk.f_bavail * unit;
  return free >= bytes && free - bytes >= all / kFreeShare;
}

/// A mapped file of that many bytes; nullptr if there cannot be one. It takes a millisecond on a busy disk.
uint8_t* MapFile(size_t bytes) {
  const int file = OpenTemporary();
  if (file < 0) return nullptr;
  void* block = MAP_FAILED;
  if (HasRoom(file, bytes) && fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0)
    block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);  // the mapping keeps it
  return block == MAP_FAILED ? nullptr : static_cast<uint8_t*>(block);
}

/// The files. Most are cut into units, and a block is some units in a row; a greater block has a file of its own. The
/// table has a fixed size, because nothing here may allocate; pages of it that have not been written cost nothing.
class Files {
 public:
  static constexpr size_t kUnit = 64 << 10, kUnits = 1024, kMost = 1024;

  static size_t Rounded(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

  /// `bytes` is a multiple of kUnit.
  void* Take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const size_t units = bytes / kUnit;
    File* unused = nullptr;
    for (size_t f = 0; f < kMost; ++f) {
      File& file = files_[f];
      if (file.begin == nullptr) {
        if (unused == nullptr) unused = &file;
        if (f >= end_) break;
      } else if (units <= kUnits && file.whole == 0) {
        if (void* const block = TakeFrom(&file, units); block != nullptr) return block;
      }
    }
    if (unused == nullptr) return nullptr;
    uint8_t* const begin = MapFile(units <= kUnits ? kUnits * kUnit : bytes);
    if (begin == nullptr) return nullptr;
    unused->begin = begin;
    unused->whole = units <= kUnits ? 0 : bytes;
    end_ = std::max(end_, static_cast<size_t>(unused - files_.data()) + 1);
    if (unused->whole == 0) return TakeFrom(unused, units);
    ++blocks_;
    return begin;
  }

  /// The block's bytes; 0: there is no such block.
  size_t Give(void* block) {
    if (blocks_.load(std::memory_order_acquire) == 0) return 0;  // as long as memory suffices
    const std::lock_guard lock(mutex_);
    auto* const at = static_cast<uint8_t*>(block);
    for (size_t f = 0; f < end_; ++f) {
      File& file = files_[f];
      const size_t file_bytes = file.whole != 0 ? file.whole : kUnits * kUnit;
      if (file.begin == nullptr || at < file.begin || at >= file.begin + file_bytes) continue;
      size_t bytes = file.whole;
      if (bytes == 0) {
        uint16_t& units = file.units[static_cast<size_t>(at - file.begin) / kUnit];
        file.taken -= units;
        bytes = std::exchange(units, uint16_t{0}) * kUnit;
        if (bytes == 0) return 0;
      }
      if (file.taken == 0) {
        munmap(file.begin, file_bytes);
        file.begin = nullptr;
      }
      --blocks_;
      return bytes;
    }
    return 0;
  }

 private:
  struct File {
    uint8_t* begin = nullptr;
    size_t whole = 0;  ///< bytes of the one block of a file of its own; 0: it is cut into units
    size_t taken = 0;  ///< units
    /// By unit: how many units the block that begins there has; 0 if none does.
    std::array<uint16_t, kUnits> units{};
  };

  /// The first units in a row that are free; nullptr if there are not as many.
  void* TakeFrom(File* file, size_t units) {
    if (kUnits - file->taken < units) return nullptr;
    for (size_t first = 0, at = 0; at < kUnits;) {
      if (file->units[at] != 0) {
        at += file->units[at];
        first = at;
      } else if (++at - first == units) {
        file->units[first] = static_cast<uint16_t>(units);
        file->taken += units;
        ++blocks_;
        return file->begin + first * kUnit;
      }
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::atomic<size_t> blocks_{0};
  size_t end_ = 0;  ///< of the files that have been used
  std::array<File, kMost> files_{};
};

constinit Files files;

}  // namespace

void SetTemporaryLimit(uint64_t bytes) {
  limit = bytes;
  refusal = TemporaryRefusal::kNone;
}
uint64_t TemporaryLimit() { return limit; }
uint64_t TemporaryUsed() { return used; }
uint64_t TemporaryPeak() { return peak; }
void ResetTemporaryPeak() { peak = used.load(); }
TemporaryRefusal LastTemporaryRefusal() { return refusal; }

void* MapTemporary(size_t bytes) {
  if (bytes == 0 || bytes > PTRDIFF_MAX - Files::kUnit) return nullptr;
  bytes = Files::Rounded(bytes);
  const uint64_t all = used.fetch_add(bytes) + bytes;
  const bool allowed = all <= limit.load();
  void* const block = allowed ? files.Take(bytes) : nullptr;
  if (block == nullptr) {
    refusal = allowed ? TemporaryRefusal::kRoom : TemporaryRefusal::kLimit;
    used -= bytes;
    return nullptr;
  }
  for (uint64_t before = peak.load(); before < all && !peak.compare_exchange_weak(before, all);) {
  }
  return block;
}

bool UnmapTemporary(void* block) noexcept {
  if (reinterpret_cast<uintptr_t>(block) % kPageBytes != 0) return false;  // by far the most
  const size_t bytes = files.Give(block);
  used -= bytes;
  return bytes != 0;
}

}  // namespace tessera
