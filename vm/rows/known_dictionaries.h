// The identifiers that the entries of dictionaries have in a StringPool. A column of a star schema has the same dictionary
// in most tablets and in query after query, and to intern a thousand entries takes as long as a short query.
//
// Start at: Find, Keep. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::vm {

/// Entry i lies from offsets[i] to offsets[i + 1].
struct DictionaryEntries {
  std::span<const uint64_t> offsets;  ///< one more than there are entries
  std::string_view text;              ///< of all of them, from offsets[0] on
};

class KnownDictionaries {
 public:
  /// By entry, and a 0 after the last.
  using Ids = std::shared_ptr<const std::vector<int64_t>>;

  /// What Keep got for the same entries; nullptr: nothing.
  Ids Find(const DictionaryEntries& entries) const;
  /// Small ones would not pay, and large ones take memory: they are not kept.
  void Keep(const DictionaryEntries& entries, const Ids& ids);
  /// Bytes of memory that it takes.
  uint64_t bytes() const;

 private:
  struct Known {
    uint64_t hash;
    std::vector<uint64_t> offsets;
    std::vector<char> text;
    Ids ids;
  };
  const Known* FindLocked(uint64_t hash, const DictionaryEntries& entries) const;

  mutable std::mutex mutex_;
  std::vector<Known> known_;
  uint64_t bytes_ = 0;
};

}  // namespace tessera::vm
