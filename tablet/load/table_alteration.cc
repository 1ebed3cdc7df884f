// Another schema of a table, or another table in its place.
#include "tablet/load/table_alteration.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tablet/catalog/database_directory.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/load/primary_key.h"
#include "tablet/load/table_load.h"
#include "tablet/values/row_batch.h"

namespace tessera {
namespace {

/// Of a column that is its default in all rows; adds its sketch.
ColumnStatistics OfConstant(const ColumnSchema& column, uint64_t rows, std::vector<std::string>* sketches) {
  ColumnVector one;
  one.type = column.type;
  one.Append(DefaultOf(column));
  const ColumnPiece piece{&one, 0, 1};
  const EncodedChunk chunk = EncodeChunk(column.type, {&piece, 1});
  sketches->push_back(chunk.distinct.Serialize());
  ColumnStatistics s;
  if (rows == 0) return s;
  if (chunk.descriptor.null_count > 0) {
    s.null_count = rows;
    return s;
  }
  s.distinct = 1;
  s.has_range = column.type.storage() != StorageClass::kText;
  if (s.has_range) {
    s.min = chunk.descriptor.min;
    s.max = chunk.descriptor.max;
  }
  return s;
}

/// Where the columns of a tablet lie after that.
TabletLayout Moved(const TabletRecord& tablet, size_t columns, std::span<const int> sources,
                   const TableSchema& schema) {
  TabletLayout layout = LayoutOf(tablet, columns);
  std::vector<int32_t> to(columns, -1);
  for (size_t c = 0; c < sources.size(); ++c) {
    if (sources[c] >= 0) to[static_cast<size_t>(sources[c])] = static_cast<int32_t>(c);
  }
  for (ColumnFile& file : layout.files) {
    for (int32_t& column : file.columns) column = column < 0 ? -1 : to[static_cast<size_t>(column)];
  }
  DropUnread(&layout);
  std::vector<ConstantColumn> constants;
  for (const ConstantColumn& constant : layout.constants) {
    const int32_t column = to[static_cast<size_t>(constant.column)];
    if (column >= 0) constants.push_back({column, constant.value});
  }
  for (size_t c = 0; c < sources.size(); ++c) {
    if (sources[c] < 0) constants.push_back({static_cast<int32_t>(c), schema.columns[c].default_text});
  }
  std::ranges::sort(constants, {}, &ConstantColumn::column);
  layout.constants = std::move(constants);
  return layout;
}

class DirectoryAlteration final : public TableAlteration {
 public:
  DirectoryAlteration(std::shared_ptr<DatabaseDirectory> directory, DatabaseDirectory::Write write,
                      std::shared_ptr<const TableRecord> before)
      : directory_(std::move(directory)), write_(std::move(write)), before_(std::move(before)) {}

  Status Commit(const TableSchema& schema, const std::atomic<bool>* cancel) override {
    TESSERA_TRY(CheckSchema(schema));
    if (schema.name != before_->schema.name && write_.contents.Find(schema.name) != nullptr)
      return SqlError(ErrorKind::kDuplicateTable, "table \"" + schema.name + "\" already exists");
    TESSERA_TRY(CheckSchemaExists(write_.contents.names, schema.name));
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

  Status MoveColumns(const TableSchema& schema, std::span<const int> sources) override {
    TESSERA_TRY(CheckSchema(schema));
    TableRecord after = *before_;
    after.schema = AsDeclared(schema);
    after.statistics.clear();
    TESSERA_ASSIGN(const std::vector<std::string> old_sketches, directory_->Sketches(*before_));
    std::vector<std::string> sketches;
    for (size_t c = 0; c < sources.size(); ++c) {
      const auto source = static_cast<size_t>(sources[c]);
      after.statistics.push_back(sources[c] >= 0 ? before_->statistics[source]
                                                 : OfConstant(schema.columns[c], before_->rows(), &sketches));
      if (sources[c] >= 0) sketches.push_back(old_sketches[source]);
    }
    // (A load has none of a table without rows.)
    if (before_->tablets.empty()) sketches.assign(sketches.size(), "");
    int64_t next = write_.contents.next_tablet_id;
    for (TabletRecord& tablet : after.tablets) {
      TabletLayout layout = Moved(tablet, before_->schema.columns.size(), sources, schema);
      tablet.id = next++;
      tablet.file_bytes = layout.bytes();
      tablet.header_checksum = 0;
      tablet.layout = std::make_shared<const TabletLayout>(std::move(layout));
    }
    return directory_->UpdateTable(write_, *before_, std::move(after), sketches, next, nullptr);
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
