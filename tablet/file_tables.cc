#include "tablet/file_tables.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tablet/chunk/tablet_format.h"
#include "tablet/columnar/columnar_tablets.h"
#include "tablet/file_chain.h"
#include "tablet/file_description.h"
#include "tablet/file_keys.h"
#include "tablet/files/made_tablet.h"
#include "tablet/hive_folders.h"
#include "tablet/sqlite/sqlite_tables.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// Files that are kept from statement to statement.
constexpr size_t kMostKept = 16;
/// A file that was written so shortly before it was looked at may be written again without another time.
constexpr int64_t kYoungNanoseconds = 50'000'000;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// A pipe, a terminal or the like: what is read of it is gone.
bool IsReadOnce(const std::string& path) {
  struct stat info;
  return path == "-" || (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

Status Expand(const std::string& pattern, std::vector<std::string>* paths) {
  struct stat info;
  const bool is_pattern = pattern.find_first_of("*?[") != std::string::npos && stat(pattern.c_str(), &info) != 0;
  if (!is_pattern) {
    paths->push_back(pattern);
    return {};
  }
  glob_t found{};
  const int failed = glob(pattern.c_str(), 0, nullptr, &found);
  for (size_t i = 0; i < found.gl_pathc; ++i) paths->emplace_back(found.gl_pathv[i]);
  globfree(&found);
  if (failed == 0) return {};
  return {ErrorCode::kIo, "no file has a name like " + QuoteForMessage(pattern)};
}

}  // namespace

struct FileTables::Entry {
  std::string key;
  std::vector<FileSource> sources;  ///< empty: a table of a lake
  TableSchema schema;
  std::vector<FileIdentity> files;
  bool is_young = false;  ///< not to be kept
  bool used = false;      ///< by the statement
  bool is_loaded = false;
  bool in_place = false;  ///< its tablets are parts of the files
  FileKeys keys;
  std::vector<bool> loaded;  ///< by column
  std::string stored;        ///< the name of its table in database_; "": there is none
  std::shared_ptr<const TableInfo> info;
  std::shared_ptr<const Snapshot> hold;  ///< keeps the files of the tablets
  uint64_t ignored = 0;
};

FileTables::FileTables() = default;
FileTables::~FileTables() = default;

void FileTables::BeginStatement() {
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = **at;
    const auto next = std::next(at);
    if (entry.is_young || (!entry.used && entries_.size() > kMostKept)) {
      (void)Forget(at);
    } else {
      entry.used = false;
    }
    at = next;
  }
  ignored_ = 0;
}

Status FileTables::Forget(std::list<std::unique_ptr<Entry>>::iterator entry) {
  const std::string stored = (*entry)->stored;
  entries_.erase(entry);
  return stored.empty() ? Status() : database_->DropTable(stored, true);
}

FileTables::Entry* FileTables::EntryOf(int64_t table) const {
  for (const auto& entry : entries_) {
    if (entry->used && entry->info->id == table) return entry.get();
  }
  return nullptr;
}

bool FileTables::Has(int64_t table) const { return EntryOf(table) != nullptr; }

std::vector<std::shared_ptr<const TableInfo>> FileTables::used() const {
  std::vector<std::shared_ptr<const TableInfo>> tables;
  for (const auto& entry : entries_) {
    if (entry->used) tables.push_back(entry->info);
  }
  return tables;
}

Result<std::vector<FileIdentity>> FileTables::FindFiles(const FileSpec& spec) {
  std::vector<std::string> paths;
  for (std::string pattern : spec.patterns) {
    if (naming_) {
      TESSERA_ASSIGN(pattern, naming_(pattern));
    }
    TESSERA_TRY(Expand(pattern, &paths));
  }
  for (size_t i = 0; naming_ && i < paths.size(); ++i) TESSERA_TRY(naming_(paths[i]).status());
  std::vector<FileIdentity> files;
  for (const std::string& path : paths) {
    const auto known = std::ranges::find_if(spooled_, [&](const auto& s) { return s.first == path; });
    std::string real = path;
    if (known != spooled_.end()) {
      real = known->second;
    } else if (IsReadOnce(path)) {
      if (!spool_) return Unsupported("a pipe in FROM is not supported here");
      TESSERA_ASSIGN(real, spool_(path));
      spooled_.emplace_back(path, real);
    }
    const bool spooled = real != path;
    Result<FileIdentity> file = IdentifySource(spec.format, real);
    if (!file.ok() && !spooled && paths.size() == 1) {
      return Status(file.status().kind(), file.status().message(),
                    "FROM takes the name of a file that this program can read, or of a table without quotes.");
    }
    if (!file.ok()) return file.status();
    file->path = path;
    files.push_back(*std::move(file));
  }
  return files;
}

FileTables::Entry* FileTables::UsedOf(const std::string& key) const {
  const auto at = std::ranges::find_if(entries_, [&](const auto& e) { return e->key == key && e->used; });
  return at == entries_.end() ? nullptr : at->get();
}

Result<FileTables::Entry*> FileTables::Kept(const std::string& key, const std::vector<FileIdentity>& files) {
  const auto at = std::ranges::find_if(entries_, [&](const auto& entry) { return entry->key == key; });
  if (at == entries_.end()) return nullptr;
  Entry* const entry = at->get();
  if (entry->files != files || entry->is_young) {
    TESSERA_TRY(Forget(at));
    return nullptr;
  }
  entry->used = true;
  ignored_ += entry->ignored;
  return entry;
}

Result<std::shared_ptr<const TableInfo>> FileTables::Find(const FileSpec& spec) {
  const std::string key = spec.Key();
  // A statement that names a file twice reads it once.
  if (const Entry* const used = UsedOf(key)) return used->info;
  TESSERA_ASSIGN(std::vector<FileIdentity> files, FindFiles(spec));
  TESSERA_ASSIGN(Entry * entry, Kept(key, files));
  if (entry == nullptr && in_place_ && shared_ != nullptr) entry = TakeShared(key, files);
  if (entry == nullptr) {
    TESSERA_ASSIGN(entry, MakeEntry(spec, key, std::move(files)));
    Share(*entry);
  }
  return entry->info;
}

FileTables::Entry* FileTables::TakeShared(const std::string& key, const std::vector<FileIdentity>& files) {
  const std::shared_ptr<const TableInPlace> shared = shared_->Find(key, files);
  if (shared == nullptr) return nullptr;
  auto entry = std::make_unique<Entry>();
  entry->key = key;
  entry->sources = shared->sources;
  entry->files = files;
  entry->in_place = entry->used = true;
  auto info = std::make_shared<TableInfo>(*shared->table);
  info->id = next_id_++;
  entry->schema = info->schema;
  entry->loaded.resize(entry->schema.columns.size());
  entry->info = std::move(info);
  entries_.push_front(std::move(entry));
  return entries_.front().get();
}

void FileTables::Share(const Entry& entry) const {
  const auto is_named = [](const FileSource& s) { return s.path == s.identity.path; };
  if (shared_ == nullptr || !entry.in_place || entry.is_young || !std::ranges::all_of(entry.sources, is_named)) return;
  shared_->Keep(std::make_shared<const TableInPlace>(TableInPlace{entry.key, entry.sources, entry.info}));
}

Result<std::shared_ptr<const TableInfo>> FileTables::FindLake(const LakeSpec& spec, const std::string& name) {
  const std::string key = spec.Key();
  if (const Entry* const used = UsedOf(key)) return used->info;
  // (Data files never change: what is committed is another state of the catalog.)
  std::vector<FileIdentity> files;
  TESSERA_ASSIGN(files.emplace_back(), IdentifySqlite(spec.catalog));
  TESSERA_ASSIGN(const Entry* const kept, Kept(key, files));
  if (kept != nullptr) return kept->info;
  auto entry = std::make_unique<Entry>();
  entry->key = key;
  entry->is_young = files[0].written > Now() - kYoungNanoseconds;
  entry->in_place = true;
  auto info = std::make_shared<TableInfo>();
  info->id = next_id_++;
  info->schema.name = name;
  info->files = files;
  TESSERA_TRY(MakeLakeTable(spec, naming_, info.get()));
  entry->files = std::move(files);
  entry->info = std::move(info);
  entry->used = true;
  entries_.push_front(std::move(entry));
  return entries_.front()->info;
}

namespace {

Status Differ(const FileSource& a, const FileSource& b) {
  const auto list = [](const FileSource& s) {
    std::string names;
    for (const ColumnSchema& c : s.schema.columns) names += (names.empty() ? "" : ", ") + c.name;
    return names;
  };
  return SqlError(QuoteForMessage(a.identity.path) + " and " + QuoteForMessage(b.identity.path) +
                      " differ in their columns: " + list(a) + " and " + list(b),
                  -1,
                  "Option union_by_name = true of read_csv, read_parquet and others takes the columns of all of them.");
}

/// Makes the columns of all sources those of one table.
Status Unite(const FileSpec& spec, std::vector<FileSource>* sources, TableSchema* schema) {
  schema->columns = sources->front().schema.columns;
  for (FileSource& source : *sources) {
    const std::vector<ColumnSchema>& columns = source.schema.columns;
    if (!spec.union_by_name && columns.size() != schema->columns.size()) return Differ(sources->front(), source);
    for (size_t c = 0; c < columns.size(); ++c) {
      int to = static_cast<int>(c);
      if (spec.union_by_name) to = schema->Find(columns[c].name);
      if (to < 0) {
        to = static_cast<int>(schema->columns.size());
        schema->columns.push_back(columns[c]);
      }
      ColumnSchema& column = schema->columns[static_cast<size_t>(to)];
      if (column.name != columns[c].name) return Differ(sources->front(), source);
      column.type = TypeOfBoth(column.type, columns[c].type);
      source.columns.push_back(to);
    }
  }
  return {};
}

/// What may be of a column whose values were not looked at.
void SetUnknown(uint64_t rows, ColumnStatistics* s) {
  *s = {};
  s->null_count = rows > 0 ? 1 : 0;
  s->distinct = std::max<uint64_t>(rows / 8, 1);
  s->encoded_bytes = rows * 4;
}

}  // namespace

Result<bool> FileTables::AddInPlace(const Entry& entry, TableInfo* info) {
  std::vector<ColumnarFile> columnar;
  for (const FileSource& source : entry.sources) {
    if (source.format != FileFormat::kParquet) return false;
    const ColumnarSource where{source.path, source.identity.path, source.format};
    columnar.push_back({where, source.identity, source.columns, source.constants, source.groups});
  }
  return AddColumnarTablets(columnar, info);
}

Result<FileTables::Entry*> FileTables::MakeEntry(const FileSpec& spec, const std::string& key,
                                                 std::vector<FileIdentity> files) {
  auto entry = std::make_unique<Entry>();
  entry->key = key;
  double rows = 0;
  for (const FileIdentity& file : files) {
    const auto known = std::ranges::find_if(spooled_, [&](const auto& s) { return s.first == file.path; });
    FileSource& source = entry->sources.emplace_back();
    source.identity = file;
    source.path = known != spooled_.end() ? known->second : file.path;
    double rows_of_file = 0;
    TESSERA_TRY(DescribeFile(spec, in_place_, &source, &rows_of_file));
    rows += rows_of_file;
    entry->is_young = entry->is_young || (known == spooled_.end() && file.written > Now() - kYoungNanoseconds);
  }
  TESSERA_TRY(Unite(spec, &entry->sources, &entry->schema));
  if (spec.hive_partitioning) TESSERA_TRY(AddFolderColumns(&entry->sources, &entry->schema));
  if (spec.filename) {
    if (entry->schema.Find("filename") >= 0)
      return SqlError("the files have a column \"filename\" of their own", -1, "Leave the option filename out.");
    for (FileSource& source : entry->sources)
      source.constants.push_back({static_cast<int>(entry->schema.columns.size()), Value::Text(source.identity.path)});
    entry->schema.columns.push_back({"filename", SqlType::Text()});
  }
  entry->files = files;
  entry->loaded.resize(entry->schema.columns.size());
  auto info = std::make_shared<TableInfo>();
  info->id = next_id_++;
  info->schema = entry->schema;
  info->schema.name = files.size() == 1 ? files[0].path : spec.patterns[0];
  if (!spec.table.empty()) info->schema.name += "." + spec.table;
  info->rows = info->stored_rows = static_cast<uint64_t>(rows);
  info->statistics.resize(entry->schema.columns.size());
  for (ColumnStatistics& s : info->statistics) SetUnknown(info->rows, &s);
  info->files = std::move(files);
  if (in_place_) {
    TESSERA_ASSIGN(entry->in_place, AddInPlace(*entry, info.get()));
  }
  entry->info = std::move(info);
  entry->used = true;
  entries_.push_front(std::move(entry));
  return entries_.front().get();
}

Result<bool> FileTables::FindKeys(int64_t table, const std::vector<bool>& columns, const CopyFromOptions& options) {
  Entry* const entry = EntryOf(table);
  if (entry == nullptr || !entry->in_place) return false;
  TESSERA_ASSIGN(const std::vector<std::vector<int>> keys, entry->keys.Find(*entry->info, columns, options));
  if (keys.empty()) return false;
  auto info = std::make_shared<TableInfo>(*entry->info);
  for (const std::vector<int>& key : keys) {
    for (const int column : key) info->schema.columns[static_cast<size_t>(column)].not_null = true;
    if (info->schema.primary_key.empty()) {
      info->schema.primary_key = key;
    } else {
      info->schema.unique_keys.push_back({"", key});
    }
  }
  entry->info = std::move(info);
  if (!entry->sources.empty()) Share(*entry);
  return true;
}

std::unique_ptr<FileReader> FileTables::ReadAll(int64_t table, const CopyFromOptions& options) const {
  const Entry* const entry = EntryOf(table);
  if (entry == nullptr || entry->sources.empty()) return nullptr;
  const std::vector<bool> all(entry->schema.columns.size(), true);
  return OpenFileChain(entry->sources, entry->schema, all, options);
}

namespace {

/// Rows of which no column is read.
class CountedTablet final : public MadeTablet {
 public:
  CountedTablet(const std::string& path, uint32_t rows, const std::vector<SqlType>& types)
      : MadeTablet(path, rows, types, std::vector<ColumnBounds>(types.size())) {}

 private:
  Result<MadeColumn> Values(int) const override {
    return Status(ErrorCode::kInternal, path() + ": a column is read that was not loaded");
  }
  Status OutOfBounds(int column) const override { return Values(column).status(); }
};

}  // namespace

Status FileTables::CountRows(const CopyFromOptions& options, Entry* entry) {
  uint64_t rows = 0;
  for (const FileSource& source : entry->sources) {
    TESSERA_ASSIGN(const uint64_t found,
                   CountSqliteRows(source.path, source.identity.path, source.table, options.cancel));
    TESSERA_TRY(CheckSame(source));
    rows += found;
  }
  auto info = std::make_shared<TableInfo>(*entry->info);
  info->rows = info->stored_rows = rows;
  std::vector<SqlType> types;
  for (const ColumnSchema& column : info->schema.columns) types.push_back(column.type);
  for (uint64_t first = 0; first < rows; first += kGreatestTabletRows) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(rows - first, kGreatestTabletRows));
    info->tablets.push_back(std::make_shared<const CountedTablet>(info->schema.name, count, types));
  }
  for (ColumnStatistics& s : info->statistics) SetUnknown(rows, &s);
  entry->info = std::move(info);
  entry->is_loaded = true;
  return {};
}

Result<bool> FileTables::Load(int64_t table, const std::vector<bool>& columns, const CopyFromOptions& options,
                              uint64_t rows) {
  Entry* const entry = EntryOf(table);
  if (entry == nullptr || entry->in_place) return false;
  std::vector<bool> wanted = entry->loaded;
  for (size_t c = 0; c < std::min(wanted.size(), columns.size()); ++c) wanted[c] = wanted[c] || columns[c];
  if (entry->is_loaded && wanted == entry->loaded) return false;
  const bool any = std::ranges::count(wanted, true) > 0;
  const bool is_sqlite =
      std::ranges::all_of(entry->sources, [](const FileSource& s) { return s.format == FileFormat::kSqlite; });
  // (Of tablets that are no files other ranks cannot be sent any.)
  if (!any && is_sqlite && in_place_) {
    TESSERA_TRY(CountRows(options, entry));
    return true;
  }
  if (database_ == nullptr) {
    TESSERA_ASSIGN(database_, Database::OpenForFiles());
  }
  std::unique_ptr<FileReader> reader = OpenFileChain(entry->sources, entry->schema, wanted, options);
  TableSchema schema = entry->schema;
  schema.name = "file" + std::to_string(next_id_++);
  std::atomic<uint64_t> ignored{0};
  CopyFromOptions load = options;
  load.ignored = &ignored;
  if (rows != UINT64_MAX && !entry->is_loaded) {
    reader = FirstRows(std::move(reader), rows);
    load.threads = 1;
    entry->is_young = true;
  }
  TESSERA_TRY(database_->LoadNew(schema, false, reader.get(), load).status());
  if (!entry->stored.empty()) {
    entry->hold.reset();
    TESSERA_TRY(database_->DropTable(entry->stored, true));
  }
  entry->stored = schema.name;
  TESSERA_ASSIGN(entry->hold, database_->Read());
  auto info = std::make_shared<TableInfo>(*entry->hold->Find(schema.name));
  info->schema.name = entry->info->schema.name;
  info->files = entry->files;
  for (size_t c = 0; c < wanted.size(); ++c) {
    if (!wanted[c]) SetUnknown(info->rows, &info->statistics[c]);
  }
  entry->info = std::move(info);
  entry->loaded = std::move(wanted);
  entry->is_loaded = true;
  ignored_ += ignored - entry->ignored;
  entry->ignored = ignored;
  return true;
}

}  // namespace tessera
