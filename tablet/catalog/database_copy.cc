// A copy of a database as it is at a moment, while it is in use.
//
// Tablets are immutable, so a snapshot, which keeps its files, is enough: writers and readers go on. Files are copied and not
// linked: a link would share each damaged block with the original, and a copy is kept for just that.
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "tablet/catalog/database_directory.h"
#include "tablet/files/file_names.h"
#include "tablet/files/new_directory.h"

namespace tessera {

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
  for (const auto& table : contents.tables) {
    for (const TabletRecord& tablet : table->tablets) {
      const std::string file = TabletFileName(tablet.id);
      TESSERA_TRY(copy.CopyFile(FilePath(file), file, tablet.file_bytes));
    }
  }
  TESSERA_TRY(ReaderLock::Open(copy.path(), false).status());
  return copy.Commit();
}

}  // namespace tessera
