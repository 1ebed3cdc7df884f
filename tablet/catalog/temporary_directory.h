// The directory of a database that lives as long as its session: tessera-XXXXXX in $TMPDIR, or else in /tmp. Its file
// owner.lock is locked with flock() as long as its process lives. So those whose process was killed can be told, and
// the next process that makes one, or starts the shell, removes them.
//
// Start at: TemporaryDirectory::Make. Any thread.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tablet/files/file_descriptor.h"

namespace tessera {

class TemporaryDirectory {
 public:
  /// Makes one that this user alone may enter, after RemoveAbandonedDirectories. Errors: kIo, kResource.
  static Result<std::unique_ptr<TemporaryDirectory>> Make();
  /// Removes it with all that is in it.
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  TemporaryDirectory(std::string path, FileDescriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const FileDescriptor lock_;
};

/// Removes the directories of this user that are called as ours, were made on this machine, are not locked, and hold
/// nothing but files of a database. One without a lock file may be about to get it: only an empty one that is an hour old goes.
void RemoveAbandonedDirectories();

}  // namespace tessera
