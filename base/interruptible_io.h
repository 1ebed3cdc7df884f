// open, read and write for files that may be pipes, FIFOs, terminals: the other end may never come, say or take
// anything, and a canceled statement must not wait for it.
//
// Start at: ReadInterruptible, WriteInterruptible. Any thread; its InterruptScope decides.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace tessera {

/// open(2), also of a FIFO that is not open at its other end. Returns -1 with errno; ECANCELED if interrupted
/// meanwhile.
int OpenInterruptible(const char* path, int flags, mode_t mode = 0);
/// read(2) and write(2), where EINTR and EAGAIN are not errors, but ECANCELED is: the statement was interrupted.
ssize_t ReadInterruptible(int fd, void* bytes, size_t size);
/// May write less than `size`, as write(2).
ssize_t WriteInterruptible(int fd, const void* bytes, size_t size);

}  // namespace tessera
