// Where rows go whose key is heavy, in place of the rank of their key. Private to vm/.
//
// Start at: KeyRoutes. Filled between sections, by the thread of the run; read by its workers.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace tessera::vm {

enum class KeyRoute : uint8_t {
  kOwner,  ///< to the rank of the key
  kStay,   ///< nowhere
  kDeal,   ///< to the ranks one by one
  kAll,    ///< to every rank
};

/// By the hash of a key.
class KeyRoutes {
 public:
  bool empty() const { return routes_.empty(); }
  size_t size() const { return routes_.size(); }
  void Set(uint64_t hash, KeyRoute route) {
    routes_[hash] = route;
    few_ |= uint64_t{1} << (hash >> 58);
  }
  KeyRoute Of(uint64_t hash) const {
    if ((few_ >> (hash >> 58) & 1) == 0) return KeyRoute::kOwner;  // most keys, without a look-up
    const auto found = routes_.find(hash);
    return found == routes_.end() ? KeyRoute::kOwner : found->second;
  }

 private:
  std::unordered_map<uint64_t, KeyRoute> routes_;
  uint64_t few_ = 0;  ///< a bit for the first bits of each hash
};

/// Of one join whose sides are exchanged.
struct JoinRoutes {
  KeyRoutes build, probe;
};

}  // namespace tessera::vm
