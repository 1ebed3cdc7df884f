// The n-th open, write, sync, rename, unlink, mkdir, truncate, mmap or thread fails, once or from then on, while a
// database is made, loaded, changed by each kind of statement, copied and read. The statement must end, with a message if it fails; and afterwards the
// tables are as before if it failed, and as they should be if it did not.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/database.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/tablet/sample_database.h"
#include "tests/torture/campaign.h"
#include "tests/torture/changes.h"
#include "tests/torture/file_layer.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const SqlType kInteger = SqlType::Of(TypeId::kInteger);

/// Lets the n-th of the calls on a database's files fail.
class FailingLayer final : public FileLayer {
 public:
  FailingLayer(std::string folder, uint32_t kinds, uint64_t n, int error, bool for_ever)
      : folder_(std::move(folder)), kinds_(kinds), n_(n), error_(error), for_ever_(for_ever) {}

  long Call(const FileCall& call, const std::function<long(size_t)>& system) override {
    if ((kinds_ >> static_cast<int>(call.kind) & 1) == 0 || !IsOurs(call)) return system(call.bytes.size());
    const uint64_t number = ++calls_;
    if (number < n_ || (number > n_ && !for_ever_)) return system(call.bytes.size());
    if (call.kind == FileCallKind::kThread) return EAGAIN;
    if (call.kind == FileCallKind::kWrite && error_ == 0) {
      if (call.bytes.size() > 1) return system(call.bytes.size() / 2);
      return system(call.bytes.size());
    }
    errno = error_ == 0 ? EIO : error_;
    return -1;
  }
  uint64_t calls() const { return calls_; }

 private:
  bool IsOurs(const FileCall& call) const {
    if (call.kind == FileCallKind::kThread) return true;
    if (call.fd < 0) return std::strncmp(call.path, folder_.c_str(), folder_.size()) == 0;
    char path[4096];
    const ssize_t size = readlink(fmt::format("/proc/self/fd/{}", call.fd).c_str(), path, sizeof path);
    return size > 0 && std::string_view(path, static_cast<size_t>(size)).starts_with(folder_);
  }

  const std::string folder_;
  const uint32_t kinds_;
  const uint64_t n_;
  const int error_;  ///< 0: a write is short, other calls say EIO
  const bool for_ever_;
  std::atomic<uint64_t> calls_{0};
};

RowBatch Keys(int64_t first, size_t rows) {
  RowBatch batch;
  batch.rows = rows;
  batch.columns.resize(1);
  batch.columns[0].type = kInteger;
  for (size_t i = 0; i < rows; ++i) batch.columns[0].fixed.push_back(first + static_cast<int64_t>(i));
  return batch;
}

Status CreateTable(Database* database, const std::string& name) {
  TableSchema schema;
  schema.name = name;
  schema.columns = {{"k", kInteger, false}};
  schema.primary_key = {0};
  schema.tablet_rows = 16;
  return database->CreateTable(schema, false);
}

Status Insert(Database* database, const std::string& table, const RowBatch& rows) {
  TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database->Write(table));
  TESSERA_TRY(writer->Append(rows, 1));
  return writer->Commit();
}

Status RunChange(const std::string& folder, const char* script) {
  SessionOptions options;
  options.directory = folder + "/changed";
  options.device = DeviceChoice::kHost;
  options.threads = 2;
  TESSERA_ASSIGN(const std::unique_ptr<Session> session, Session::Open(options));
  return RunStatements(session.get(), script);
}

/// What can be done to a database in `folder`/d that has the sample's tables and "n" with 40 keys in tablets of 16.
struct Deed {
  const char* name;
  bool fresh;  ///< there is no database before
  std::function<Status(const std::string& folder)> run;
  bool changes = false;  ///< it is one of changes.h, of the database `folder`/changed
};

Result<std::unique_ptr<Database>> Open(const std::string& folder) {
  return Database::Open(folder + "/d", OpenMode::kReadWrite);
}

const Deed kFirstDeeds[] = {
    {"create a database", true,
     [](const std::string& folder) -> Status {
       TESSERA_ASSIGN(const auto database, Open(folder));
       return CreateTable(database.get(), "first");
     }},
    {"create a table", false,
     [](const std::string& folder) -> Status {
       TESSERA_ASSIGN(const auto database, Open(folder));
       return CreateTable(database.get(), "new");
     }},
    {"insert", false,
     [](const std::string& folder) -> Status {
       TESSERA_ASSIGN(const auto database, Open(folder));
       return Insert(database.get(), "n", Keys(1000, 5));
     }},
    {"insert many", false,
     [](const std::string& folder) -> Status {
       TESSERA_ASSIGN(const auto database, Open(folder));
       return Insert(database.get(), "n", Keys(1000, 100));
     }},
    {"copy", false,
     [](const std::string& folder) -> Status {
       TESSERA_ASSIGN(const auto database, Open(folder));
       CopyFromOptions options;
       options.threads = 3;
       return database->CopyFrom("n", folder + "/n.csv", options).status();
     }},
    {"drop a table", false,
     [](const std::string& folder) -> Status {
       TESSERA_ASSIGN(const auto database, Open(folder));
       return database->DropTable("t", false);
     }},
    {"read", false,
     [](const std::string& folder) -> Status {
       TESSERA_ASSIGN(const auto database, Open(folder));
       return ContentsOf(database.get()).status();
     }},
};

const std::vector<Deed>& Deeds() {
  static const std::vector<Deed> all = [] {
    std::vector<Deed> deeds(std::begin(kFirstDeeds), std::end(kFirstDeeds));
    for (const Change& change : kChanges) {
      deeds.push_back(
          {change.name, false, [&change](const std::string& folder) { return RunChange(folder, change.sql); }, true});
    }
    deeds.push_back({"copy a database", false,
                     [](const std::string& folder) -> Status {
                       TESSERA_ASSIGN(const auto database, Database::Open(folder + "/changed", OpenMode::kReadWrite));
                       return database->CopyTo(folder + "/copy");
                     },
                     true});
    return deeds;
  }();
  return all;
}

constexpr uint32_t kAllKinds = (1u << kFileCallKinds) - 1;
constexpr int kErrors[] = {EIO, ENOSPC, ENOMEM, EINTR, EMFILE, 0};

class Faults {
 public:
  Faults(Campaign* campaign, const ScratchFolder& scratch) : campaign_(campaign), folder_(scratch / "trial") {
    base_ = scratch / "base";
    fs::create_directories(base_);
    Require(FillSampleDatabase(base_ + "/d", 1));
    auto database = Open(base_);
    Require(database.status());
    Require(CreateTable(database->get(), "n"));
    Require(Insert(database->get(), "n", Keys(0, 40)));
    for (const char* sql : kMakeTables) Require(RunChange(base_, sql));
    std::string csv;
    for (int i = 0; i < 200; ++i) csv += fmt::format("{}\n", 1000 + i);
    WriteNewFile(base_ + "/n.csv", csv);
    database->reset();
    for (const bool changes : {false, true}) before_[changes] = Contents(base_, changes);
    calls_.resize(Deeds().size());
    after_.resize(Deeds().size());
    for (size_t d = 0; d < Deeds().size(); ++d) {
      Prepare(Deeds()[d]);
      FailingLayer count(folder_, kAllKinds, UINT64_MAX, EIO, false);
      SetFileLayer(&count);
      const Status status = Deeds()[d].run(folder_);
      SetFileLayer(nullptr);
      Require(status);
      calls_[d] = count.calls();
      after_[d] = Contents(folder_, Deeds()[d].changes);
    }
  }

  void Trial() {
    const size_t d = campaign_->Random(Deeds().size());
    const Deed& deed = Deeds()[d];
    const int error = kErrors[campaign_->Random(std::size(kErrors))];
    const bool for_ever = campaign_->Random(3) == 0;
    // Of all calls, or of those of one kind, which come to their end sooner.
    const bool one_kind = campaign_->Random(3) == 0;
    const uint32_t kinds = one_kind ? 1u << campaign_->Random(kFileCallKinds) : kAllKinds;
    const uint64_t n = 1 + campaign_->Random(one_kind ? 12 : calls_[d]);
    // An EINTR that never ends is tried again for ever, as it must be.
    if (for_ever && error == EINTR) return;
    const std::string what =
        fmt::format("{}, call {} of {:#x} fails {} with {}", deed.name, n, kinds, for_ever ? "for ever" : "once",
                    error == 0 ? "a short write" : strerror(error));
    Prepare(deed);
    const ChildEnd end = RunInChild(30, [&] {
      FailingLayer layer(folder_, kinds, n, error, for_ever);
      SetFileLayer(&layer);
      const Status status = deed.run(folder_);
      SetFileLayer(nullptr);
      if (!status.ok()) fmt::print("{} ({})", status.message(), status.hint());
      return status.ok() ? 0 : status.code() == ErrorCode::kInternal ? 3 : 1;
    });
    if (!end.Returned() || end.status > 1 || (end.status == 1 && end.output.size() < 10)) {
      campaign_->Break(what + ": " + end.Text());
      return;
    }
    const std::string left = Contents(folder_, deed.changes);
    const std::string before = deed.fresh ? "" : before_[deed.changes];
    const bool unknown = end.output.find("may have been made or not") != std::string::npos;
    const bool right = end.status == 0 ? left == after_[d] : left == before || (unknown && left == after_[d]);
    if (!right) {
      campaign_->Break(fmt::format("{}: {}\nand left {}", what, end.Text(),
                                   left == before      ? "what was there before"
                                   : left == after_[d] ? "what it should have made"
                                                       : "neither what was there nor what it should make: " + left));
      return;
    }
    // And it goes on.
    if (deed.changes) {
      const Status next = RunChange(folder_, "CREATE TABLE next (k INTEGER); INSERT INTO next VALUES (1), (2)");
      if (!next.ok()) campaign_->Break(what + ": the next statement: " + next.message());
      return;
    }
    auto database = Open(folder_);
    Status next = database.ok() ? CreateTable(database->get(), "next") : database.status();
    if (next.ok()) next = Insert(database->get(), "next", Keys(0, 3));
    if (!next.ok()) campaign_->Break(what + ": the next statement: " + next.message());
  }

 private:
  static void Require(const Status& status) {
    if (status.ok()) return;
    fmt::print(stderr, "torture_faults: {}\n", status.message());
    std::exit(2);
  }
  /// `changes`: of the database that changes.h changes, and of a copy of it.
  static std::string Contents(const std::string& folder, bool changes) {
    if (changes) {
      std::string all = StateOf(folder + "/changed");
      if (fs::exists(folder + "/copy")) all += "\na copy:\n" + StateOf(folder + "/copy");
      for (const auto& entry : fs::directory_iterator(folder))
        all += entry.path().filename().string().starts_with("copy.") ? "a part of a copy\n" : "";
      return all;
    }
    const Result<std::string> contents = ContentsOf(folder + "/d", OpenMode::kReadWrite);
    return contents.ok() ? *contents : "error: " + contents.status().message();
  }
  void Prepare(const Deed& deed) const {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    if (!deed.fresh) fs::copy(base_, folder_, fs::copy_options::recursive);
  }

  Campaign* const campaign_;
  const std::string folder_;
  std::string base_, before_[2];
  std::vector<uint64_t> calls_;
  std::vector<std::string> after_;
};

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("faults", argc, argv);
  // In memory: a disk's own syncs would take most of the time.
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  const ScratchFolder scratch;
  Faults faults(&campaign, scratch);
  while (campaign.Next()) faults.Trial();
  return campaign.Finish();
}
