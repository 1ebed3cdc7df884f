// What tells a file from another one of its name, and from what it was before.
//
// Start at: IdentifyFile. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace tessera {

struct FileIdentity {
  std::string path;
  uint64_t bytes = 0, device = 0, inode = 0;
  int64_t written = 0;  ///< nanoseconds since 1970
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Errors: kIo, it is not there or no regular file.
Result<FileIdentity> IdentifyFile(const std::string& path);

}  // namespace tessera
