#include "tablet/files/new_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/interruptible_io.h"
#include "tablet/files/io_error.h"
#include "tablet/files/regular_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 20;

Status CheckPlace(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return errno == ENOENT ? Status() : IoError("cannot create", path, errno);
  std::error_code error;
  if (S_ISDIR(info.st_mode) && fs::is_empty(path, error) && !error) return {};
  return {ErrorCode::kIo, "\"" + path + "\" already exists", "Name a directory that is not there yet, or is empty."};
}

Status SyncDirectory(const std::string& path) {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return IoError("cannot open", path, errno);
  // Some file systems cannot sync directories and say EINVAL; they have nothing to wait for.
  return fsync(fd.get()) == 0 || errno == EINVAL ? Status() : IoError("cannot sync", path, errno);
}

Status WriteAll(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = WriteInterruptible(fd, bytes.data(), bytes.size());
    if (written < 0) return IoError("cannot write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

/// Waits until the disk has the file.
Status Finish(FileDescriptor file, const std::string& path) {
  if (fsync(file.get()) != 0) return IoError("cannot sync", path, errno);
  return close(file.Release()) == 0 ? Status() : IoError("cannot write", path, errno);
}

}  // namespace

Result<NewDirectory> NewDirectory::Make(const std::string& path) {
  std::error_code error;
  NewDirectory made;
  made.path_ = fs::absolute(path, error).lexically_normal().string();
  if (path.empty() || error) return IoError("cannot create", path, path.empty() ? ENOENT : error.value());
  while (made.path_.size() > 1 && made.path_.back() == '/') made.path_.pop_back();
  TESSERA_TRY(CheckPlace(made.path_));
  std::string temporary = made.path_ + ".writing-XXXXXX";
  if (mkdtemp(temporary.data()) == nullptr) return IoError("cannot create", made.path_, errno);
  made.temporary_ = std::move(temporary);
  // As mkdir() would make it.
  const mode_t mask = umask(0);
  umask(mask);
  if (chmod(made.temporary_.c_str(), 0777 & ~mask) != 0) return IoError("cannot create", made.path_, errno);
  return made;
}

NewDirectory::NewDirectory(NewDirectory&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

NewDirectory::~NewDirectory() {
  if (temporary_.empty()) return;
  try {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  } catch (...) {  // no memory: its name says what it is
  }
}

Status NewDirectory::WriteFile(const std::string& name, std::string_view text) const {
  const std::string path = temporary_ + "/" + name;
  TESSERA_ASSIGN(FileDescriptor file, OpenRegularFile(path, O_WRONLY | O_CREAT | O_EXCL));
  TESSERA_TRY(WriteAll(file.get(), path, text));
  return Finish(std::move(file), path);
}

Status NewDirectory::CopyFile(const std::string& from, const std::string& name, uint64_t bytes,
                              bool may_be_longer) const {
  const std::string path = temporary_ + "/" + name;
  TESSERA_ASSIGN(const FileDescriptor source, OpenRegularFile(from, O_RDONLY));
  TESSERA_ASSIGN(FileDescriptor file, OpenRegularFile(path, O_WRONLY | O_CREAT | O_EXCL));
  std::string piece(kPieceBytes, '\0');
  uint64_t copied = 0;
  for (;;) {
    if (Interrupted()) return Cancelled();
    const ssize_t read = ReadInterruptible(source.get(), piece.data(), piece.size());
    if (read < 0) return IoError("cannot read", from, errno);
    if (read == 0) break;
    TESSERA_TRY(WriteAll(file.get(), path, std::string_view(piece).substr(0, static_cast<size_t>(read))));
    copied += static_cast<uint64_t>(read);
  }
  if (may_be_longer ? copied < bytes : copied != bytes)
    return CorruptTablet(from, "it has " + std::to_string(copied) + " bytes, not " + std::to_string(bytes));
  return Finish(std::move(file), path);
}

Status NewDirectory::Commit() {
  TESSERA_TRY(SyncDirectory(temporary_));
  // (The name of an empty directory is taken over; another process may have put something there by now.)
  TESSERA_TRY(CheckPlace(path_));
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return IoError("cannot create", path_, errno);
  temporary_ = path_;  // it goes after all if the name is not on the disk: an error leaves nothing
  // A parent that cannot be read cannot be synced either.
  const std::string parent = fs::path(path_).parent_path().string();
  if (access(parent.c_str(), R_OK) == 0) TESSERA_TRY(SyncDirectory(parent));
  temporary_.clear();
  return {};
}

}  // namespace tessera
