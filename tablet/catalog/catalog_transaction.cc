// Transactions of several changes: SQLite's own, with its savepoints for their marks.
#include "tablet/catalog/catalog_transaction.h"

#include <string>

namespace tessera {

Status Catalog::BeginOpen(const CatalogContents& state) {
  Transaction transaction(this);
  TESSERA_TRY(transaction.BeginChange("BEGIN IMMEDIATE"));
  // Pages that have no room in memory would lock out the readers of other processes before the commit.
  TESSERA_TRY(Execute("PRAGMA cache_spill = OFF"));
  if (changing_generation_ != generation_) {
    TESSERA_TRY(WriteDatabase(state).status());
    ForgetLogged(changing_generation_);
  }
  transaction.Leave();
  is_open_ = true;
  return {};
}

Status Catalog::SetMark(size_t number) { return Execute(("SAVEPOINT mark_" + std::to_string(number)).c_str()); }

Status Catalog::ReturnToMark(size_t number) {
  last_data_version_ = -1;
  return Execute(("ROLLBACK TO mark_" + std::to_string(number)).c_str());
}

Status Catalog::DropMark(size_t number) { return Execute(("RELEASE mark_" + std::to_string(number)).c_str()); }

Result<Durability> Catalog::CommitOpen() {
  is_open_ = false;
  last_data_version_ = -1;
  Transaction transaction(this);
  transaction.TakeOver();
  TESSERA_ASSIGN(const int64_t checksum, QueryInteger("SELECT checksum FROM database"));
  return transaction.CommitChange(static_cast<uint64_t>(checksum));
}

void Catalog::RollBackOpen() noexcept {
  is_open_ = false;
  last_data_version_ = -1;
  Transaction transaction(this);
  transaction.TakeOver();
}

}  // namespace tessera
