// The machine loses power. A workload's calls are written down; then, after a prefix of them, what had not been synced is
// lost, kept or half kept, in any order, entries of directories as well as sectors of files. The database must open and
// hold exactly the statements that were acknowledged, or those and the one that was under way; and it goes on.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "base/status.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/sequence.h"
#include "tablet/database.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/tablet/sample_database.h"
#include "tests/torture/campaign.h"
#include "tests/torture/file_layer.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const SqlType kInteger = SqlType::Of(TypeId::kInteger);
constexpr size_t kSector = 512;
constexpr uint64_t kTrialsPerWorkload = 100;

/// A change of a file or of the entries of a directory. Paths are relative to the recorder's folder.
struct Change {
  enum Kind { kWrite, kTruncate, kSync, kCreate, kRename, kUnlink, kMakeDirectory, kSyncDirectory } kind;
  uint32_t file = 0;     ///< the first three, kCreate
  std::string path, to;  ///< the others
  size_t offset = 0;     ///< kTruncate: the new size
  std::string bytes;
};

class Recorder final : public FileLayer {
 public:
  explicit Recorder(const std::string& folder) : folder_(folder + "/") {}

  long Call(const FileCall& call, const std::function<long(size_t)>& system) override {
    if (call.kind == FileCallKind::kThread || call.kind == FileCallKind::kMap) return system(0);
    std::lock_guard lock(mutex_);
    const std::optional<std::string> path = call.fd >= 0 ? PathOf(call.fd) : Relative(call.path);
    const long result = system(call.bytes.size());
    const int error = errno;
    if (path && result >= 0) Record(call, *path, result);
    errno = error;
    return result;
  }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::optional<std::string> Relative(std::string_view path) const {
    if (!path.starts_with(folder_)) return std::nullopt;
    return std::string(path.substr(folder_.size()));
  }
  std::optional<std::string> PathOf(int fd) const {
    char path[4096];
    const ssize_t size = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path, sizeof path);
    if (size <= 0) return std::nullopt;
    const std::string_view text(path, static_cast<size_t>(size));
    return text == std::string_view(folder_).substr(0, folder_.size() - 1) ? std::string() : Relative(text);
  }
  void Add(Change change) { changes_.push_back(std::move(change)); }

  void Record(const FileCall& call, const std::string& path, long result) {
    const auto known = files_.find(path);
    switch (call.kind) {
      case FileCallKind::kOpen:
        if ((call.flags & O_CREAT) != 0 && known == files_.end()) {
          files_[path] = ++last_file_;
          Add({Change::kCreate, last_file_, path, {}, 0, {}});
        } else if ((call.flags & O_TRUNC) != 0) {
          Add({Change::kTruncate, known->second, {}, {}, 0, {}});
        }
        break;
      case FileCallKind::kWrite:
        if (known == files_.end()) break;  // it has no name any more
        Add({Change::kWrite,
             known->second,
             {},
             {},
             static_cast<size_t>(call.offset),
             std::string(call.bytes.substr(0, static_cast<size_t>(result)))});
        break;
      case FileCallKind::kTruncate:
        if (known != files_.end())
          Add({Change::kTruncate, known->second, {}, {}, static_cast<size_t>(call.offset), {}});
        break;
      case FileCallKind::kSync:
        if (known != files_.end()) {
          Add({Change::kSync, known->second, {}, {}, 0, {}});
        } else {
          Add({Change::kSyncDirectory, 0, path, {}, 0, {}});
        }
        break;
      case FileCallKind::kRename: {
        const std::string to = *Relative(call.to);
        Add({Change::kRename, 0, path, to, 0, {}});
        files_[to] = known->second;
        files_.erase(path);
        break;
      }
      case FileCallKind::kUnlink:
        Add({Change::kUnlink, 0, path, {}, 0, {}});
        files_.erase(path);
        break;
      case FileCallKind::kMakeDirectory:
        Add({Change::kMakeDirectory, 0, path, {}, 0, {}});
        break;
      default:
        break;
    }
  }

  const std::string folder_;
  std::mutex mutex_;
  std::map<std::string, uint32_t> files_;
  uint32_t last_file_ = 0;
  std::vector<Change> changes_;
};

/// What a disk holds after some changes, and what it may hold.
class Disk {
 public:
  void Apply(const Change& change) {
    switch (change.kind) {
      case Change::kWrite:
      case Change::kTruncate:
        files_[change.file].pending.push_back(&change);
        break;
      case Change::kSync: {
        File& file = files_[change.file];
        for (const Change* c : file.pending) ApplyTo(&file.bytes, *c);
        file.pending.clear();
        break;
      }
      case Change::kSyncDirectory:
        std::erase_if(pending_entries_, [&](const Change* c) {
          if (fs::path(c->path).parent_path() != change.path) return false;
          ApplyEntry(*c);
          return true;
        });
        break;
      default:
        pending_entries_.push_back(&change);
        break;
    }
  }

  /// The power goes. Of what is not synced each piece is kept with one of these probabilities, in percent.
  void LosePower(Campaign* campaign, uint64_t entries, uint64_t sectors) {
    for (const Change* c : pending_entries_) {
      if (campaign->Random(100) < entries) ApplyEntry(*c);
    }
    for (auto& [number, file] : files_) {
      for (const Change* c : file.pending) {
        if (c->kind == Change::kTruncate) {
          if (campaign->Random(100) < sectors) ApplyTo(&file.bytes, *c);
          continue;
        }
        for (size_t at = 0; at < c->bytes.size();) {
          const size_t end = std::min(c->bytes.size(), (c->offset + at) / kSector * kSector + kSector - c->offset);
          if (campaign->Random(100) < sectors) {
            ApplyTo(&file.bytes, {Change::kWrite, 0, {}, {}, c->offset + at, c->bytes.substr(at, end - at)});
          }
          at = end;
        }
      }
    }
  }

  void WriteTo(const std::string& folder) const {
    // A directory's name is less than those of its files.
    for (const auto& [path, file] : entries_) {
      if (const fs::path parent = fs::path(path).parent_path(); !parent.empty() && !entries_.contains(parent)) continue;
      if (file == 0) {
        fs::create_directory(folder + "/" + path);
      } else {
        const auto at = files_.find(file);
        WriteNewFile(folder + "/" + path, at == files_.end() ? std::string() : at->second.bytes);
      }
    }
  }

 private:
  struct File {
    std::string bytes;
    std::vector<const Change*> pending;
  };

  static void ApplyTo(std::string* bytes, const Change& change) {
    if (change.kind == Change::kTruncate) {
      bytes->resize(change.offset);
      return;
    }
    if (bytes->size() < change.offset + change.bytes.size()) bytes->resize(change.offset + change.bytes.size());
    bytes->replace(change.offset, change.bytes.size(), change.bytes);
  }
  void ApplyEntry(const Change& change) {
    if (change.kind == Change::kCreate) entries_[change.path] = change.file;
    if (change.kind == Change::kMakeDirectory) entries_[change.path] = 0;
    if (change.kind == Change::kUnlink) entries_.erase(change.path);
    if (change.kind != Change::kRename) return;
    const auto from = entries_.find(change.path);
    if (from == entries_.end()) return;
    const uint32_t file = from->second;
    entries_.erase(from);
    entries_[change.to] = file;
  }

  std::map<uint32_t, File> files_;
  std::map<std::string, uint32_t> entries_;  ///< 0: a directory
  std::vector<const Change*> pending_entries_;
};

/// After this many changes the database held this, and its user knew.
struct Acknowledged {
  size_t changes;
  std::string contents;
};

Status Insert(Database* database, const std::string& table, int64_t first, size_t rows) {
  TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database->Write(table));
  RowBatch batch;
  batch.rows = rows;
  batch.columns.resize(1);
  batch.columns[0].type = kInteger;
  for (size_t i = 0; i < rows; ++i) batch.columns[0].fixed.push_back(first + static_cast<int64_t>(i));
  TESSERA_TRY(writer->Append(batch, 1));
  return writer->Commit();
}

/// Some rows of the first tablet, if there is one.
Status Delete(Database* database, const std::string& table, uint64_t which) {
  TESSERA_ASSIGN(const auto snapshot, database->Read());
  const std::shared_ptr<const TableInfo> info = snapshot->Find(table);
  if (info->tablets.empty()) return {};
  TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database->Write(table));
  const auto row = static_cast<int64_t>(which % info->tablets[0]->rows());
  TESSERA_TRY(writer->Delete(std::vector<int64_t>{0, row}, nullptr).status());
  return writer->Commit();
}

constexpr char kSequence[] = "s";

/// The next value of the sequence, which is made first if it is not there.
Status TakeValue(Database* database) {
  return database->ChangeNames([](CatalogNames* names) -> Status {
    if (!names->sequences.empty()) return NextOf(&names->sequences[0]).status();
    names->sequences.emplace_back().name = kSequence;
    return {};
  });
}

/// Tables and the sequence.
Result<std::string> StateOf(Database* database) {
  TESSERA_ASSIGN(std::string state, ContentsOf(database));
  TESSERA_ASSIGN(const CatalogNames names, database->ReadNames());
  for (const Sequence& s : names.sequences) state += fmt::format("{} {} {}\n", s.name, s.value, s.was_given);
  return state;
}

/// Some changes in one transaction, which ends in one way or the other.
Status Together(Database* database, const std::vector<std::string>& tables, int64_t first, bool commits) {
  TESSERA_TRY(database->BeginTransaction());
  Status status = Insert(database, tables[0], first, 2);
  if (status.ok()) status = TakeValue(database);
  for (const std::string& table : tables) {
    if (status.ok()) status = Insert(database, table, first + 100, 1);
  }
  if (status.ok() && commits) return database->CommitTransaction();
  database->RollBackTransaction();
  return status;
}

/// Every third row gets another value.
Status Update(Database* database, const std::string& table, int64_t first) {
  TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database->Write(table));
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, database->Read());
  const std::shared_ptr<const TableInfo> info = snapshot->Find(table);
  RowBatch batch;
  batch.columns.resize(1);
  batch.columns[0].type = kInteger;
  std::vector<int64_t> numbers;
  for (size_t t = 0; t < info->tablets.size(); ++t) {
    for (uint32_t row = 0; row < info->tablets[t]->rows(); row += 3) {
      numbers.push_back((static_cast<int64_t>(t) << kRowNumberBits) + row);
      batch.columns[0].fixed.push_back(first + row);
    }
  }
  batch.rows = numbers.size();
  const int column = 0;
  TESSERA_TRY(writer->Update({&column, 1}, std::move(batch), numbers, 1));
  return writer->Commit();
}

Status CreateTable(Database* database, const std::string& name) {
  TableSchema schema;
  schema.name = name;
  schema.columns = {{"k", kInteger, false}};
  schema.tablet_rows = 16;
  return database->CreateTable(schema, true);
}

class Power {
 public:
  Power(Campaign* campaign, const ScratchFolder& scratch) : campaign_(campaign), scratch_(scratch) {}

  void Trial() {
    const uint64_t workload = campaign_->trial() / kTrialsPerWorkload;
    if (recorder_ == nullptr || workload != workload_) {
      workload_ = workload;
      if (Status status = RunWorkload(workload); !status.ok()) {
        campaign_->Break("the workload: " + status.message());
        return;
      }
    }
    const std::vector<Change>& changes = recorder_->changes();
    const size_t prefix = campaign_->Random(changes.size() + 1);
    constexpr uint64_t kKept[] = {0, 10, 50, 90, 100};
    const uint64_t entries = kKept[campaign_->Random(5)], sectors = kKept[campaign_->Random(5)];
    Disk disk;
    for (size_t i = 0; i < prefix; ++i) disk.Apply(changes[i]);
    disk.LosePower(campaign_, entries, sectors);
    const std::string folder = scratch_ / "after";
    fs::remove_all(folder);
    fs::create_directory(folder);
    disk.WriteTo(folder);

    const std::string what =
        fmt::format("workload {}, after {} of {} changes, {} % of entries and {} % of sectors kept", workload, prefix,
                    changes.size(), entries, sectors);
    const auto next = std::upper_bound(acknowledged_.begin(), acknowledged_.end(), prefix,
                                       [](size_t n, const Acknowledged& a) { return n < a.changes; });
    const std::string& known = (next - 1)->contents;
    const Result<std::string> contents = StateIn(folder + "/d");
    if (!contents.ok()) {
      campaign_->Break(what + ": " + contents.status().message());
    } else if (*contents != known && (next == acknowledged_.end() || *contents != next->contents)) {
      campaign_->Break(what + ": it holds\n" + *contents + "instead of\n" + known);
    } else if (Status status = GoOn(folder + "/d", *contents); !status.ok()) {
      campaign_->Break(what + ": the next statement: " + status.message());
    }
  }

 private:
  static Result<std::string> StateIn(const std::string& directory) {
    TESSERA_ASSIGN(const auto database, Database::Open(directory, OpenMode::kReadWrite));
    return StateOf(database.get());
  }

  Status RunWorkload(uint64_t number) {
    const std::string folder = scratch_ / "before";
    fs::remove_all(folder);
    fs::create_directory(folder);
    recorder_ = std::make_unique<Recorder>(folder);
    acknowledged_ = {{0, ""}};
    std::mt19937_64 random(number * 7919 + 1);
    SetFileLayer(recorder_.get());
    const Status status = Statements(folder, &random);
    SetFileLayer(nullptr);
    return status;
  }

  Status Statements(const std::string& folder, std::mt19937_64* random) {
    // Of small changes there are many in the commit log before another one takes them over.
    const bool small = (*random)() % 2 == 0;
    const int statements = small ? 30 : 12;
    std::unique_ptr<Database> database;
    for (int i = 0; i < statements; ++i) {
      // Other statements find a cached catalog, or one that they read anew.
      if (database == nullptr || (*random)() % (small ? 6 : 3) == 0) {
        database.reset();
        TESSERA_ASSIGN(database, Database::Open(folder + "/d", OpenMode::kReadWrite));
      }
      const std::string table = fmt::format("t{}", (*random)() % 2);
      const size_t rows = 1 + (*random)() % (small ? 3 : 50);
      TESSERA_ASSIGN(const auto snapshot, database->Read());
      if (snapshot->Find(table) == nullptr) {
        TESSERA_TRY(CreateTable(database.get(), table));
      } else if ((*random)() % (small ? 20 : 8) == 0) {
        TESSERA_TRY(database->DropTable(table, false));
      } else if ((*random)() % 6 == 0) {
        TESSERA_TRY(Delete(database.get(), table, (*random)()));
      } else if ((*random)() % 10 == 0) {
        std::vector<std::string> tables{table};
        for (const char* other : {"t0", "t1"}) {
          if (other != table && snapshot->Find(other) != nullptr) tables.emplace_back(other);
        }
        TESSERA_TRY(Together(database.get(), tables, 1000 * i, (*random)() % 2 == 0));
      } else if ((*random)() % 6 == 0) {
        TESSERA_TRY(TakeValue(database.get()));
      } else if ((*random)() % (small ? 8 : 3) == 0) {
        std::string csv;
        for (size_t r = 0; r < rows; ++r) csv += fmt::format("{}\n", 1000 * i + static_cast<int>(r));
        const std::string file = scratch_ / "rows.csv";
        WriteNewFile(file, csv);
        CopyFromOptions options;
        options.threads = 2;
        TESSERA_TRY(database->CopyFrom(table, file, options).status());
      } else if ((*random)() % 3 == 0) {
        TESSERA_TRY(Update(database.get(), table, -1000 * i));
      } else {
        TESSERA_TRY(Insert(database.get(), table, 1000 * i, rows));
      }
      TESSERA_ASSIGN(std::string contents, StateOf(database.get()));
      acknowledged_.push_back({recorder_->changes().size(), std::move(contents)});
    }
    return {};
  }

  static Status GoOn(const std::string& directory, const std::string& contents) {
    TESSERA_ASSIGN(const auto database, Database::Open(directory, OpenMode::kReadWrite));
    TESSERA_TRY(CreateTable(database.get(), "t9"));
    TESSERA_TRY(Insert(database.get(), "t9", 0, 3));
    TESSERA_TRY(database->DropTable("t9", false));
    TESSERA_ASSIGN(const std::string now, StateOf(database.get()));
    if (now != contents) return {ErrorCode::kInternal, "other tables changed: " + now};
    return {};
  }

  Campaign* const campaign_;
  const ScratchFolder& scratch_;
  uint64_t workload_ = 0;
  std::unique_ptr<Recorder> recorder_;
  std::vector<Acknowledged> acknowledged_;  ///< by the number of changes
};

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("power", argc, argv);
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  const ScratchFolder scratch;
  Power power(&campaign, scratch);
  while (campaign.Next()) power.Trial();
  return campaign.Finish();
}
