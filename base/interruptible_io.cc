#include "base/interruptible_io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/interrupt.h"

namespace tessera {
namespace {

/// How often the cancel flag is looked at, because nobody signals it: milliseconds.
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

bool IsRegular(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
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
  // A pipe that is ready takes this much without blocking, and may block for more.
  if (!IsRegular(fd)) size = std::min<size_t>(size, PIPE_BUF);
  for (;;) {
    if (!Wait(fd, POLLOUT)) return -1;
    const ssize_t n = write(fd, bytes, size);
    if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return n;
  }
}

}  // namespace tessera
