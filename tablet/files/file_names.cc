#include "tablet/files/file_names.h"

#include "tablet/files/tablet_file.h"

namespace tessera {

bool IsDatabaseFile(const std::string& name) {
  return name == "writer.lock" || name == "readers.lock" || name == kOwnerFile || name == kCommitLogFile ||
         name.starts_with(kCatalogFile) || name.starts_with(kTemporaryPrefix) || TabletIdOfFileName(name) >= 0;
}

}  // namespace tessera
