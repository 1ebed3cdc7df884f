#include "session/attached_databases.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/lower_case.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/sqlite/sqlite_tables.h"

namespace tessera {
namespace {

/// The identifiers of each attached database lie in a range of this size: none gives as many, files and sessions included.
constexpr int64_t kIdentifiers = int64_t{1} << 44;
constexpr int64_t kYoungNanoseconds = 50'000'000;
constexpr int64_t kMostAttached = INT64_MAX / kIdentifiers - 1;

std::shared_ptr<const TableInfo> Renamed(const TableInfo& table, const std::string& database, int64_t first_id) {
  auto copy = std::make_shared<TableInfo>(table);
  copy->id += first_id;
  copy->schema.name = AttachedName(database, table.schema.name);
  return copy;
}

}  // namespace

Status AttachedDatabases::Attach(const std::string& directory, const std::string& name, const Options& options,
                                 std::shared_ptr<SharedFiles> files) {
  static std::atomic<int64_t> attached{0};  // of the process: its sessions share caches
  Entry entry;
  entry.first_id = (attached++ % kMostAttached + 1) * kIdentifiers;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(directory, error);
  entry.directory = error ? directory : path.string();
  entry.options = options;
  if (options.is_sqlite || options.is_lake || std::filesystem::is_regular_file(path, error)) {
    TESSERA_TRY(ReadSqlite(name, &entry).status());
  } else {
    TESSERA_ASSIGN(entry.database, Database::Open(directory, OpenMode::kReadOnly, std::move(files)));
    TESSERA_TRY(entry.database->Read().status());
  }
  databases_.emplace(name, std::move(entry));
  return {};
}

void AttachedDatabases::SetLockTimeout(int milliseconds) {
  for (auto& [name, entry] : databases_) {
    if (entry.database != nullptr) entry.database->SetLockTimeout(milliseconds);
  }
}

void AttachedDatabases::AddTable(const Entry& entry, TableSchema schema, AttachedDatabase* out, Snapshot* snapshot) {
  auto info = std::make_shared<TableInfo>();
  info->id = entry.first_id + static_cast<int64_t>(out->tables.size()) + 1;
  info->schema = std::move(schema);
  info->statistics.resize(info->schema.columns.size());
  out->tables.push_back(Renamed(*info, out->name, 0));
  snapshot->tables.push_back(std::move(info));
}

Status AttachedDatabases::ReadTables(const Entry& entry, AttachedDatabase* out, Snapshot* snapshot) {
  TESSERA_ASSIGN(std::vector<SqliteTable> tables, DescribeSqliteTables(entry.directory, entry.directory));
  for (SqliteTable& table : tables) {
    table.schema.name = LowerCase(table.name);
    AddTable(entry, std::move(table.schema), out, snapshot);
  }
  return {};
}

Status AttachedDatabases::ReadLake(Entry* entry, AttachedDatabase* out, Snapshot* snapshot) {
  const Options& options = entry->options;
  TESSERA_ASSIGN(LakeTables lake, ReadLakeTables(entry->directory, options.data_path, options.moment));
  entry->lake_version = lake.version;
  snapshot->names.schemas = std::move(lake.schemas);
  for (const LakeTable& table : lake.tables) {
    TableSchema schema;
    schema.name = table.name;
    for (const LakeColumn& column : table.columns) schema.columns.push_back({column.name, column.type});
    AddTable(*entry, std::move(schema), out, snapshot);
  }
  for (const std::string& name : lake.views) {
    auto view = std::make_shared<ViewSchema>();
    view->name = name;
    snapshot->views.push_back(std::move(view));
  }
  std::ranges::sort(snapshot->views, ViewLess);
  return {};
}

Result<std::shared_ptr<const AttachedDatabase>> AttachedDatabases::ReadSqlite(const std::string& name, Entry* entry) {
  TESSERA_ASSIGN(FileIdentity file, IdentifySqlite(entry->directory));
  if (entry->sqlite != nullptr && file == entry->file) return entry->sqlite;
  AttachedDatabase out{name, entry->directory, true, {}, nullptr};
  auto snapshot = std::make_shared<Snapshot>();
  TESSERA_TRY(entry->options.is_lake ? ReadLake(entry, &out, snapshot.get())
                                     : ReadTables(*entry, &out, snapshot.get()));
  const auto name_of = [](const auto& table) { return std::string_view(table->schema.name); };
  std::ranges::sort(snapshot->tables, {}, name_of);
  std::ranges::sort(out.tables, {}, name_of);
  out.snapshot = std::move(snapshot);
  // (A file that was written so shortly before it was looked at may be written again without another time.)
  const int64_t now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  const bool is_young = file.written > now - kYoungNanoseconds;
  entry->file = is_young ? FileIdentity() : std::move(file);
  entry->sqlite = std::make_shared<const AttachedDatabase>(std::move(out));
  return entry->sqlite;
}

Result<AttachedDatabases::List> AttachedDatabases::Read(AttachedLakes* lakes) {
  List list;
  for (auto& [name, entry] : databases_) {
    if (entry.database == nullptr) {
      TESSERA_ASSIGN(list.emplace_back(), ReadSqlite(name, &entry));
      if (entry.options.is_lake) (*lakes)[name] = {entry.directory, entry.options.data_path, entry.lake_version};
      continue;
    }
    TESSERA_ASSIGN(std::shared_ptr<const Snapshot> snapshot, entry.database->Read());
    if (std::shared_ptr<const AttachedDatabase> last = entry.last.lock();
        last != nullptr && last->snapshot == snapshot) {
      list.push_back(std::move(last));
      continue;
    }
    // A table holds the snapshot that it is of, and so the files.
    struct Held {
      std::shared_ptr<const Snapshot> snapshot;
      std::shared_ptr<const TableInfo> table;
    };
    AttachedDatabase out{name, entry.directory, false, {}, snapshot};
    std::map<uint64_t, std::shared_ptr<const TableInfo>> tables;
    for (const auto& table : snapshot->tables) {
      const uint64_t number = table->number.value();
      const auto known = entry.tables.find(number);
      auto held = std::make_shared<Held>();
      held->snapshot = snapshot;
      held->table = known != entry.tables.end() ? known->second : Renamed(*table, name, entry.first_id);
      tables.emplace(number, held->table);
      out.tables.emplace_back(held, held->table.get());
    }
    entry.tables = std::move(tables);
    std::ranges::sort(out.tables, {}, [](const auto& table) { return std::string_view(table->schema.name); });
    list.push_back(std::make_shared<const AttachedDatabase>(std::move(out)));
    entry.last = list.back();
  }
  return list;
}

}  // namespace tessera
