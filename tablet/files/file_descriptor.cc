#include "tablet/files/file_descriptor.h"

#include <unistd.h>

namespace tessera {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace tessera
