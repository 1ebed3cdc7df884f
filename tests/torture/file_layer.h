// Every call with which this process, SQLite included, opens or changes a file, maps one or starts a thread, handed to a
// FileLayer that can let it through, refuse it or write it down. The calls of the C library are defined here once more;
// those of a program come before the library's, also for the shared libraries that it loads. So the code under test is
// the one that users run.
//
// Start at: FileLayer, SetFileLayer.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

namespace tessera {

enum class FileCallKind { kOpen, kWrite, kSync, kRename, kUnlink, kMakeDirectory, kTruncate, kMap, kThread };
inline constexpr int kFileCallKinds = 9;
/// "open", "write", ...
const char* NameOf(FileCallKind kind);

struct FileCall {
  FileCallKind kind;
  int fd = -1;                  ///< kWrite, kSync, kTruncate, kMap
  const char* path = "";        ///< kOpen, kRename, kUnlink, kMakeDirectory
  const char* to = "";          ///< kRename
  int flags = 0;                ///< kOpen
  off_t offset = 0;             ///< kWrite; kTruncate: the new size
  std::string_view bytes = {};  ///< kWrite
};

class FileLayer {
 public:
  virtual ~FileLayer() = default;
  /// Returns what the call returns: `system()`, or -1 with errno set (kThread returns the error itself). Of a write,
  /// `system` takes how many bytes to write. Any thread.
  virtual long Call(const FileCall& call, const std::function<long(size_t)>& system) = 0;
};

/// nullptr, as at first: every call goes through. The layer's own calls do.
void SetFileLayer(FileLayer* layer);

}  // namespace tessera
