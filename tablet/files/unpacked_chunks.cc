#include "tablet/files/unpacked_chunks.h"

#include <atomic>
#include <iterator>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/memory_budget.h"

namespace tessera {
namespace {

constexpr uint64_t kShareOfMemory = 4;

/// Bytes that may be kept.
uint64_t Budget() {
  const uint64_t limit = MemoryLimit();
  return (limit == UINT64_MAX ? UsableMemory() : limit) / kShareOfMemory;
}

class KeptChunks {
  struct Kept {
    std::shared_ptr<UnpackedChunk> chunk;
    uint64_t hits = 0;
  };
  using Chunks = std::list<Kept>;

 public:
  void Keep(const std::shared_ptr<UnpackedChunk>& chunk) {
    const uint64_t most = Budget();
    Chunks gone;  // freed without the lock
    std::lock_guard lock(mutex_);
    const auto [place, is_new] = places_.try_emplace(chunk.get());
    if (is_new) {
      chunks_.push_front({chunk});
      place->second = chunks_.begin();
      counts_.bytes += chunk->bytes;
      counts_.bytes_in += chunk->bytes;
      ++counts_.misses;
    } else {
      chunks_.splice(chunks_.begin(), chunks_, place->second);
      ++place->second->hits;
      ++counts_.hits;
    }
    counts_.evictions += Trim(most, &gone);
  }

  bool HasRoom(uint64_t bytes) {
    const uint64_t most = Budget();
    std::lock_guard lock(mutex_);
    return counts_.bytes + bytes <= most;
  }

  void Forget(const UnpackedChunk* chunk) {
    Chunks gone;
    std::lock_guard lock(mutex_);
    const auto place = places_.find(chunk);
    if (place != places_.end()) Drop(place->second, &gone);
  }

  CacheReport Report() {
    std::lock_guard lock(mutex_);
    CacheReport report = counts_;
    report.name = "host";
    report.budget = Budget();
    for (const Kept& kept : chunks_) {
      const std::shared_ptr<const Tablet> tablet = kept.chunk->tablet.lock();
      if (tablet != nullptr) report.columns.push_back({tablet, kept.chunk->column, kept.chunk->bytes, kept.hits});
    }
    return report;
  }

  void DropAll() {
    Chunks gone;
    std::lock_guard lock(mutex_);
    Trim(0, &gone);
    ++epoch_;
  }

  uint64_t epoch() const { return epoch_; }

 private:
  /// Returns how many went.
  uint64_t Trim(uint64_t bytes, Chunks* gone) {
    uint64_t dropped = 0;
    for (auto c = chunks_.end(); c != chunks_.begin() && counts_.bytes > bytes;) {
      --c;
      // (A chunk that somebody holds would not give its memory back.)
      if (c->chunk.use_count() > 1) continue;
      const auto next = std::next(c);
      Drop(c, gone);
      ++dropped;
      c = next;
    }
    return dropped;
  }

  void Drop(Chunks::iterator chunk, Chunks* gone) {
    counts_.bytes -= chunk->chunk->bytes;
    places_.erase(chunk->chunk.get());
    gone->splice(gone->begin(), chunks_, chunk);
  }

  std::mutex mutex_;
  Chunks chunks_;  ///< most recently used first
  std::unordered_map<const UnpackedChunk*, Chunks::iterator> places_;
  CacheReport counts_;  ///< without columns
  std::atomic<uint64_t> epoch_{1};
};

/// Never destroyed: tablets may be, after main() has returned.
KeptChunks& AllKept() {
  static KeptChunks* const kept = new KeptChunks;
  return *kept;
}

}  // namespace

bool HasRoomForUnpacked(uint64_t bytes) { return AllKept().HasRoom(bytes); }
void KeepUnpacked(const std::shared_ptr<UnpackedChunk>& chunk) { AllKept().Keep(chunk); }
void ForgetUnpacked(const std::shared_ptr<UnpackedChunk>& chunk) {
  if (chunk != nullptr) AllKept().Forget(chunk.get());
}
CacheReport UnpackedReport() { return AllKept().Report(); }
void DropUnpacked() { AllKept().DropAll(); }
uint64_t UnpackedEpoch() { return AllKept().epoch(); }

}  // namespace tessera
