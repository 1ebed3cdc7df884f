// The strings of queries: a text value in a register is the identifier that the pool gave the string. Equal strings have
// equal identifiers, so grouping, joining and comparing for equality are done on integers. A pool serves one run, or
// all runs of a program that is kept: with strings of others among them, the identifiers of a column would lie far apart.
//
// Start at: Intern, Get. Thread-safe; strings are never removed while the pool lives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "vm/rows/known_dictionaries.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

class StringPool {
 public:
  StringPool();
  ~StringPool();
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;

  /// The identifier of `text`: 0, 1, 2 ... in the order in which strings are first interned. The bytes are copied.
  int64_t Intern(std::string_view text);
  /// The same for many: ids[i] is the identifier of texts[i]. Threads that do this at the same time wait for each other
  /// much less than if each asked for string after string. REQUIRES: as many ids as texts.
  void Intern(std::span<const std::string_view> texts, int64_t* ids);
  /// The same by all threads of `threads`, which may be nullptr. Errors: as ThreadPool::Run.
  Status Intern(ThreadPool* threads, std::span<const std::string_view> texts, int64_t* ids);
  /// The string of an identifier that Intern returned, valid as long as the pool. Any other value gives "".
  std::string_view Get(int64_t id) const;
  /// Identifiers are less than this. Some may stand for no string: Get gives "".
  size_t count() const;
  /// Bytes of memory that it takes, but for the first few of each kind.
  uint64_t bytes() const;
  /// Dictionaries whose entries have been interned.
  KnownDictionaries& dictionaries() { return dictionaries_; }

 private:
  struct Entries;
  struct Shard;
  static constexpr int kShards = 64;
  std::unique_ptr<Entries> entries_;
  std::unique_ptr<Shard[]> shards_;
  std::atomic<size_t> turn_{0};  ///< where the next caller with many strings begins
  KnownDictionaries dictionaries_;
};

}  // namespace tessera::vm
