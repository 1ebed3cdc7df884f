// Opening the files of a database directory, which may be anybody's: a FIFO, a device, a directory or a link in place of
// a file is an error, and opening one never waits. (A link might lead to a file elsewhere: another database's catalog.)
//
// Start at: OpenRegularFile. Any thread.
#pragma once

#include <string>

#include "base/status.h"
#include "tablet/files/file_descriptor.h"

namespace tessera {

/// open(path, flags, 0666) of a regular file. Errors: kCorrupt if it is something else; IoError() "cannot open", also if
/// it is not there and `flags` have no O_CREAT.
Result<FileDescriptor> OpenRegularFile(const std::string& path, int flags);

/// For files that others open: kCorrupt if there is something that is not a regular file. One that is not there is fine.
Status CheckRegularFile(const std::string& path);

}  // namespace tessera
