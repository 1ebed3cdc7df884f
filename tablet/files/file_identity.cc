#include "tablet/files/file_identity.h"

#include <sys/stat.h>

#include <cerrno>

#include "tablet/files/io_error.h"

namespace tessera {

Result<FileIdentity> IdentifyFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return IoError("cannot open", path, errno);
  if (S_ISDIR(info.st_mode)) return IoError("cannot read", path, EISDIR);
  FileIdentity identity;
  identity.path = path;
  identity.bytes = static_cast<uint64_t>(info.st_size);
  identity.device = static_cast<uint64_t>(info.st_dev);
  identity.inode = static_cast<uint64_t>(info.st_ino);
  identity.written = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return identity;
}

}  // namespace tessera
