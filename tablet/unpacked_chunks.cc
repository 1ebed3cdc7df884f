#include "tablet/unpacked_chunks.h"

#include <iterator>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/memory_budget.h"

namespace tessera {
namespace {

constexpr uint64_t kShareOfMemory = 4;

class KeptChunks {
  using Chunks = std::list<std::shared_ptr<UnpackedChunk>>;

 public:
  void Keep(const std::shared_ptr<UnpackedChunk>& chunk) {
    const uint64_t limit = MemoryLimit();
    const uint64_t most = (limit == UINT64_MAX ? UsableMemory() : limit) / kShareOfMemory;
    Chunks gone;  // freed without the lock
    std::lock_guard lock(mutex_);
    const auto [place, is_new] = places_.try_emplace(chunk.get());
    if (is_new) {
      chunks_.push_front(chunk);
      place->second = chunks_.begin();
      bytes_ += chunk->bytes;
    } else {
      chunks_.splice(chunks_.begin(), chunks_, place->second);
    }
    Trim(most, &gone);
  }

  void Forget(const UnpackedChunk* chunk) {
    Chunks gone;
    std::lock_guard lock(mutex_);
    const auto place = places_.find(chunk);
    if (place != places_.end()) Drop(place->second, &gone);
  }

 private:
  void Trim(uint64_t bytes, Chunks* gone) {
    for (auto c = chunks_.end(); c != chunks_.begin() && bytes_ > bytes;) {
      --c;
      // (A chunk that somebody holds would not give its memory back.)
      if (c->use_count() > 1) continue;
      const auto next = std::next(c);
      Drop(c, gone);
      c = next;
    }
  }

  void Drop(Chunks::iterator chunk, Chunks* gone) {
    bytes_ -= (*chunk)->bytes;
    places_.erase(chunk->get());
    gone->splice(gone->begin(), chunks_, chunk);
  }

  std::mutex mutex_;
  Chunks chunks_;  ///< most recently used first
  std::unordered_map<const UnpackedChunk*, Chunks::iterator> places_;
  uint64_t bytes_ = 0;
};

/// Never destroyed: tablets may be, after main() has returned.
KeptChunks& Kept() {
  static KeptChunks* const kept = new KeptChunks;
  return *kept;
}

}  // namespace

void KeepUnpacked(const std::shared_ptr<UnpackedChunk>& chunk) { Kept().Keep(chunk); }
void ForgetUnpacked(const std::shared_ptr<UnpackedChunk>& chunk) {
  if (chunk != nullptr) Kept().Forget(chunk.get());
}

}  // namespace tessera
