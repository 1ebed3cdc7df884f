#include "tablet/files/replaced_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "base/interruptible_io.h"
#include "tablet/files/io_error.h"

namespace tessera {

ReplacedFile::~ReplacedFile() {
  if (file_.valid() && !temporary_path_.empty()) unlink(temporary_path_.c_str());
}

Status ReplacedFile::Open(const std::string& file) {
  path_ = file;
  // The name of a link stays a link: what it points to is replaced.
  if (char resolved[PATH_MAX]; realpath(file.c_str(), resolved) != nullptr) path_ = resolved;
  struct stat info;
  const bool exists = stat(path_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return IoError("cannot write", file, EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    // A pipe or a terminal cannot be replaced.
    file_ = FileDescriptor(OpenInterruptible(path_.c_str(), O_WRONLY | O_CLOEXEC));
    return file_.valid() ? Status() : IoError("cannot write", file, errno);
  }
  temporary_path_ = path_ + ".writing-" + std::to_string(getpid());
  const mode_t mode = exists ? info.st_mode & 0777 : 0666;
  file_ = FileDescriptor(open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  return file_.valid() ? Status() : IoError("cannot create", file, errno);
}

Status ReplacedFile::Commit() {
  if (!file_.valid()) return {ErrorCode::kInternal, "Commit() was called twice"};
  if (!temporary_path_.empty()) {
    if (fsync(file_.get()) != 0) return IoError("cannot sync", temporary_path_, errno);
    if (rename(temporary_path_.c_str(), path_.c_str()) != 0) return IoError("cannot create", path_, errno);
    temporary_path_.clear();
  }
  if (close(file_.Release()) != 0) return IoError("cannot write", path_, errno);
  return {};
}

}  // namespace tessera
