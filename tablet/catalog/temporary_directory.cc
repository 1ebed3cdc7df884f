// A lock for as long as the process lives, and what is done with directories that have lost it.
#include "tablet/catalog/temporary_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/host_name.h"
#include "tablet/files/file_names.h"
#include "tablet/files/io_error.h"

namespace tessera {
namespace {

constexpr std::string_view kPrefix = "tessera-", kPattern = "XXXXXX";
constexpr time_t kLongAgo = 3600;  // seconds; the lock file comes microseconds after the directory
constexpr int kAttempts = 16;

/// The names in a directory, without "." and "..".
std::vector<std::string> NamesIn(int directory) {
  std::vector<std::string> names;
  const int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = copy >= 0 ? fdopendir(copy) : nullptr;
  if (entries == nullptr) {
    if (copy >= 0) close(copy);
    return names;
  }
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(entries);
  return names;
}

std::string Parent() {
  const char* const named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

Status CannotCreate(const std::string& path, int error) {
  const Status status = IoError("cannot create", path, error);
  return {status.kind(), status.message(),
          "Let TMPDIR name a directory that can be written to, or name one for the database."};
}

bool IsOneOfOurs(std::string_view name) {
  return name.size() == kPrefix.size() + kPattern.size() && name.starts_with(kPrefix);
}

/// The machine that a lock is held on: on a disk of the network there may be locks that others do not see.
bool IsOfThisMachine(int lock) {
  const std::string here = HostName();
  std::string there(here.size() + 1, 0);
  const ssize_t size = pread(lock, there.data(), there.size(), 0);
  return size >= 0 && std::string_view(there).substr(0, static_cast<size_t>(size)) == here;
}

/// `name` in `parent`, if it is abandoned. Everything is opened relative to what was looked at, and no link is followed.
void RemoveIfAbandoned(int parent, const std::string& name) {
  const FileDescriptor directory(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!directory.valid() || fstat(directory.get(), &info) != 0 || info.st_uid != geteuid()) return;
  const FileDescriptor lock(
      openat(directory.get(), kOwnerFile, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!lock.valid()) {
    if (errno == ENOENT && std::time(nullptr) - info.st_mtime > kLongAgo) unlinkat(parent, name.c_str(), AT_REMOVEDIR);
    return;
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0 || !IsOfThisMachine(lock.get())) return;
  std::vector<std::string> files = NamesIn(directory.get());
  std::erase(files, kOwnerFile);
  if (!std::all_of(files.begin(), files.end(), IsDatabaseFile)) return;
  for (const std::string& file : files) unlinkat(directory.get(), file.c_str(), 0);
  // Last, so that what is interrupted here is found again.
  unlinkat(directory.get(), kOwnerFile, 0);
  unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

void RemoveAbandonedDirectories() {
  const FileDescriptor directory(open(Parent().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return;
  for (const std::string& name : NamesIn(directory.get())) {
    if (IsOneOfOurs(name)) RemoveIfAbandoned(directory.get(), name);
  }
}

Result<std::unique_ptr<TemporaryDirectory>> TemporaryDirectory::Make() {
  // Absolute: the process may change its working directory.
  std::error_code error;
  const std::string parent = std::filesystem::absolute(Parent(), error).string();
  if (error) return IoError("cannot open", Parent(), error.value());
  RemoveAbandonedDirectories();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = parent + "/" + std::string(kPrefix) + std::string(kPattern);
    if (mkdtemp(path.data()) == nullptr) return CannotCreate(path, errno);  // with mode 0700
    const std::string file = path + "/" + kOwnerFile;
    FileDescriptor lock(open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock.valid()) {
      const int why = errno;
      rmdir(path.c_str());
      return CannotCreate(file, why);
    }
    // Another start may have seen the file before it was locked; then that one removes the directory, or has. (Where there
    // are no locks, others get none either.)
    const bool taken = flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat info {};
    if (taken || fstat(lock.get(), &info) != 0 || info.st_nlink == 0) continue;
    const std::string here = HostName();
    (void)!pwrite(lock.get(), here.data(), here.size(), 0);  // else it is never removed by others, which is less harm
    return std::unique_ptr<TemporaryDirectory>(new TemporaryDirectory(std::move(path), std::move(lock)));
  }
  return Status(ErrorCode::kIo, "cannot create a directory in \"" + parent + "\": each was removed by other processes");
}

TemporaryDirectory::~TemporaryDirectory() {
  try {
    std::error_code error;
    const std::string lock = path_ + "/" + kOwnerFile;
    for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
      if (entry.path() != lock) std::filesystem::remove_all(entry.path(), error);
    }
    std::filesystem::remove_all(path_, error);
  } catch (...) {  // no memory: the next start removes it
  }
}

}  // namespace tessera
