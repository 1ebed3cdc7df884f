// The tablet files that several databases of one process have open: those of one directory have one object for a file, and
// with it one mapping, one check of its chunks and one place in the caches of columns.
//
// A file that one of them drops stays on the disk as long as another has it, which is to its next statement; the next writer
// after that removes it.
//
// Start at: SharedFiles::Open. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tablet/files/tablet_file.h"

namespace tessera {

class SharedFiles {
 public:
  /// As OpenTablet(): the object that there is, if it is of the same file and reads these types.
  std::shared_ptr<const TabletFile> Open(const std::string& directory, const TabletIdentity& identity,
                                         std::shared_ptr<const TabletFile::Types> types);

 private:
  std::mutex mutex_;
  /// By the directory and the identifier in the header.
  std::map<std::pair<std::string, int64_t>, std::weak_ptr<const TabletFile>> files_;
  size_t looked_at_ = 64;  ///< as many files may there be before those that are gone are forgotten
};

}  // namespace tessera
