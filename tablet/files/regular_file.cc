// open() and what it opened.
#include "tablet/files/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "tablet/files/io_error.h"

namespace tessera {
namespace {

Status NotAFile(const std::string& path) {
  return {ErrorCode::kCorrupt, "\"" + path + "\" is not a file",
          "A file of the database belongs there: move away what is in its place."};
}

}  // namespace

Result<FileDescriptor> OpenRegularFile(const std::string& path, int flags) {
  // O_NONBLOCK has no meaning for a regular file; without it the open of a FIFO waits for its other end.
  FileDescriptor file(open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  if (!file.valid()) {
    const int error = errno;
    // A FIFO without a reader, a directory, a link, a device without a driver.
    if (error == ENXIO || error == EISDIR || error == ELOOP || error == ENODEV) return NotAFile(path);
    return IoError("cannot open", path, error);
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0) return IoError("cannot read", path, errno);
  if (!S_ISREG(info.st_mode)) return NotAFile(path);
  return file;
}

Status CheckRegularFile(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) return S_ISREG(info.st_mode) ? Status() : NotAFile(path);
  return errno == ENOENT ? Status() : IoError("cannot read", path, errno);
}

}  // namespace tessera
