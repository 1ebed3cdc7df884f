// Transactions of several changes. At first they are held in memory, and may end as a record of the commit log; the first change
// that cannot be one makes them SQLite's own, with its savepoints for their marks.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tablet/catalog/catalog.h"
#include "tablet/catalog/catalog_statement.h"
#include "tablet/catalog/catalog_transaction.h"
#include "tablet/catalog/log_record.h"
#include "tablet/catalog/pack_marks.h"

namespace tessera {

Status Catalog::BeginOpen(const CatalogContents& state) {
  if (file_.path() == ":memory:") {  // which has no log
    CatalogTransaction transaction(&file_);
    TESSERA_TRY(BeginWhole(&transaction, "BEGIN IMMEDIATE"));
    transaction.Leave();
    is_open_ = true;
    return {};
  }
  auto held = std::make_unique<HeldTransaction>();
  held->marks.push_back({state, {}});
  held->now = held->marks[0];
  held_ = std::move(held);
  return {};
}

Status Catalog::WriteSequenceValue(const Sequence& sequence) {
  CatalogStatement update(&file_, "UPDATE sequences SET value = ?, was_given = ? WHERE name = ?");
  return update.Bind(sequence.value).Bind(int64_t{sequence.was_given}).Bind(std::string_view(sequence.name)).Run();
}

Status Catalog::WriteDifference(const HeldTransaction::State& before, const HeldTransaction::State& after) {
  const LoggedChange change = DifferenceOf(before.contents, after.contents, after.sketches);
  for (const LoggedTable& table : change.tables) TESSERA_TRY(WriteChange(*table.before, *table.after, table.sketches));
  for (const Sequence& sequence : change.sequences) TESSERA_TRY(WriteSequenceValue(sequence));
  return WriteDatabase(after.contents).status();
}

Status Catalog::GiveToSqlite(bool ends) {
  if (held_ == nullptr) return {};
  std::vector<HeldTransaction::State>& marks = held_->marks;
  TESSERA_TRY(PackMarks(marks[0].contents, held_->now.contents));
  bool is_small = false, starts_log = false, needs_version = false;
  if (ends) {
    marks.resize(1);
    const LoggedChange change = DifferenceOf(marks[0].contents, held_->now.contents, held_->now.sketches);
    is_small = FitsRecord(change, nullptr);
    needs_version = is_small && !change.IsEmpty() && !change.IsOfOneTable();
    starts_log = is_small && PrepareLog(marks[0].contents.database);
  }
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginWhole(&transaction, "BEGIN IMMEDIATE"));
  // Pages that have no room in memory would lock out the readers of other processes before the commit.
  TESSERA_TRY(file_.Execute("PRAGMA cache_spill = OFF"));
  if (starts_log) TESSERA_TRY(WriteFirstGeneration());
  if (needs_version) TESSERA_TRY(RaiseVersion(kVersionWithSeveral));
  for (size_t mark = 1; mark < marks.size(); ++mark) {
    TESSERA_TRY(WriteDifference(marks[mark - 1], marks[mark]));
    TESSERA_TRY(SetMarkOfSqlite(mark));
  }
  TESSERA_TRY(WriteDifference(marks.back(), held_->now));
  if (changing_generation_ != generation_) ForgetLogged(changing_generation_);
  transaction.Leave();
  is_open_ = true;
  held_.reset();
  return {};
}

Status Catalog::SetMarkOfSqlite(size_t number) {
  return file_.Execute(("SAVEPOINT mark_" + std::to_string(number)).c_str());
}

Status Catalog::SetMark(size_t number) {
  if (held_ == nullptr) return SetMarkOfSqlite(number);
  held_->marks.resize(number);
  held_->marks.push_back(held_->now);
  return {};
}

Status Catalog::ReturnToMark(size_t number) {
  if (held_ != nullptr) {
    held_->marks.resize(number + 1);
    held_->now = held_->marks.back();
    held_->has_changed = true;
    return {};
  }
  last_data_version_ = -1;
  return file_.Execute(("ROLLBACK TO mark_" + std::to_string(number)).c_str());
}

Status Catalog::DropMark(size_t number) {
  if (held_ == nullptr) return file_.Execute(("RELEASE mark_" + std::to_string(number)).c_str());
  held_->marks.resize(number);
  return {};
}

Result<bool> Catalog::LogOpen() {
  if (held_ == nullptr) return false;
  TESSERA_TRY(PackMarks(held_->marks[0].contents, held_->now.contents));
  TESSERA_ASSIGN(const bool logged, Log(held_->marks[0].contents, held_->now.contents, held_->now.sketches));
  if (logged) held_.reset();
  return logged;
}

Result<Durability> Catalog::CommitOpen() {
  if (Status given = GiveToSqlite(true); !given.ok()) {
    RollBackOpen();
    return given;
  }
  is_open_ = false;
  last_data_version_ = -1;
  CatalogTransaction transaction(&file_);
  transaction.TakeOver();
  TESSERA_ASSIGN(const int64_t checksum, QueryInteger(&file_, "SELECT checksum FROM database"));
  return transaction.CommitChange(static_cast<uint64_t>(checksum));
}

void Catalog::RollBackOpen() noexcept {
  last_data_version_ = -1;
  held_.reset();
  if (!std::exchange(is_open_, false)) return;
  CatalogTransaction transaction(&file_);
  transaction.TakeOver();
}

}  // namespace tessera
