// A copy of a database as it is at a moment, while it is in use.
//
// Tablets are immutable, so a snapshot, which keeps its files, is enough: writers and readers go on. Files are copied and not
// linked: a link would share each damaged block with the original, and a copy is kept for just that.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "tablet/catalog/database_directory.h"
#include "tablet/files/file_names.h"
#include "tablet/files/new_directory.h"

namespace tessera {
namespace {

struct FileSize {
  uint64_t bytes = 0;
  bool may_be_longer = false;  ///< it may have columns of tablets that are not there any more
};

void NoteSizes(const TabletRecord& tablet, std::map<int64_t, FileSize>* sizes) {
  if (tablet.layout == nullptr) {
    (*sizes)[tablet.id] = {tablet.file_bytes};
    return;
  }
  for (const ColumnFile& columns : tablet.layout->files) {
    FileSize& size = (*sizes)[columns.file_id];
    size.bytes = std::max(size.bytes, columns.offset + columns.bytes);
    size.may_be_longer = true;
  }
}

}  // namespace

Status DatabaseDirectory::ReadWhole(CatalogContents* contents, std::vector<std::vector<std::string>>* sketches,
                                    std::shared_ptr<const Snapshot>* snapshot) {
  TESSERA_ASSIGN(std::shared_ptr<const Snapshot> before, Read());
  for (;;) {
    {
      std::lock_guard guard(mutex_);
      if (catalog_ == nullptr) return {};
      *contents = contents_;
      sketches->clear();
      for (const auto& table : contents->tables) {
        sketches->emplace_back();
        if (table->tablets.empty()) continue;
        TESSERA_ASSIGN(sketches->back(), catalog_->Sketches(*table));
      }
    }
    TESSERA_ASSIGN(*snapshot, Read());
    if (*snapshot == before) return {};
    before = *snapshot;  // something has been committed meanwhile
    if (Interrupted()) return Cancelled();
  }
}

Status DatabaseDirectory::CopyTo(const std::string& directory) {
  TESSERA_ASSIGN(NewDirectory copy, NewDirectory::Make(directory));
  CatalogContents contents;
  std::vector<std::vector<std::string>> sketches;
  std::shared_ptr<const Snapshot> snapshot;
  TESSERA_TRY(ReadWhole(&contents, &sketches, &snapshot));
  contents.log_generation = 0;  // what the log says is in `contents`, and the copy begins without one
  {
    TESSERA_ASSIGN(const std::unique_ptr<Catalog> catalog,
                   Catalog::Open(copy.path() + "/" + kCatalogFile, directory, Catalog::Access::kCreate));
    TESSERA_TRY(snapshot == nullptr ? catalog->Initialise() : catalog->Initialise(contents, sketches));
  }
  std::map<int64_t, FileSize> sizes;
  for (const auto& table : contents.tables) {
    for (const TabletRecord& tablet : table->tablets) NoteSizes(tablet, &sizes);
  }
  for (const auto& [id, size] : sizes) {
    const std::string file = TabletFileName(id);
    TESSERA_TRY(copy.CopyFile(FilePath(file), file, size.bytes, size.may_be_longer));
  }
  TESSERA_TRY(ReaderLock::Open(copy.path(), false).status());
  return copy.Commit();
}

}  // namespace tessera
