// Transactions of several changes: SQLite's own, with its savepoints for their marks.
#include <string>

#include "tablet/catalog/catalog.h"
#include "tablet/catalog/catalog_transaction.h"

namespace tessera {

Status Catalog::BeginOpen(const CatalogContents& state) {
  CatalogTransaction transaction(&file_, is_open_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN IMMEDIATE"));
  // Pages that have no room in memory would lock out the readers of other processes before the commit.
  TESSERA_TRY(file_.Execute("PRAGMA cache_spill = OFF"));
  if (changing_generation_ != generation_) {
    TESSERA_TRY(WriteDatabase(state).status());
    ForgetLogged(changing_generation_);
  }
  transaction.Leave();
  is_open_ = true;
  return {};
}

Status Catalog::SetMark(size_t number) { return file_.Execute(("SAVEPOINT mark_" + std::to_string(number)).c_str()); }

Status Catalog::ReturnToMark(size_t number) {
  last_data_version_ = -1;
  return file_.Execute(("ROLLBACK TO mark_" + std::to_string(number)).c_str());
}

Status Catalog::DropMark(size_t number) { return file_.Execute(("RELEASE mark_" + std::to_string(number)).c_str()); }

Result<Durability> Catalog::CommitOpen() {
  is_open_ = false;
  last_data_version_ = -1;
  CatalogTransaction transaction(&file_, is_open_);
  transaction.TakeOver();
  TESSERA_ASSIGN(const int64_t checksum, QueryInteger(&file_, "SELECT checksum FROM database"));
  return transaction.CommitChange(static_cast<uint64_t>(checksum));
}

void Catalog::RollBackOpen() noexcept {
  is_open_ = false;
  last_data_version_ = -1;
  CatalogTransaction transaction(&file_, is_open_);
  transaction.TakeOver();
}

}  // namespace tessera
