// Another schema of a table, or another table in its place.
#include "tablet/load/table_alteration.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tablet/catalog/database_directory.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/load/primary_key.h"
#include "tablet/load/table_load.h"

namespace tessera {
namespace {

class DirectoryAlteration final : public TableAlteration {
 public:
  DirectoryAlteration(std::shared_ptr<DatabaseDirectory> directory, DatabaseDirectory::Write write,
                      std::shared_ptr<const TableRecord> before)
      : directory_(std::move(directory)), write_(std::move(write)), before_(std::move(before)) {}

  Status Commit(const TableSchema& schema, const std::atomic<bool>* cancel) override {
    TESSERA_TRY(CheckSchema(schema));
    if (schema.name != before_->schema.name && write_.contents.Find(schema.name) != nullptr)
      return SqlError(ErrorKind::kDuplicateTable, "table \"" + schema.name + "\" already exists");
    TESSERA_TRY(CheckNewKeys(schema, cancel));
    TableRecord after = *before_;
    after.schema = AsDeclared(schema);
    if (schema.primary_key.size() == 1) {
      ColumnStatistics& statistics = after.statistics[static_cast<size_t>(schema.primary_key[0])];
      statistics.distinct = after.rows() - statistics.null_count;
    }
    TESSERA_ASSIGN(const std::vector<std::string> sketches, directory_->Sketches(*before_));
    return directory_->UpdateTable(write_, *before_, std::move(after), sketches, write_.contents.next_tablet_id,
                                   nullptr);
  }

  Result<std::unique_ptr<TableWriter>> Rewrite(const TableSchema& schema) override {
    TESSERA_TRY(CheckSchema(schema));
    return MakeTableWriter(
        TableLoad::BeginInPlaceOf(directory_, std::move(write_), AsDeclared(schema), before_, nullptr));
  }

 private:
  /// Not with the tablet_rows that were chosen: those are chosen again when there are more rows.
  TableSchema AsDeclared(TableSchema schema) const {
    schema.tablet_rows = before_->schema.tablet_rows;
    return schema;
  }

  Status CheckNewKeys(const TableSchema& schema, const std::atomic<bool>* cancel) const {
    TableSchema checked = schema;
    if (checked.primary_key == before_->schema.primary_key) checked.primary_key.clear();
    std::erase_if(checked.unique_keys, [&](const UniqueKey& key) {
      return std::ranges::any_of(before_->schema.unique_keys,
                                 [&](const UniqueKey& old) { return old.columns == key.columns; });
    });
    if (checked.primary_key.empty() && checked.unique_keys.empty()) return {};
    TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, directory_->Read());
    const std::shared_ptr<const TableInfo> table = now->Find(before_->schema.name);
    if (table == nullptr || table->id != before_->id) return {ErrorCode::kInternal, "a table changed under its lock"};
    return CheckKeys(checked, {}, table->tablets, cancel);
  }

  const std::shared_ptr<DatabaseDirectory> directory_;
  DatabaseDirectory::Write write_;
  const std::shared_ptr<const TableRecord> before_;
};

}  // namespace

Result<std::unique_ptr<TableAlteration>> BeginTableAlteration(std::shared_ptr<DatabaseDirectory> directory,
                                                              const std::string& table) {
  TESSERA_ASSIGN(DatabaseDirectory::Write write, directory->BeginWrite());
  std::shared_ptr<const TableRecord> before = write.contents.Find(table);
  if (before == nullptr) return SqlError(ErrorKind::kUndefinedTable, "table \"" + table + "\" does not exist");
  return std::unique_ptr<TableAlteration>(
      std::make_unique<DirectoryAlteration>(std::move(directory), std::move(write), std::move(before)));
}

}  // namespace tessera
