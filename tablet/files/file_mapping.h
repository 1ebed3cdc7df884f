// A file mapped for reading, whose pages may go away: another program cuts the file short, or the disk cannot read them.
// The kernel answers a read of such a page with SIGBUS. A handler puts zeros in its place and notes the loss, so that the
// reader goes on, with wrong values, to where it asks lost().
//
// What is read must therefore be harmless when bytes of it, up to the end of the file, turn into zeros at any time.
//
// The first mapping installs the handler; a SIGBUS anywhere else goes to the one that was there before.
// Start at: FileMapping::Map. Any thread.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <span>
#include <utility>

namespace tessera {

class FileMapping {
 public:
  FileMapping() = default;
  FileMapping(FileMapping&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  FileMapping& operator=(FileMapping&& other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~FileMapping();

  /// 0 or an errno. REQUIRES: nothing is mapped; bytes > 0; `offset` begins a page.
  int Map(int fd, uint64_t bytes, uint64_t offset = 0);
  /// nullptr before Map().
  const uint8_t* data() const;
  /// Whether its pages are those of the file. (Where a file system has no shared mappings, they are copies once they are
  /// pinned.)
  bool is_shared() const;
  /// Some of what was read since Map() may have been zeros instead of the file's bytes.
  bool lost() const;
  /// Whether any mapping of this process ever was.
  static bool any_lost();

 private:
  struct Entry;
  struct Registry;
  static void OnSigbus(int number, siginfo_t* info, void* context);
  Entry* entry_ = nullptr;
};

/// Reads the last byte of a mapping: what a file that became shorter has lost up to there is noticed.
inline void TouchLast(std::span<const uint8_t> mapping) {
  if (!mapping.empty()) (void)*static_cast<const volatile uint8_t*>(&mapping.back());
}

}  // namespace tessera
