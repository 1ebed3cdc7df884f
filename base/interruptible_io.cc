#include "base/interruptible_io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/interrupt.h"

namespace tessera {
namespace {

/// How often the cancel flag is looked at, because no signal announces it: milliseconds.
constexpr int kPollInterval = 20;

/// Waits until reading or writing does not block. False with errno.
bool Wait(int fd, short events) {
  for (;;) {
    if (Interrupted()) {
      errno = ECANCELED;
      return false;
    }
    pollfd ready{fd, events, 0};
    const int n = poll(&ready, 1, kPollInterval);
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

/// Writes as much as what is ready takes without blocking: by one call for all, if it can, because some virtual machines take
/// microseconds for a call. (A terminal may block although it was ready.)
ssize_t WriteReady(int fd, const void* bytes, size_t size) {
  constexpr unsigned kMemoryDevices = 1;  // /dev/null
  struct stat info {};
  const bool is_known = fstat(fd, &info) == 0;
  if (is_known && (S_ISREG(info.st_mode) || (S_ISCHR(info.st_mode) && major(info.st_rdev) == kMemoryDevices)))
    return write(fd, bytes, size);
  if (is_known && S_ISFIFO(info.st_mode)) {
    iovec all{const_cast<void*>(bytes), size};
    const ssize_t n = pwritev2(fd, &all, 1, -1, RWF_NOWAIT);
    if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EPERM)) return n;
    // Pipes know RWF_NOWAIT since Linux 6.5, those with a name do not.
    if ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) return write(fd, bytes, size);
  }
  // A pipe takes this much, and may block for more.
  return write(fd, bytes, std::min<size_t>(size, PIPE_BUF));
}

}  // namespace

int OpenInterruptible(const char* path, int flags, mode_t mode) {
  for (;;) {
    // A FIFO is opened for reading at once, and for writing not before a reader has.
    const int fd = open(path, flags | O_NONBLOCK, mode);
    if (fd >= 0 || (errno != ENXIO && errno != EINTR)) return fd;
    struct stat info {};
    if (stat(path, &info) != 0 || !S_ISFIFO(info.st_mode)) {
      errno = ENXIO;
      return -1;
    }
    if (Interrupted()) {
      errno = ECANCELED;
      return -1;
    }
    poll(nullptr, 0, kPollInterval);
  }
}

ssize_t ReadInterruptible(int fd, void* bytes, size_t size) {
  for (;;) {
    if (!Wait(fd, POLLIN)) return -1;
    const ssize_t n = read(fd, bytes, size);
    if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return n;
  }
}

ssize_t WriteInterruptible(int fd, const void* bytes, size_t size) {
  for (;;) {
    if (!Wait(fd, POLLOUT)) return -1;
    const ssize_t n = WriteReady(fd, bytes, size);
    if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return n;
  }
}

}  // namespace tessera
