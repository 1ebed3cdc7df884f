#include "tablet/kept_files.h"

#include <algorithm>
#include <utility>

namespace tessera {

std::shared_ptr<const TableInPlace> KeptFiles::Find(const std::string& key, const std::vector<FileIdentity>& files) {
  Tables gone;
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(tables_, key, [](const auto& kept) { return kept->key; });
  if (at == tables_.end()) return nullptr;
  if ((*at)->table->files != files) {
    gone.splice(gone.begin(), tables_, at);
    return nullptr;
  }
  tables_.splice(tables_.begin(), tables_, at);
  return *at;
}

void KeptFiles::TakeOut(const std::string& key, Tables* gone) {
  const auto at = std::ranges::find(tables_, key, [](const auto& kept) { return kept->key; });
  if (at != tables_.end()) gone->splice(gone->begin(), tables_, at);
}

void KeptFiles::Keep(std::shared_ptr<const TableInPlace> table) {
  Tables gone;
  const std::lock_guard lock(mutex_);
  TakeOut(table->key, &gone);
  tables_.push_front(std::move(table));
  if (tables_.size() > kMost) gone.splice(gone.begin(), tables_, std::prev(tables_.end()));
}

size_t KeptFiles::tables() const {
  const std::lock_guard lock(mutex_);
  return tables_.size();
}

}  // namespace tessera
