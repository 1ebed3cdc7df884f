// The Database object: the check of a schema in front of DatabaseDirectory, TableLoad and the CSV reader.
#include "tablet/database.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "base/status.h"
#include "tablet/catalog/database_directory.h"
#include "tablet/catalog/macro.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/references.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/catalog/table_info.h"
#include "tablet/csv/csv_load.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_load.h"
#include "tablet/load/shared_load.h"
#include "tablet/load/table_alteration.h"
#include "tablet/load/table_load.h"
#include "tablet/load/table_writer.h"
#include "tablet/schemes/compression_goal.h"
#include "tablet/values/enum_type.h"

namespace tessera {
namespace {

/// Of the tables and tablets of a session: no other database comes so far.
constexpr int64_t kFirstOfSession = int64_t{1} << 42;

bool TypeLess(const EnumType& type, const std::string& name) { return type.name < name; }

class DirectoryDatabase final : public Database {
 public:
  explicit DirectoryDatabase(std::shared_ptr<DatabaseDirectory> directory) : directory_(std::move(directory)) {}

  const std::string& directory() const override { return directory_->name(); }
  const std::string& real_path() const override { return directory_->real_path(); }
  Result<std::shared_ptr<const Snapshot>> Read() override { return directory_->Read(); }
  void SetLockTimeout(int milliseconds) override { directory_->SetLockTimeout(milliseconds); }
  void SetCompression(CompressionGoal goal) override { directory_->SetCompression(goal); }
  std::string TakeWarning() override { return directory_->TakeWarning(); }

  bool InTransaction() const override { return directory_->InTransaction(); }
  Status BeginTransaction() override { return directory_->BeginTransaction(); }
  Status PushMark() override { return directory_->PushMark(); }
  Status ReturnToMark(size_t mark) override { return directory_->ReturnToMark(mark); }
  Status DropMark(size_t mark) override { return directory_->DropMark(mark); }
  void KeepTablets() override { directory_->KeepTablets(true); }
  Status MergeTablets(const std::string& table) override {
    directory_->KeepTablets(false);
    TESSERA_ASSIGN(const std::unique_ptr<TableLoad> load, TableLoad::Begin(directory_, table, nullptr));
    return load->MergeAlone();
  }
  Status CommitTransaction() override { return directory_->CommitTransaction(); }
  void RollBackTransaction() noexcept override { directory_->RollBackTransaction(); }

  Status CopyTo(const std::string& directory) override { return directory_->CopyTo(directory); }

  Status CreateTable(const TableSchema& schema, bool if_not_exists) override {
    TESSERA_TRY(CheckSchema(schema));
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    if (write.contents.Find(schema.name) != nullptr) {
      return if_not_exists ? Status()
                           : SqlError(ErrorKind::kDuplicateTable, "table \"" + schema.name + "\" already exists");
    }
    return Insert(write, schema, nullptr);
  }

  Status ReplaceTable(const TableSchema& schema) override {
    TESSERA_TRY(CheckSchema(schema));
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    const std::shared_ptr<const TableRecord> replaced = write.contents.Find(schema.name);
    return Insert(write, schema, replaced.get());
  }

  Status DropTable(const std::string& name, bool if_exists) override {
    if (if_exists && !directory_->IsWritten()) return Status();
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    const std::shared_ptr<const TableRecord> table = write.contents.Find(name);
    if (table == nullptr && FindView(write.contents.views, name) != nullptr)
      return SqlError(ErrorKind::kWrongObjectType, "\"" + name + "\" is a view, not a table", -1, "Write DROP VIEW.");
    if (table == nullptr)
      return if_exists ? Status() : SqlError(ErrorKind::kUndefinedTable, "table \"" + name + "\" does not exist");
    TESSERA_TRY(CheckUnreferenced(write.contents, table->schema));
    return directory_->DropTable(write, *table);
  }

  Status Truncate(const std::vector<std::string>& tables) override {
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    std::set<int64_t> ids;
    for (const std::string& name : tables) {
      const std::shared_ptr<const TableRecord> table = write.contents.Find(name);
      if (table == nullptr) return SqlError(ErrorKind::kUndefinedTable, "table \"" + name + "\" does not exist");
      ids.insert(table->id);
    }
    TESSERA_TRY(CheckTruncates(write.contents, ids));
    return directory_->Truncate(write, ids);
  }

  Result<std::unique_ptr<TableAlteration>> Alter(const std::string& table) override {
    return BeginTableAlteration(directory_, table);
  }

  Status CreateType(const EnumType& type) override {
    TESSERA_TRY(CheckType(type));
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    std::vector<EnumType> types = write.contents.types;
    const auto at = std::lower_bound(types.begin(), types.end(), type.name, TypeLess);
    if (at != types.end() && at->name == type.name)
      return SqlError(ErrorKind::kDuplicateObject, "type \"" + type.name + "\" already exists");
    types.insert(at, type);
    return directory_->SetTypes(write, std::move(types));
  }

  Status DropType(const std::string& name, bool if_exists) override {
    if (if_exists && !directory_->IsWritten()) return Status();
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    std::vector<EnumType> types = write.contents.types;
    const auto at = std::lower_bound(types.begin(), types.end(), name, TypeLess);
    if (at == types.end() || at->name != name)
      return if_exists ? Status() : SqlError(ErrorKind::kUndefinedObject, "type \"" + name + "\" does not exist");
    for (const auto& table : write.contents.tables) {
      for (const ColumnSchema& column : table->schema.columns) {
        if (column.type.id != TypeId::kEnum || EnumOf(column.type).name != name) continue;
        return SqlError(
            ErrorKind::kDependentObjects,
            "cannot drop type " + name + ": column \"" + column.name + "\" of table \"" + table->schema.name +
                "\" has it",
            -1, "Drop the column first, or give it another type: ALTER TABLE t ALTER c TYPE TEXT USING c::TEXT.");
      }
    }
    types.erase(at);
    return directory_->SetTypes(write, std::move(types));
  }

  Status CreateMacro(const Macro& macro, bool or_replace, bool if_not_exists) override {
    TESSERA_TRY(CheckMacro(macro));
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    std::vector<Macro> macros = write.contents.macros;
    const auto at = std::lower_bound(macros.begin(), macros.end(), macro, ComesBefore);
    if (at == macros.end() || ComesBefore(macro, *at)) {
      macros.insert(at, macro);
    } else if (or_replace) {
      *at = macro;
    } else {
      return if_not_exists ? Status()
                           : SqlError(ErrorKind::kDuplicateFunction, "macro \"" + macro.name + "\" already exists");
    }
    return directory_->SetMacros(write, std::move(macros));
  }

  Status DropMacro(const std::string& name, bool of_rows, bool if_exists) override {
    if (if_exists && !directory_->IsWritten()) return Status();
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    std::vector<Macro> macros = write.contents.macros;
    const auto gone = std::erase_if(macros, [&](const Macro& m) { return m.name == name && m.of_rows == of_rows; });
    if (gone == 0)
      return if_exists ? Status() : SqlError(ErrorKind::kUndefinedFunction, "macro \"" + name + "\" does not exist");
    return directory_->SetMacros(write, std::move(macros));
  }

  Status CreateView(const ViewSchema& view, bool replace, bool if_not_exists) override {
    TESSERA_TRY(CheckView(view));
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    if (write.contents.Find(view.name) != nullptr)
      return SqlError(ErrorKind::kDuplicateTable, "table \"" + view.name + "\" already exists");
    TESSERA_TRY(CheckSchemaExists(write.contents.names, view.name));
    if (FindSequence(write.contents.names.sequences, view.name) != nullptr)
      return SqlError(ErrorKind::kDuplicateTable, "sequence \"" + view.name + "\" already exists");
    Views views = write.contents.views;
    const auto at = std::ranges::find_if(views, [&](const auto& v) { return v->name == view.name; });
    if (at != views.end()) {
      if (!replace)
        return if_not_exists ? Status()
                             : SqlError(ErrorKind::kDuplicateTable, "view \"" + view.name + "\" already exists");
      views.erase(at);
    }
    views.push_back(std::make_shared<const ViewSchema>(view));
    std::sort(views.begin(), views.end(), ViewLess);
    return directory_->SetViews(write, std::move(views));
  }

  Status DropViews(const std::vector<std::string>& names, bool if_exists) override {
    if (if_exists && !directory_->IsWritten()) return Status();
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    Views views = write.contents.views;
    for (const std::string& name : names) {
      const auto gone = std::erase_if(views, [&](const auto& view) { return view->name == name; });
      if (gone == 0 && !if_exists) return SqlError(ErrorKind::kUndefinedTable, "view \"" + name + "\" does not exist");
    }
    if (views.size() == write.contents.views.size()) return Status();
    return directory_->SetViews(write, std::move(views));
  }

  Result<CatalogNames> ReadNames() override { return directory_->ReadNames(); }

  Status ChangeNames(const std::function<Status(CatalogNames*)>& change) override {
    TESSERA_ASSIGN(const DatabaseDirectory::Write write, directory_->BeginWrite());
    CatalogNames names = write.contents.names;
    TESSERA_TRY(change(&names));
    std::ranges::sort(names.sequences, {}, &Sequence::name);
    std::ranges::sort(names.schemas);
    std::ranges::sort(names.comments);
    std::ranges::sort(names.roles);
    std::ranges::sort(names.grants);
    return names == write.contents.names ? Status() : directory_->SetNames(write, std::move(names));
  }

  Result<std::unique_ptr<TableWriter>> Write(const std::string& table) override {
    TESSERA_ASSIGN(std::unique_ptr<TableLoad> load, TableLoad::Begin(directory_, table, nullptr));
    return MakeTableWriter(std::move(load));
  }

  Result<std::unique_ptr<TableWriter>> WriteNew(const TableSchema& schema, bool replace) override {
    TESSERA_TRY(CheckSchema(schema));
    TESSERA_ASSIGN(std::unique_ptr<TableLoad> load, TableLoad::BeginNew(directory_, schema, replace, nullptr));
    return MakeTableWriter(std::move(load));
  }

  Result<uint64_t> LoadNew(const TableSchema& schema, bool replace, FileReader* reader,
                           const CopyFromOptions& options) override {
    TESSERA_TRY(CheckSchema(schema));
    TESSERA_ASSIGN(std::unique_ptr<TableLoad> load, TableLoad::BeginNew(directory_, schema, replace, options.cancel));
    TESSERA_TRY(LoadFile(reader, options, load.get()));
    TESSERA_TRY(load->Commit());
    return load->rows_loaded();
  }

  Result<uint64_t> Load(const std::string& table, FileReader* reader, const CopyFromOptions& options) override {
    TESSERA_ASSIGN(std::unique_ptr<TableLoad> load, TableLoad::Begin(directory_, table, options.cancel));
    if (options.schema != nullptr) TESSERA_TRY(CheckUnchanged(*options.schema, load->schema()));
    TESSERA_TRY(LoadFile(reader, options, load.get()));
    TESSERA_TRY(load->Commit());
    return load->rows_loaded();
  }

  Result<uint64_t> CopyFrom(const std::string& table, const std::string& file,
                            const CopyFromOptions& options) override {
    // The file first: a wrong name should not wait for the lock.
    TESSERA_ASSIGN(CsvFile csv, CsvFile::Open(file));
    TESSERA_ASSIGN(std::unique_ptr<TableLoad> load, TableLoad::Begin(directory_, table, options.cancel));
    load->TakeLastShort();
    if (options.schema != nullptr) TESSERA_TRY(CheckUnchanged(*options.schema, load->schema()));
    TESSERA_ASSIGN(const bool shared, LoadWithRanks(file, options, load.get()));
    if (!shared) TESSERA_TRY(LoadCsv(std::move(csv), options, load.get()));
    TESSERA_TRY(load->Commit());
    return load->rows_loaded();
  }

 private:
  Status Insert(const DatabaseDirectory::Write& write, TableSchema schema, const TableRecord* replaced) {
    if (replaced != nullptr) TESSERA_TRY(CheckUnreferenced(write.contents, schema));
    TESSERA_TRY(CheckReferences(write.contents, schema));
    for (int column : schema.primary_key) schema.columns[static_cast<size_t>(column)].not_null = true;
    return directory_->InsertTable(write, NewTable(write.contents, schema), replaced, {},
                                   write.contents.next_tablet_id);
  }

  const std::shared_ptr<DatabaseDirectory> directory_;
};

}  // namespace

int TableSchema::Find(std::string_view column) const {
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].name == column) return static_cast<int>(c);
  }
  return -1;
}

std::shared_ptr<const TableInfo> Snapshot::Find(std::string_view name) const {
  const auto* list = &tables;
  if (!attached.empty()) {
    if (const AttachedDatabase* const database = FindAttached(AttachedOfName(name))) list = &database->tables;
  }
  const auto at = std::lower_bound(list->begin(), list->end(), name,
                                   [](const auto& table, std::string_view n) { return table->schema.name < n; });
  return at != list->end() && (*at)->schema.name == name ? *at : nullptr;
}

const AttachedDatabase* Snapshot::FindAttached(std::string_view name) const {
  const auto at = std::ranges::find_if(attached, [&](const auto& database) { return database->name == name; });
  return at == attached.end() ? nullptr : at->get();
}

std::string Snapshot::Resolve(std::string_view name) const {
  std::string qualified = QualifiedName(kTemporarySchema, name);
  if (Find(qualified) != nullptr || (!names.sequences.empty() && FindSequence(names.sequences, qualified) != nullptr))
    return qualified;
  // (A view of the session is marked, and has no schema.)
  if (const ViewSchema* const view = FindView(views, name); view != nullptr && view->temporary)
    return std::string(name);
  if (path.empty()) return std::string(name);
  for (const std::string& schema : path) {
    qualified = QualifiedName(schema, name);
    if (Find(qualified) != nullptr || FindView(views, qualified, false) != nullptr ||
        FindSequence(names.sequences, qualified) != nullptr)
      return qualified;
  }
  return QualifiedName(path[0], name);
}

const TableInfo* Snapshot::FindById(int64_t id) const {
  const auto find_in = [&](const std::vector<std::shared_ptr<const TableInfo>>& list) {
    const auto at = std::ranges::find_if(list, [&](const auto& table) { return table->id == id; });
    return at != list.end() ? at->get() : nullptr;
  };
  const TableInfo* found = find_in(tables);
  if (found == nullptr) found = find_in(files);
  for (size_t i = 0; found == nullptr && i < attached.size(); ++i) found = find_in(attached[i]->tables);
  return found;
}

namespace {

/// Ranks know tables and tablets by their identifiers, also those of several sessions of a server: each has a range of its own.
int64_t FirstOfFiles() {
  constexpr int64_t kRange = int64_t{1} << 20, kRanges = kFirstFileTable / kRange;
  static std::atomic<int64_t> next{0};
  return kFirstFileTable + next++ % kRanges * kRange;
}

}  // namespace

Result<std::unique_ptr<Database>> Database::OpenForFiles() {
  TESSERA_ASSIGN(std::shared_ptr<DatabaseDirectory> opened,
                 DatabaseDirectory::Open("", OpenMode::kReadWrite, FirstOfFiles()));
  opened->SetCompression(CompressionGoal::kSpeed);
  return std::unique_ptr<Database>(std::make_unique<DirectoryDatabase>(std::move(opened)));
}

Result<std::unique_ptr<Database>> Database::Open(const std::string& directory, OpenMode mode,
                                                 std::shared_ptr<SharedFiles> files) {
  TESSERA_ASSIGN(std::shared_ptr<DatabaseDirectory> opened, DatabaseDirectory::Open(directory, mode));
  opened->ShareFiles(std::move(files));
  return std::unique_ptr<Database>(std::make_unique<DirectoryDatabase>(std::move(opened)));
}

Result<std::unique_ptr<Database>> Database::OpenForSession() {
  TESSERA_ASSIGN(std::shared_ptr<DatabaseDirectory> opened, DatabaseDirectory::Open("", OpenMode::kReadWrite));
  opened->RaiseIdentifiers(kFirstOfSession);
  return std::unique_ptr<Database>(std::make_unique<DirectoryDatabase>(std::move(opened)));
}

}  // namespace tessera
