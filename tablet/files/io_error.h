// Errors of system calls and files as a Status. Any thread.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/status.h"

namespace tessera {

/// `what "path": reason`. A full disk or quota and lack of memory or descriptors are kResource,
/// ECANCELED (base/interruptible_io.h) is kCancelled, the rest is kIo.
inline Status IoError(const std::string& what, const std::string& path, int error) {
  if (error == ECANCELED) return Cancelled();
  ErrorKind kind = ErrorKind::kIo;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) kind = ErrorKind::kDiskFull;
  if (error == EMFILE || error == ENFILE) kind = ErrorKind::kLimitExceeded;
  if (error == ENOMEM) kind = ErrorKind::kOutOfMemory;
  if (error == ENOENT) kind = ErrorKind::kUndefinedFile;
  return {kind, what + " \"" + path + "\": " + std::generic_category().message(error)};
}

/// A tablet file that is not what it should be.
inline Status CorruptTablet(const std::string& path, const std::string& reason) {
  return {ErrorCode::kCorrupt, "tablet file \"" + path + "\" is corrupt: " + reason,
          "Restore the file from a copy, or load the table anew from its source."};
}

}  // namespace tessera
