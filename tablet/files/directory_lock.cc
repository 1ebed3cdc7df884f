// flock() on the two lock files.
#include "tablet/files/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/interrupt.h"
#include "tablet/files/io_error.h"
#include "tablet/files/regular_file.h"

namespace tessera {
namespace {

constexpr char kWriterFile[] = "/writer.lock";
constexpr char kReadersFile[] = "/readers.lock";

/// 0 or an errno. `operation` as of flock().
int Flock(int fd, int operation) {
  while (flock(fd, operation) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// "process 123", from what the holder wrote.
std::string HolderOf(int fd) {
  char text[24];
  const ssize_t size = pread(fd, text, sizeof text, 0);
  std::string digits;
  for (ssize_t i = 0; i < size && text[i] >= '0' && text[i] <= '9'; ++i) digits += text[i];
  return digits.empty() ? "another process" : "process " + digits;
}

}  // namespace

Result<WriterLock> WriterLock::Acquire(const std::string& directory, const std::string& name, int timeout_ms) {
  const std::string path = directory + kWriterFile;
  TESSERA_ASSIGN(FileDescriptor file, OpenRegularFile(path, O_RDWR | O_CREAT));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const int error = Flock(file.get(), LOCK_EX | LOCK_NB);
    if (error == 0) break;
    if (error != EWOULDBLOCK) return IoError("cannot lock", path, error);
    if (std::chrono::steady_clock::now() >= deadline) {
      return Status(ErrorKind::kSerializationFailure,
                    "database \"" + name + "\" is being written by " + HolderOf(file.get()));
    }
    if (Interrupted()) return Cancelled();
    // flock() has no timeout; polling this often costs little compared with the writes that it waits for.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  // If the number cannot be written, another process's message only lacks it. If it is there, it is not written again: a
  // file that was cut and written goes to the disk when it is closed, and the next cut waits for that.
  const std::string pid = std::to_string(getpid()) + "\n";
  char there[24];
  const ssize_t size = pread(file.get(), there, sizeof there, 0);
  const bool is_there = size > 0 && std::string_view(there, static_cast<size_t>(size)) == pid;
  if (!is_there && ftruncate(file.get(), 0) == 0) (void)!pwrite(file.get(), pid.data(), pid.size(), 0);
  return WriterLock(std::move(file));
}

Result<std::shared_ptr<ReaderLock>> ReaderLock::Open(const std::string& directory, bool read_only) {
  const std::string path = directory + kReadersFile;
  if (read_only && access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    return std::shared_ptr<ReaderLock>(new ReaderLock(FileDescriptor(), true));
  }
  TESSERA_ASSIGN(FileDescriptor file, OpenRegularFile(path, read_only ? O_RDONLY : O_RDWR | O_CREAT));
  return std::shared_ptr<ReaderLock>(new ReaderLock(std::move(file), true));
}

std::shared_ptr<ReaderLock> ReaderLock::OfOneProcess() {
  return std::shared_ptr<ReaderLock>(new ReaderLock(FileDescriptor(), false));
}

Result<std::shared_ptr<const void>> ReaderLock::Hold() {
  struct Holder {
    explicit Holder(std::shared_ptr<ReaderLock> reader) : lock(std::move(reader)) {}
    ~Holder() {
      if (holds) lock->Drop();
    }
    const std::shared_ptr<ReaderLock> lock;
    bool holds = false;
  };
  // Made before the mutex is taken: what takes it again must not be destroyed here if memory runs out.
  const auto holder = std::make_shared<Holder>(shared_from_this());
  std::lock_guard lock(mutex_);
  if (holders_ == 0 && file_.valid()) {
    // A remover holds its exclusive lock for the time of a few unlink() calls, so this wait is short.
    if (const int error = Flock(file_.get(), LOCK_SH)) return IoError("cannot lock", kReadersFile + 1, error);
  }
  ++holders_;
  holder->holds = true;
  return std::shared_ptr<const void>(holder);
}

void ReaderLock::Drop() {
  std::lock_guard lock(mutex_);
  if (--holders_ == 0 && file_.valid()) (void)Flock(file_.get(), LOCK_UN);
}

bool ReaderLock::WhileAlone(const std::function<void()>& remove) {
  std::lock_guard lock(mutex_);
  if (!is_shared_) {
    remove();
    return true;
  }
  if (!file_.valid()) return false;
  struct Restored {
    ~Restored() { (void)Flock(descriptor, operation); }
    const int descriptor, operation;
  } restored{file_.get(), holders_ > 0 ? LOCK_SH : LOCK_UN};
  if (Flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return false;
  remove();
  return true;
}

}  // namespace tessera
