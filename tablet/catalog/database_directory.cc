// Opening and creating databases, snapshots, and the removal of files.
#include "tablet/catalog/database_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <unordered_set>

#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/pack_marks.h"
#include "tablet/files/file_names.h"
#include "tablet/files/file_syncer.h"
#include "tablet/files/io_error.h"
#include "tablet/files/regular_file.h"
#include "tablet/files/tablet_of_files.h"

namespace tessera {
namespace {

/// Names in a directory, without "." and "..".
Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  DIR* const directory = opendir(path.c_str());
  if (directory == nullptr) return IoError("cannot read", path, errno);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(directory);
  return names;
}

Status SyncEntries(const std::string& path) {
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return IoError("cannot open", path, errno);
  // Some file systems cannot sync directories and say EINVAL; they have nothing to wait for.
  if (fsync(fd.get()) != 0 && errno != EINVAL) return IoError("cannot sync", path, errno);
  return {};
}

Status SyncFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    TESSERA_ASSIGN(const FileDescriptor file, OpenRegularFile(path, O_RDONLY));
    if (fsync(file.get()) != 0) return IoError("cannot sync", path, errno);
  }
  return {};
}

/// Of a new database's directory. A slash at the end of its name means nothing.
std::string ParentOf(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::filesystem::path(path).parent_path().string();
}

std::shared_ptr<const TabletFile::Types> TypesOf(const TableRecord& table) {
  auto types = std::make_shared<TabletFile::Types>();
  for (const ColumnSchema& column : table.schema.columns) types->push_back(column.type);
  return types;
}

Status NotWritable(const std::string& name, int error) {
  const Status status = IoError("cannot write to database", name, error);
  return {status.kind(), status.message(), "Open it read-only."};
}

}  // namespace

bool DatabaseDirectory::IsWritten(const std::string& directory) {
  return access((directory + "/" + kCatalogFile).c_str(), F_OK) == 0;
}

bool DatabaseDirectory::IsWritten() {
  const std::lock_guard guard(mutex_);
  return catalog_ != nullptr || IsWritten(path_);
}

Result<std::unique_ptr<Catalog>> DatabaseDirectory::FindCatalog() const {
  if (!durable()) return std::unique_ptr<Catalog>();
  const std::string file = FilePath(kCatalogFile);
  const bool read_only = mode_ == OpenMode::kReadOnly;
  // SQLite opens them as they are, and would wait for the other end of a FIFO.
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) TESSERA_TRY(CheckRegularFile(file + suffix));
  struct stat info;
  if (stat(file.c_str(), &info) == 0) {
    const Catalog::Access access = read_only ? Catalog::Access::kReadOnly : Catalog::Access::kReadWrite;
    TESSERA_ASSIGN(std::unique_ptr<Catalog> catalog, Catalog::Open(file, name_, access));
    TESSERA_ASSIGN(const Catalog::State state, catalog->Check());
    if (state == Catalog::State::kInitialised) return catalog;
  }

  // The directory is empty or its creation was interrupted. If there are tablets, there was a catalog.
  TESSERA_ASSIGN(const std::vector<std::string> names, ListDirectory(path_));
  for (const std::string& other : names) {
    if (TabletIdOfFileName(other) >= 0) {
      return Status(ErrorCode::kCorrupt, "database \"" + name_ + "\" has lost its catalog \"" + file + "\"",
                    "Restore the file from a copy.");
    }
  }
  if (read_only) return Status(ErrorCode::kIo, "there is no database in \"" + name_ + "\"");
  // Our files are not put among others: the name is most likely a mistake.
  for (const std::string& other : names) {
    if (!IsDatabaseFile(other)) {
      return Status(ErrorCode::kIo, "directory \"" + name_ + "\" holds no database, but other files",
                    "Name a new or an empty directory.");
    }
  }
  return std::unique_ptr<Catalog>();
}

Result<std::unique_ptr<Catalog>> DatabaseDirectory::CreateCatalog() const {
  TESSERA_ASSIGN(const WriterLock lock, WriterLock::Acquire(path_, name_, lock_timeout_ms_.load()));
  TESSERA_ASSIGN(std::unique_ptr<Catalog> catalog,
                 durable() ? Catalog::Open(FilePath(kCatalogFile), name_, Catalog::Access::kCreate)
                           : Catalog::OpenTemporary(name_));
  TESSERA_ASSIGN(const Catalog::State state, catalog->Check());
  // Another process may have been faster.
  if (state == Catalog::State::kEmpty) {
    if (durable()) {
      // Without the entry of the directory itself a power failure takes all that is in it. Now, so that a database that
      // is found has one. A parent that cannot be read cannot be synced either.
      const std::string parent = path_ + "/..";
      if (access(parent.c_str(), R_OK) == 0) TESSERA_TRY(SyncEntries(parent));
    }
    TESSERA_TRY(catalog->Initialise());
  }
  return catalog;
}

Status DatabaseDirectory::CheckParent() const {
  const bool possible = access(ParentOf(path_).c_str(), W_OK | X_OK) == 0;
  return possible ? Status() : IoError("cannot create database", name_, errno);
}

Status DatabaseDirectory::Use(std::unique_ptr<Catalog> catalog) {
  if (durable()) {
    TESSERA_ASSIGN(reader_lock_, ReaderLock::Open(path_, mode_ == OpenMode::kReadOnly));
  } else {
    reader_lock_ = ReaderLock::OfOneProcess();
  }
  if (mode_ == OpenMode::kReadWrite && durable()) TESSERA_TRY(SyncDirectory());
  catalog->SetLockTimeout(lock_timeout_ms_.load());
  catalog_ = std::move(catalog);
  return {};
}

Status DatabaseDirectory::Attach() {
  if (catalog_ != nullptr || !IsWritten(path_)) return {};
  TESSERA_ASSIGN(std::unique_ptr<Catalog> catalog, FindCatalog());
  return catalog == nullptr ? Status() : Use(std::move(catalog));
}

Status DatabaseDirectory::Create() {
  TESSERA_TRY(Attach());
  if (catalog_ != nullptr) return {};
  const bool made = mkdir(path_.c_str(), 0777) == 0;
  if (!made && errno != EEXIST) return IoError("cannot create database", name_, errno);
  const auto write = [&]() -> Status {
    TESSERA_ASSIGN(std::unique_ptr<Catalog> catalog, FindCatalog());
    if (catalog == nullptr) {
      TESSERA_ASSIGN(catalog, CreateCatalog());
    }
    return Use(std::move(catalog));
  };
  Status status = write();
  if (!status.ok() && made) rmdir(path_.c_str());  // unless there is something in it already
  return status;
}

Result<std::shared_ptr<DatabaseDirectory>> DatabaseDirectory::Open(const std::string& directory, OpenMode mode,
                                                                   int64_t least_id) {
  std::shared_ptr<DatabaseDirectory> self(new DatabaseDirectory);
  self->least_table_id_ = self->least_tablet_id_ = least_id;
  self->name_ = directory;
  self->mode_ = mode;
  if (directory.empty()) {
    if (mode == OpenMode::kReadOnly) return Status(ErrorCode::kIo, "a temporary database cannot be read-only");
    TESSERA_ASSIGN(self->temporary_, TemporaryDirectory::Make());
    self->name_ = self->temporary_->path();
  }
  std::error_code error;
  self->path_ = std::filesystem::absolute(self->name_, error).string();
  if (error) return IoError("cannot open", self->name_, error.value());
  self->real_path_ = std::filesystem::weakly_canonical(self->path_, error).string();
  if (error) self->real_path_ = self->path_;

  struct stat info;
  if (stat(self->path_.c_str(), &info) != 0) {
    if (errno != ENOENT || mode == OpenMode::kReadOnly) return IoError("cannot open database", self->name_, errno);
    TESSERA_TRY(self->CheckParent());
    return self;
  }
  if (!S_ISDIR(info.st_mode)) return IoError("cannot open database", self->name_, ENOTDIR);
  if (mode == OpenMode::kReadWrite && access(self->path_.c_str(), W_OK | X_OK) != 0)
    return NotWritable(self->name_, errno);
  const std::lock_guard guard(self->mutex_);
  TESSERA_ASSIGN(std::unique_ptr<Catalog> catalog, self->FindCatalog());
  if (catalog != nullptr) TESSERA_TRY(self->Use(std::move(catalog)));
  // Ranks are told the directory of a temporary one when it is opened.
  if (self->temporary_ != nullptr) TESSERA_TRY(self->Create());
  return self;
}

DatabaseDirectory::~DatabaseDirectory() {
  if (InTransaction()) RollBackTransaction();
  try {
    if (!durable()) {
      catalog_.reset();
      infos_.clear();
      temporary_.reset();
      return;
    }
    // Files that could not be removed before, because a reader of this process might use them.
    if (swept_.garbage && catalog_ != nullptr) {
      Result<WriterLock> lock = WriterLock::Acquire(path_, name_, 0);
      std::lock_guard guard(mutex_);
      if (lock.ok() && Refresh().ok()) Sweep(nullptr);
    }
  } catch (...) {  // no memory: the next writer sweeps
  }
}

Status DatabaseDirectory::SyncDirectory() const { return durable() ? SyncEntries(path_) : Status(); }

/// A commit ends in the journal, which was there before or not (catalog.cc).
Status DatabaseDirectory::SyncCommit() const {
  if (!durable()) return {};
  const std::string journal = path_ + "/" + kCatalogFile + "-journal";
  const Result<FileDescriptor> file = OpenRegularFile(journal, O_RDONLY);
  if (file.ok() ? fsync(file->get()) != 0 : access(journal.c_str(), F_OK) == 0)
    return IoError("cannot sync", journal, errno);
  const std::string log = FilePath(kCommitLogFile);
  const Result<FileDescriptor> log_file = OpenRegularFile(log, O_RDONLY);
  if (log_file.ok() ? fdatasync(log_file->get()) != 0 : access(log.c_str(), F_OK) == 0)
    return IoError("cannot sync", log, errno);
  return SyncDirectory();
}

bool DatabaseDirectory::MayLog() {
  if (!durable()) return false;
  if (!on_disk_.in_doubt) return true;
  if (!SyncCommit().ok()) return false;
  on_disk_.in_doubt = false;
  on_disk_.version = catalog_->others_version();
  return true;
}

DatabaseDirectory::UsedFiles DatabaseDirectory::Used() const {
  UsedFiles used;
  const auto add = [&](const CatalogContents& contents) {
    for (const auto& table : contents.tables) {
      for (const TabletRecord& tablet : table->tablets) {
        if (tablet.layout != nullptr) used.tablets.insert(tablet.id);
        ForEachFile(tablet, [&](int64_t file, int64_t columns) {
          used.files.insert(file);
          used.columns.insert(columns);
        });
      }
    }
  };
  add(contents_);
  if (transaction_) std::ranges::for_each(transaction_->marks, add);
  return used;
}

std::unordered_set<int64_t> DatabaseDirectory::ForgetTablets(const UsedFiles& used) {
  std::erase_if(infos_, [&](const auto& info) { return std::ranges::count(contents_.tables, info.first) == 0; });
  std::erase_if(open_.of_files, [&](const auto& tablet) { return !used.tablets.contains(tablet.first); });
  for (auto& [id, file] : open_.files) {
    if (used.columns.contains(id)) continue;
    open_.replaced.emplace_back(file->identity().file(), file);
    file = nullptr;
  }
  std::erase_if(open_.files, [](const auto& file) { return file.second == nullptr; });
  std::erase_if(open_.replaced, [](const auto& tablet) { return tablet.second.expired(); });
  std::unordered_set<int64_t> in_use;
  for (const auto& [id, tablet] : open_.replaced) in_use.insert(id);
  return in_use;
}

std::shared_ptr<const Tablet> DatabaseDirectory::OpenTablet(const CatalogContents& contents, const TableRecord& table,
                                                            const TabletRecord& tablet) const {
  return MakeTablet(IdentityOf(contents, table, tablet), tablet.layout.get(), TypesOf(table),
                    [&](const TabletIdentity& identity, std::shared_ptr<const TabletFile::Types> types) {
                      return tessera::OpenTablet(path_, identity, std::move(types));
                    });
}

TabletIdentity DatabaseDirectory::IdentityOf(const CatalogContents& contents, const TableRecord& table,
                                             const TabletRecord& tablet) const {
  return {contents.database, table.id, tablet.id, tablet.rows, tablet.file_bytes, tablet.header_checksum};
}

void DatabaseDirectory::SetLockTimeout(int milliseconds) {
  lock_timeout_ms_.store(milliseconds);
  std::lock_guard lock(mutex_);
  if (catalog_ != nullptr) catalog_->SetLockTimeout(milliseconds);
}

Status DatabaseDirectory::Refresh() {
  TESSERA_ASSIGN(const bool changed, catalog_->Changed());
  if (!changed && loaded_) return {};
  // Forget the old state first: if this fails, it must not be taken for the current one.
  const bool was_loaded = std::exchange(loaded_, false);
  infos_current_ = false;
  TESSERA_ASSIGN(contents_, catalog_->Load(was_loaded ? &contents_ : nullptr));
  contents_.next_table_id = std::max(contents_.next_table_id, least_table_id_);
  contents_.next_tablet_id = std::max(contents_.next_tablet_id, least_tablet_id_);
  loaded_ = true;
  return {};
}

std::shared_ptr<const TableInfo> DatabaseDirectory::MakeInfo(const CatalogContents& contents,
                                                             const std::shared_ptr<const TableRecord>& record) {
  auto info = std::make_shared<TableInfo>();
  info->id = record->id;
  info->version = record->version;
  info->schema = record->schema;
  if (record->tablet_rows != 0) info->schema.tablet_rows = record->tablet_rows;
  info->rows = info->stored_rows = record->rows();
  info->statistics = record->statistics;
  const std::shared_ptr<const TabletFile::Types> types = TypesOf(*record);
  // A file that an earlier snapshot had keeps its object, with its mapping and its verified chunks.
  const auto open = [&](const TabletIdentity& identity, std::shared_ptr<const TabletFile::Types> of_file) {
    std::shared_ptr<const TabletFile>& known = open_.files[identity.tablet_id];
    // (DROP COLUMN may have been rolled back.)
    if (known != nullptr && !known->Reads(*of_file))
      open_.replaced.emplace_back(identity.file(), std::exchange(known, nullptr));
    if (known == nullptr) {
      known = shared_files_ != nullptr ? shared_files_->Open(path_, identity, std::move(of_file))
                                       : tessera::OpenTablet(path_, identity, std::move(of_file));
    }
    return known;
  };
  std::vector<std::shared_ptr<const LiveRows>> live;
  for (const TabletRecord& tablet : record->tablets) {
    const TabletIdentity identity = IdentityOf(contents, *record, tablet);
    if (tablet.layout == nullptr) {
      info->tablets.push_back(open(identity, types));
    } else {
      std::shared_ptr<const Tablet>& known = open_.of_files[tablet.id];
      if (known == nullptr) known = MakeTablet(identity, tablet.layout.get(), types, open);
      info->tablets.push_back(known);
    }
    live.push_back(tablet.live);
    if (!record->schema.distribute_by.empty()) info->buckets.push_back(tablet.bucket);
  }
  MarkLive(live, info.get());
  return info;
}

Result<std::shared_ptr<const Snapshot>> DatabaseDirectory::Read() {
  std::shared_ptr<ReaderLock> reader;
  {
    std::lock_guard guard(mutex_);
    TESSERA_TRY(Attach());
    reader = reader_lock_;
    if (catalog_ == nullptr) return std::make_shared<const Snapshot>();
  }
  // Take the lock first. A process that removes files after this sees a reader; files that were removed before are no
  // longer in the catalog, which is read next.
  TESSERA_ASSIGN(std::shared_ptr<const void> hold, reader->Hold());
  std::lock_guard guard(mutex_);
  TESSERA_TRY(Refresh());
  if (infos_current_) {
    if (std::shared_ptr<const Snapshot> snapshot = snapshot_.lock()) return snapshot;
  } else {
    std::vector<std::pair<std::shared_ptr<const TableRecord>, std::shared_ptr<const TableInfo>>> infos;
    for (const auto& record : contents_.tables) {
      const auto same = std::find_if(infos_.begin(), infos_.end(), [&](const auto& i) { return i.first == record; });
      infos.emplace_back(record, same != infos_.end() ? same->second : MakeInfo(contents_, record));
    }
    infos_ = std::move(infos);
    infos_current_ = true;
    size_t files = 0;
    for (const auto& record : contents_.tables) {
      for (const TabletRecord& tablet : record->tablets) ForEachFile(tablet, [&](int64_t, int64_t) { ++files; });
    }
    if (open_.files.size() > files) (void)ForgetTablets(Used());
  }
  // Every pointer to a table also holds the lock, through the one control block that they share.
  struct Held {
    std::shared_ptr<const void> hold;
    std::vector<std::shared_ptr<const TableInfo>> infos;
  };
  auto held = std::make_shared<Held>();
  held->hold = std::move(hold);
  auto tables = std::make_shared<Snapshot>();
  for (const auto& [record, info] : infos_) {
    held->infos.push_back(info);
    tables->tables.push_back(std::shared_ptr<const TableInfo>(held, info.get()));
  }
  tables->types = contents_.types;
  tables->macros = contents_.macros;
  tables->views = contents_.views;
  tables->names = contents_.names;
  snapshot_ = tables;
  return std::shared_ptr<const Snapshot>(std::move(tables));
}

Result<DatabaseDirectory::Write> DatabaseDirectory::BeginWrite() {
  if (InTransaction()) {
    std::lock_guard guard(mutex_);
    TESSERA_TRY(Refresh());
    return Write{WriterLock(), contents_};
  }
  if (mode_ == OpenMode::kReadOnly) {
    return Status(ErrorCode::kIo, "database \"" + name_ + "\" is open for reading only");
  }
  {
    std::lock_guard guard(mutex_);
    TESSERA_TRY(Create());
  }
  TESSERA_ASSIGN(WriterLock lock, WriterLock::Acquire(path_, name_, lock_timeout_ms_.load()));
  std::lock_guard guard(mutex_);
  TESSERA_TRY(Refresh());
  // Removes what a dead process left, which may have died before it had synced its commit.
  on_disk_.in_doubt |= durable() && catalog_->others_version() != on_disk_.version;
  if (catalog_->others_version() != swept_.listed_version) {
    Result<std::vector<std::string>> names = ListDirectory(path_);
    if (names.ok()) {
      swept_.listed_version = catalog_->others_version();
      Sweep(&*names);
    }
  } else if (swept_.garbage) {
    Sweep(nullptr);
  }
  return Write{std::move(lock), contents_};
}

Status DatabaseDirectory::BeginTransaction() {
  TESSERA_ASSIGN(Write write, BeginWrite());
  std::lock_guard guard(mutex_);
  OpenTransaction begun;
  begun.marks.push_back(std::move(write.contents));
  TESSERA_TRY(catalog_->BeginOpen(begun.marks[0]));
  begun.lock = std::move(write.lock);
  transaction_.emplace(std::move(begun));
  return {};
}

Status DatabaseDirectory::PushMark() {
  std::lock_guard guard(mutex_);
  TESSERA_TRY(Refresh());
  TESSERA_TRY(catalog_->SetMark(transaction_->marks.size()));
  transaction_->marks.push_back(contents_);
  return {};
}

Status DatabaseDirectory::ReturnToMark(size_t mark) {
  std::lock_guard guard(mutex_);
  NoteGiven();
  TESSERA_TRY(catalog_->ReturnToMark(mark));
  transaction_->marks.resize(mark + 1);
  return Refresh();
}

Status DatabaseDirectory::DropMark(size_t mark) {
  std::lock_guard guard(mutex_);
  TESSERA_TRY(catalog_->DropMark(mark));
  transaction_->marks.resize(mark);
  return {};
}

void DatabaseDirectory::RaiseIdentifiers(int64_t first) {
  const std::lock_guard guard(mutex_);
  least_table_id_ = std::max(least_table_id_, first);
  least_tablet_id_ = std::max(least_tablet_id_, first);
}

void DatabaseDirectory::NoteGiven() {
  least_table_id_ = std::max(least_table_id_, contents_.next_table_id);
  least_tablet_id_ = std::max(least_tablet_id_, contents_.next_tablet_id);
  for (const auto& table : contents_.tables) catalog_->RaiseVersions(table->version);
}

Status DatabaseDirectory::SyncTablets() const {
  if (!durable()) return {};
  std::unordered_set<int64_t> synced;
  for (const auto& table : transaction_->marks[0].tables) {
    for (const TabletRecord& tablet : table->tablets)
      ForEachFile(tablet, [&](int64_t file, int64_t) { synced.insert(file); });
  }
  std::vector<int64_t> made;
  for (const auto& table : contents_.tables) {
    for (const TabletRecord& tablet : table->tablets) {
      ForEachFile(tablet, [&](int64_t file, int64_t) {
        if (synced.insert(file).second) made.push_back(file);
      });
    }
  }
  FileSyncer syncer(true, nullptr);
  for (const int64_t id : made) {
    const std::string path = FilePath(TabletFileName(id));
    TESSERA_ASSIGN(FileDescriptor file, OpenRegularFile(path, O_RDONLY));
    syncer.Add(std::move(file), path, "");
  }
  const bool any = !made.empty();
  TESSERA_TRY(syncer.Finish(nullptr));
  return any ? SyncDirectory() : Status();
}

Status DatabaseDirectory::CommitTransaction() {
  std::lock_guard guard(mutex_);
  Status ready = Refresh();
  Result<bool> logged = false;
  if (ready.ok() && MayLog()) logged = catalog_->LogOpen();
  if (ready.ok() && logged.ok() && !*logged) ready = SyncTablets();
  if (!ready.ok()) {
    catalog_->RollBackOpen();
    AfterRollBack();
    return ready;
  }
  Result<Durability> committed = Durability::kDurable;
  if (!logged.ok()) {
    catalog_->RollBackOpen();
    committed = logged.status();
  } else if (!*logged) {
    committed = catalog_->CommitOpen();
  }
  if (!committed.ok()) NoteGiven();
  const OpenTransaction ended = std::move(*transaction_);
  transaction_.reset();
  AfterCommit(committed);
  return committed.status();
}

std::unique_ptr<ThreadPool> DatabaseDirectory::TakeThreads() {
  {
    std::lock_guard guard(mutex_);
    if (threads_ != nullptr) return std::move(threads_);
  }
  return ThreadsOfMarks();
}

void DatabaseDirectory::GiveBack(std::unique_ptr<ThreadPool> threads) {
  std::lock_guard guard(mutex_);
  threads_.swap(threads);
}

void DatabaseDirectory::RollBackTransaction() noexcept {
  std::lock_guard guard(mutex_);
  catalog_->RollBackOpen();
  AfterRollBack();
}

void DatabaseDirectory::AfterRollBack() noexcept {
  NoteGiven();
  const OpenTransaction ended = std::move(*transaction_);
  transaction_.reset();
  RefreshAndSweep(true);
}

void DatabaseDirectory::RefreshAndSweep(bool sweeps) noexcept {
  try {
    if (Refresh().ok() && sweeps) Sweep(nullptr);
  } catch (...) {  // what is not done here is done by the next writer
  }
}

Status DatabaseDirectory::InsertTable(const Write& write, TableRecord table, const TableRecord* replaced,
                                      const std::vector<std::string>& sketches, int64_t next_tablet_id) {
  std::lock_guard guard(mutex_);
  const Result<Durability> committed =
      catalog_->InsertTable(write.contents, std::move(table), replaced, sketches, next_tablet_id);
  AfterCommit(committed);
  return committed.status();
}

Status DatabaseDirectory::DropTable(const Write& write, const TableRecord& table) {
  std::lock_guard guard(mutex_);
  const Result<Durability> committed = catalog_->DropTable(write.contents, table);
  AfterCommit(committed);
  return committed.status();
}

Status DatabaseDirectory::Truncate(const Write& write, const std::set<int64_t>& tables) {
  std::lock_guard guard(mutex_);
  const Result<Durability> committed = catalog_->Truncate(write.contents, tables);
  AfterCommit(committed);
  return committed.status();
}

Status DatabaseDirectory::SetTypes(const Write& write, std::vector<EnumType> types) {
  std::lock_guard guard(mutex_);
  const Result<Durability> committed = catalog_->SetTypes(write.contents, std::move(types));
  AfterCommit(committed);
  return committed.status();
}

Status DatabaseDirectory::SetMacros(const Write& write, std::vector<Macro> macros) {
  std::lock_guard guard(mutex_);
  const Result<Durability> committed = catalog_->SetMacros(write.contents, std::move(macros));
  AfterCommit(committed);
  return committed.status();
}

Status DatabaseDirectory::SetViews(const Write& write, Views views) {
  std::lock_guard guard(mutex_);
  const Result<Durability> committed = catalog_->SetViews(write.contents, std::move(views));
  AfterCommit(committed);
  return committed.status();
}

Status DatabaseDirectory::SetNames(const Write& write, CatalogNames names) {
  std::lock_guard guard(mutex_);
  CatalogContents made;
  Result<bool> logged = false;
  if (!InTransaction() && MayLog()) logged = catalog_->LogNames(write.contents, names, &made);
  Result<Durability> committed = Durability::kDurable;
  if (!logged.ok()) {
    committed = logged.status();
  } else if (*logged) {
    TakeContents(std::move(made));
  } else {
    committed = catalog_->SetNames(write.contents, std::move(names));
  }
  AfterCommit(committed);
  return committed.status();
}

Result<CatalogNames> DatabaseDirectory::ReadNames() {
  std::lock_guard guard(mutex_);
  TESSERA_TRY(Attach());
  if (catalog_ == nullptr) return CatalogNames();
  TESSERA_TRY(Refresh());
  return contents_.names;
}

Status DatabaseDirectory::UpdateTable(const Write& write, const TableRecord& before, TableRecord after,
                                      const std::vector<std::string>& sketches, int64_t next_tablet_id,
                                      const std::vector<std::string>* unsynced) {
  std::lock_guard guard(mutex_);
  CatalogContents made;
  Result<bool> logged = false;
  if (unsynced != nullptr && !InTransaction() && MayLog())
    logged = catalog_->LogUpdate(write.contents, before, after, sketches, next_tablet_id, &made);
  Result<Durability> committed = Durability::kDurable;
  if (!logged.ok()) {
    committed = logged.status();
  } else if (Status synced = *logged || unsynced == nullptr ? Status() : SyncFiles(*unsynced); !synced.ok()) {
    committed = synced;
  } else if (!*logged) {
    committed = catalog_->UpdateTable(write.contents, before, std::move(after), sketches, next_tablet_id,
                                      unsynced != nullptr, &made);
  }
  if (committed.ok() && *committed == Durability::kDurable) {
    // (It may have another name.)
    std::ranges::sort(made.tables, {}, [](const auto& table) { return table->schema.name; });
    TakeContents(std::move(made));
  }
  AfterCommit(committed);
  return committed.status();
}

void DatabaseDirectory::TakeContents(CatalogContents made) {
  contents_ = std::move(made);
  loaded_ = true;
  infos_current_ = false;
}

void DatabaseDirectory::AfterCommit(const Result<Durability>& committed) noexcept {
  // Within a transaction: what it has made itself and does not need any more.
  if (InTransaction()) return RefreshAndSweep(true);
  const bool uncertain = committed.ok() && *committed != Durability::kDurable && durable();
  on_disk_.warn |= uncertain;
  swept_.garbage |= uncertain;
  on_disk_.in_doubt = durable() && (uncertain || !committed.ok());
  if (!on_disk_.in_doubt) on_disk_.version = catalog_->others_version();
  // The old catalog may come back, and with it the files that it names: then they stay for the next writer, who syncs
  // first. (A second sync right here would say nothing: the system reports an error once.)
  RefreshAndSweep(!uncertain);
}

std::string DatabaseDirectory::TakeWarning() {
  std::lock_guard guard(mutex_);
  if (!std::exchange(on_disk_.warn, false)) return {};
  return "the change is made, but directory \"" + path_ +
         "\" cannot be synced: if the machine loses power, it may be lost";
}

Result<std::vector<std::string>> DatabaseDirectory::Sketches(const TableRecord& table) {
  std::lock_guard guard(mutex_);
  return catalog_->Sketches(table);
}

void DatabaseDirectory::Sweep(const std::vector<std::string>* listed) {
  swept_.garbage = false;
  const UsedFiles all_used = Used();
  const std::unordered_set<int64_t>& used = all_used.files;
  swept_.seen.insert(used.begin(), used.end());
  std::vector<std::string> names;
  if (listed == nullptr) {
    for (const int64_t id : swept_.seen) {
      if (!used.contains(id)) names.push_back(TabletFileName(id));
    }
  } else {
    std::ranges::copy_if(*listed, std::back_inserter(names), [&](const std::string& name) {
      const int64_t id = TabletIdOfFileName(name);
      return id >= 0 ? !used.contains(id) : name.starts_with(kTemporaryPrefix);
    });
  }
  swept_.seen = used;
  if (names.empty()) return;
  for (const std::string& name : names) {
    if (const int64_t id = TabletIdOfFileName(name); id >= 0) swept_.seen.insert(id);
  }
  // (Under its own lock this process may remove files, but for those that a snapshot may open yet.)
  const std::unordered_set<int64_t> in_use = ForgetTablets(all_used);
  const auto left =
      std::erase_if(names, [&](const std::string& name) { return in_use.contains(TabletIdOfFileName(name)); });
  swept_.garbage = left > 0;
  if (names.empty()) return;
  if (on_disk_.in_doubt && !SyncCommit().ok()) {
    swept_.garbage = true;
    return;
  }
  on_disk_.in_doubt = false;
  on_disk_.version = catalog_->others_version();
  const bool removed = reader_lock_->WhileAlone([&] {
    for (const std::string& name : names) {
      if (unlink(FilePath(name).c_str()) == 0 || errno == ENOENT) swept_.seen.erase(TabletIdOfFileName(name));
    }
  });
  swept_.garbage |= !removed;
}

}  // namespace tessera
