// The catalog's side of the commit log: small changes go there, and the next change of SQLite's file takes them over.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tablet/catalog/catalog.h"
#include "tablet/catalog/catalog_checksum.h"
#include "tablet/catalog/catalog_statement.h"
#include "tablet/catalog/log_record.h"
#include "tablet/files/commit_log.h"
#include "tablet/files/file_names.h"
#include "tablet/files/io_error.h"
#include "tablet/files/regular_file.h"

namespace tessera {
namespace {

/// About what a record may take of deleted rows, before they are packed.
constexpr uint64_t kGreatestMarks = CommitLog::kGreatestRecord / 2;
/// A packed row that was deleted among others that were not, at most about this.
constexpr uint64_t kBytesOfMark = 4;

Result<std::string> ReadWhole(const std::string& path, uint64_t bytes) {
  TESSERA_ASSIGN(const FileDescriptor file, OpenRegularFile(path, O_RDONLY));
  std::string out(bytes + 1, '\0');  // a longer one is another, too
  uint64_t got = 0;
  while (got < out.size()) {
    const ssize_t size = pread(file.get(), out.data() + got, out.size() - got, static_cast<off_t>(got));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return IoError("cannot read", path, errno);
    if (size == 0) break;
    got += static_cast<uint64_t>(size);
  }
  out.resize(got);
  return out;
}

Status WriteWhole(const std::string& path, std::string_view bytes) {
  TESSERA_ASSIGN(const FileDescriptor file, OpenRegularFile(path, O_WRONLY | O_CREAT | O_TRUNC));
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return IoError("cannot write", path, written < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

/// About what a record takes of files, and of deleted rows.
struct RecordSize {
  uint64_t files = 0, marks = 0;
  bool IsSmall() const { return files <= CommitLog::kGreatestRecord && marks <= kGreatestMarks; }
};

/// New tablets of `after` and tablets that have lost rows. False: a new one is not one file.
bool AddSize(const TableRecord& before, const TableRecord& after, std::vector<const TabletRecord*>* added,
             RecordSize* size) {
  std::unordered_map<int64_t, const LiveRows*> old;
  for (const TabletRecord& tablet : before.tablets) old[tablet.id] = tablet.live.get();
  for (const TabletRecord& tablet : after.tablets) {
    const auto known = old.find(tablet.id);
    if (known == old.end()) {
      if (tablet.layout != nullptr) return false;
      added->push_back(&tablet);
      size->files += tablet.file_bytes;
    } else if (tablet.live != nullptr && tablet.live.get() != known->second) {
      size->marks += std::min<uint64_t>(tablet.rows / 8, kBytesOfMark * tablet.live->deleted());
    }
  }
  return true;
}

}  // namespace

const char Catalog::kLogSchema[] = R"(
CREATE TABLE log (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  generation  INTEGER NOT NULL
);
)";

std::string Catalog::DirectoryPath() const { return file_.path().substr(0, file_.path().size() - sizeof kCatalogFile); }

Status Catalog::OpenLog(const DatabaseId& database) {
  if (log_ != nullptr) return {};
  const std::string path = DirectoryPath() + "/" + kCommitLogFile;
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    return {ErrorCode::kCorrupt, "database \"" + file_.name() + "\" has lost its commit log \"" + path + "\"",
            "Restore the file from a copy."};
  }
  TESSERA_ASSIGN(log_, CommitLog::Open(path, database, file_.read_only()));
  return {};
}

void Catalog::NoteLogged(LoggedChange change) {
  for (LoggedTable& made : change.tables) {
    for (const LoggedFile& file : made.files)
      logged_files_[file.tablet] = {file.tablet, log_->record_offset() + file.offset, file.bytes};
    LoggedTable& table = logged_[made.after->id];
    if (table.before == nullptr) table.before = std::move(made.before);
    table.after = std::move(made.after);
    table.sketches = std::move(made.sketches);
  }
  for (Sequence& sequence : change.sequences) {
    Sequence& logged = logged_sequences_[sequence.name];
    logged = std::move(sequence);
  }
}

void Catalog::ForgetLogged(int64_t generation) {
  generation_ = generation;
  logged_.clear();
  logged_files_.clear();
  logged_sequences_.clear();
  has_record_ = false;
  if (log_ != nullptr) log_->Restart(static_cast<uint64_t>(generation));
}

Status Catalog::ApplyRecords(CatalogContents* contents, bool of_others) {
  for (;;) {
    if (!std::exchange(has_record_, false)) {
      TESSERA_ASSIGN(const bool next, of_others ? log_->NextOfOthers() : log_->Next());
      if (!next) return {};
    }
    Result<LoggedChange> change = ApplyChange(log_->record(), contents);
    if (!change.ok()) return file_.Corrupt(change.status().message() + ", in the commit log");
    NoteLogged(std::move(*change));
  }
}

Status Catalog::LoadLog(const CatalogContents* before, CatalogContents* contents) {
  ForgetLogged(contents->log_generation);
  if (generation_ == 0) return {};
  TESSERA_TRY(OpenLog(contents->database));
  log_->Restart(static_cast<uint64_t>(generation_));
  TESSERA_TRY(ApplyRecords(contents, false));
  // What has been made of a table stays with it.
  for (auto& [id, logged] : logged_) {
    const auto known = before == nullptr ? nullptr : before->Find(logged.after->schema.name);
    if (known == nullptr || known->id != id || known->checksum != logged.after->checksum) continue;
    *std::ranges::find(contents->tables, logged.after) = known;
    logged.after = known;
  }
  // If the machine has lost power, it may have lost the files: they were not synced.
  if (std::exchange(has_checked_files_, true)) return {};
  Status restored = RestoreLoggedFiles(false);
  if (!restored.ok()) has_checked_files_ = false;
  return restored;
}

Status Catalog::RestoreLoggedFiles(bool sync) {
  for (const auto& [id, logged] : logged_) {
    for (const TabletRecord& tablet : logged.after->tablets) {
      const auto file = logged_files_.find(tablet.id);
      if (file == logged_files_.end()) continue;
      const std::string path = DirectoryPath() + "/" + TabletFileName(tablet.id);
      TESSERA_ASSIGN(const std::string bytes, log_->Read(file->second.offset, file->second.bytes));
      const Result<std::string> there = ReadWhole(path, bytes.size());
      if (!there.ok() || *there != bytes) {
        if (file_.read_only()) {
          return {ErrorCode::kIo, "database \"" + file_.name() + "\" was left by a machine that lost power",
                  "Open it once for writing; that restores the files of the last changes."};
        }
        // (Of two processes that do so the second repeats what is right already.)
        const std::string made = DirectoryPath() + "/" + kTemporaryPrefix + "restored-" + std::to_string(getpid()) +
                                 "-" + std::to_string(tablet.id);
        TESSERA_TRY(WriteWhole(made, bytes));
        if (rename(made.c_str(), path.c_str()) != 0) return IoError("cannot rename", made, errno);
      }
      if (!sync) continue;
      TESSERA_ASSIGN(const FileDescriptor synced, OpenRegularFile(path, O_RDONLY));
      if (fsync(synced.get()) != 0) return IoError("cannot sync", path, errno);
    }
  }
  return {};
}

/// Also without records: one may be left that a failing disk has not forgotten.
/// Before the commit (whose journal makes SQLite sync the directory) the disk has the files. Then their bytes in the log are
/// not needed any more.
Status Catalog::TakeOverLog() {
  changing_generation_ = generation_;
  if (generation_ == 0) return {};
  TESSERA_TRY(RestoreLoggedFiles(true));
  for (const auto& [id, logged] : logged_) TESSERA_TRY(WriteChange(*logged.before, *logged.after, logged.sketches));
  for (const auto& [name, logged] : logged_sequences_) TESSERA_TRY(WriteSequenceValue(logged));
  CatalogStatement update(&file_, "UPDATE log SET generation = ?");
  TESSERA_TRY(update.Bind(generation_ + 1).Run());
  ++changing_generation_;
  return {};
}

bool Catalog::PrepareLog(const DatabaseId& database) {
  if (generation_ != 0 || is_open_ || file_.path() == ":memory:") return false;
  const std::string path = DirectoryPath() + "/" + kCommitLogFile;
  log_ = nullptr;
  // (Without one the change is made nevertheless.)
  return CommitLog::Create(path, database).ok() && OpenLog(database).ok();
}

Status Catalog::WriteFirstGeneration() {
  TESSERA_TRY(file_.Execute(kLogSchema));
  TESSERA_TRY(file_.Execute("INSERT INTO log VALUES (1, 1)"));
  TESSERA_TRY(RaiseVersion(kVersionWithLog));
  changing_generation_ = 1;
  return {};
}

bool Catalog::HasVersionFor(const LoggedChange& change) {
  if (change.IsOfOneTable() || has_newest_version_) return true;
  const Result<int64_t> version = QueryInteger(&file_, "PRAGMA user_version");
  has_newest_version_ = version.ok() && *version >= kVersionWithSeveral;
  return has_newest_version_;
}

bool Catalog::FitsRecord(const LoggedChange& change, std::vector<std::vector<NewFile>>* files) {
  std::vector<std::vector<const TabletRecord*>> added(change.tables.size());
  RecordSize size;
  for (size_t t = 0; t < change.tables.size(); ++t) {
    if (!AddSize(*change.tables[t].before, *change.tables[t].after, &added[t], &size)) return false;
  }
  if (!size.IsSmall()) return false;
  if (files == nullptr) return true;
  files->resize(added.size());
  for (size_t t = 0; t < added.size(); ++t) {
    for (const TabletRecord* tablet : added[t]) {
      Result<std::string> bytes = ReadWhole(DirectoryPath() + "/" + TabletFileName(tablet->id), tablet->file_bytes);
      if (!bytes.ok() || bytes->size() != tablet->file_bytes) return false;
      (*files)[t].push_back({tablet->id, std::move(*bytes)});
    }
  }
  return true;
}

Result<bool> Catalog::Log(const CatalogContents& before, const CatalogContents& after,
                          const SketchesByTable& sketches) {
  if (generation_ == 0 || is_open_ || log_ == nullptr || log_->failed()) return false;
  LoggedChange change = DifferenceOf(before, after, sketches);
  if (change.IsEmpty() && after.next_tablet_id == before.next_tablet_id) return true;
  std::vector<std::vector<NewFile>> files;
  if (!FitsRecord(change, &files) || !HasVersionFor(change)) return false;
  const std::string record = EncodeChange(files, &change);
  if (!log_->MakeRoom(record.size()).ok()) return false;
  // Made now: after the commit nothing may fail. (If this does, all is read anew.)
  const int64_t version = std::exchange(last_data_version_, -1);
  for (const LoggedTable& table : change.tables) {
    logged_.try_emplace(table.after->id);
    for (const LoggedFile& file : table.files) logged_files_.try_emplace(file.tablet);
  }
  for (const Sequence& sequence : change.sequences) logged_sequences_.try_emplace(sequence.name);
  TESSERA_TRY(log_->Append(record, file_.lock_timeout()));
  last_data_version_ = version;
  NoteLogged(std::move(change));
  return true;
}

Result<bool> Catalog::LogUpdate(const CatalogContents& state, const TableRecord& before, TableRecord after,
                                const std::vector<std::string>& sketches, int64_t next_tablet_id,
                                CatalogContents* made) {
  if (generation_ == 0 || is_open_) return false;
  SetVersion(before, &after);
  *made = state;
  made->next_tablet_id = next_tablet_id;
  const int64_t id = after.id;
  for (auto& table : made->tables) {
    if (table->id == id) table = std::make_shared<const TableRecord>(std::move(after));
  }
  return Log(state, *made, {{id, sketches}});
}

Result<bool> Catalog::LogNames(const CatalogContents& state, const CatalogNames& names, CatalogContents* made) {
  if (generation_ == 0 || is_open_ || !DifferInValuesAlone(state.names, names)) return false;
  *made = state;
  made->names = names;
  return Log(state, *made, {});
}

}  // namespace tessera
