// A directory that is there whole or not at all: it is filled under another name beside its own, which it gets at the end,
// when the disk has all that is in it.
//
// Start at: NewDirectory::Make. Any thread, one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera {

class NewDirectory {
 public:
  /// Errors: there is something at `path` that is not an empty directory; kIo, it cannot be made.
  static Result<NewDirectory> Make(const std::string& path);
  NewDirectory(NewDirectory&& other) noexcept;
  NewDirectory& operator=(NewDirectory&&) = delete;
  /// Removes it with all that is in it, unless Commit() succeeded.
  ~NewDirectory();

  /// Where it is until Commit().
  const std::string& path() const { return temporary_; }
  /// A file in it, synced.
  Status WriteFile(const std::string& name, std::string_view text) const;
  /// The same with the bytes of another file, which has `bytes` of them, or more if it may. Errors: kCorrupt, it has not;
  /// kCancelled.
  Status CopyFile(const std::string& from, const std::string& name, uint64_t bytes, bool may_be_longer) const;
  /// Gives it its name. REQUIRES: its files are synced.
  Status Commit();

 private:
  NewDirectory() = default;

  std::string path_;       ///< absolute, without a slash at its end
  std::string temporary_;  ///< "": it has its name
};

}  // namespace tessera
