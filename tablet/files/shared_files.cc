#include "tablet/files/shared_files.h"

namespace tessera {

std::shared_ptr<const TabletFile> SharedFiles::Open(const std::string& directory, const TabletIdentity& identity,
                                                    std::shared_ptr<const TabletFile::Types> types) {
  const std::lock_guard lock(mutex_);
  if (files_.size() >= looked_at_) {
    std::erase_if(files_, [](const auto& file) { return file.second.expired(); });
    looked_at_ = 2 * files_.size() + 64;
  }
  std::weak_ptr<const TabletFile>& known = files_[{directory, identity.tablet_id}];
  std::shared_ptr<const TabletFile> file = known.lock();
  if (file != nullptr && file->identity() == identity && file->Reads(*types)) return file;
  file = OpenTablet(directory, identity, std::move(types));
  known = file;
  return file;
}

}  // namespace tessera
