// Damaged messages between ranks: bytes of every kind of message, changed, are refused or harmless; and a job of three
// ranks in one process of which one message is changed on its way ends: with rows, an error or a message.
//
// What a changed value makes of the rows is not looked at: messages have no checksums, because MPI's transports do.
// Some changes leave a message that is right in itself and wrong for its place, and ranks then wait for each other, as
// they would for one that works for long. How often that was is said at the end.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "mpi/cluster.h"
#include "session/session.h"
#include "tests/mpi/message_feeds.h"
#include "tests/mpi/thread_ranks.h"
#include "tests/torture/campaign.h"

namespace {

using namespace tessera;

constexpr int kRanks = 3;
/// How a job ends besides with 0.
constexpr int kWrongRows = 1, kEnded = 10, kWaits = 11;
/// No rank computes for that long here.
constexpr auto kPatience = std::chrono::milliseconds(2500);

/// Changes something in the bytes.
void Damage(Campaign* campaign, std::string* bytes) {
  const auto at = [&](size_t room) { return bytes->size() <= room ? 0 : campaign->Random(bytes->size() - room + 1); };
  if (bytes->empty()) {
    bytes->push_back(static_cast<char>(campaign->Random(256)));
    return;
  }
  switch (campaign->Random(7)) {
    case 0:
      (*bytes)[at(1) % bytes->size()] ^= static_cast<char>(1 << campaign->Random(8));
      return;
    case 1:
      (*bytes)[at(1) % bytes->size()] = static_cast<char>(campaign->Random(256));
      return;
    case 2:
      bytes->resize(campaign->Random(bytes->size()));
      return;
    case 3:
      bytes->append(campaign->Random(40), static_cast<char>(campaign->Random(256)));
      return;
    case 4: {  // a piece of it twice
      const size_t from = at(1), length = std::min<size_t>(campaign->Random(64), bytes->size() - from);
      bytes->insert(at(1), bytes->substr(from, length));
      return;
    }
    default: {  // a number
      const uint64_t numbers[] = {0,
                                  1,
                                  2,
                                  255,
                                  UINT32_MAX,
                                  uint64_t{1} << 32,
                                  UINT64_MAX,
                                  INT64_MAX,
                                  INT64_MAX - 7,
                                  uint64_t{1} << 63,
                                  bytes->size(),
                                  bytes->size() + 1,
                                  uint64_t{1} << 40,
                                  campaign->random()()};
      const uint64_t number = numbers[campaign->Random(std::size(numbers))];
      const size_t size = std::min<size_t>(bytes->size(), campaign->Random(2) == 0 ? 4 : 8);
      memcpy(bytes->data() + at(size), &number, size);
    }
  }
}

class Lines final : public ResultWriter {
 public:
  explicit Lines(std::string* out) : out_(*out) {}
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&& batch) override {
    for (size_t r = 0; r < batch.rows; ++r) {
      for (const ColumnVector& c : batch.columns) {
        if (!c.IsNull(r)) AppendText(c, r, &out_);
        out_ += ',';
      }
      out_ += '\n';
    }
    return Status::Ok();
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }

 private:
  std::string& out_;
};

const char* const kQueries[] = {
    "SELECT b, count(*), sum(a), max(d) FROM t GROUP BY b ORDER BY b",
    "SELECT a, b, d FROM t WHERE a % 3 = 0",
    "SELECT a, b FROM t ORDER BY b, a DESC LIMIT 7",
    "SELECT x.b, count(*) FROM t x JOIN t y ON x.b = y.b GROUP BY x.b ORDER BY x.b",
    "SELECT count(*) FROM t x, t y WHERE x.a < y.a",
    "SELECT a FROM t LIMIT 3",
    "SELECT count(*), max(n) FROM (SELECT b, a % 10 AS k, count(*) AS n FROM t GROUP BY b, a % 10) g WHERE n > 1",
    "SELECT sum(p) FROM (SELECT row_number() OVER (PARTITION BY b ORDER BY a) AS p FROM t) w",
};

/// All rows of the queries from number `first` on, and the errors, by one session.
std::string Answers(Cluster* cluster, const std::string& directory, bool scatter, size_t first) {
  SessionOptions options;
  options.directory = directory;
  options.mode = OpenMode::kReadOnly;
  options.device = DeviceChoice::kHost;
  options.threads = 1;
  options.cluster = cluster;
  options.scatter = scatter;
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  if (!session.ok()) return session.status().message();
  std::string out;
  Lines lines(&out);
  (void)(*session)->Execute("SET replicate_below = 0", &lines);
  (void)(*session)->Execute("SET exchange_above = 10", &lines);
  if (first % 2 == 0) (void)(*session)->Execute("SET join_exchange = on", &lines);
  for (size_t q = 0; q < 2; ++q) {
    const Status status = (*session)->Execute(kQueries[(first + q) % std::size(kQueries)], &lines);
    if (!status.ok()) out += status.message() + "\n";
  }
  return out;
}

/// Joins as a rank does: one that is not ready leaves, which ends the job.
std::unique_ptr<Cluster> Join(test::ThreadRanks* ranks, int rank) {
  std::unique_ptr<Cluster> cluster = Cluster::Over(ranks->Open(rank), "test");
  if (!cluster->ready().ok()) std::_Exit(kEnded);
  return cluster;
}

/// A job on three ranks. Does not return if a rank ends it.
std::string RunJob(const std::string& directory, bool scatter, size_t first, std::function<void(std::string*)> change) {
  test::ThreadRanks ranks(kRanks, std::move(change), [](int) {
    std::fflush(nullptr);
    std::_Exit(kEnded);
  });
  std::atomic<bool> done{false};
  std::thread watch([&] {
    auto last = std::chrono::steady_clock::now();
    for (uint64_t before = UINT64_MAX; !done; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      if (std::chrono::steady_clock::now() - last > kPatience) std::_Exit(kWaits);
      if (before != ranks.steps()) last = std::chrono::steady_clock::now();
      before = ranks.steps();
    }
  });
  std::string answers;
  std::vector<std::thread> others;
  for (int r = 1; r < kRanks; ++r) {
    others.emplace_back([&ranks, r] { (void)Join(&ranks, r)->Serve(1); });
  }
  {
    const std::unique_ptr<Cluster> master = Join(&ranks, 0);
    answers = Answers(master.get(), directory, scatter, first);
    master->Leave(0);
  }
  for (std::thread& t : others) t.join();
  done = true;
  watch.join();
  return answers;
}

int MakeDatabase(const std::string& directory) {
  SessionOptions options;
  options.directory = directory;
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  if (!session.ok()) return 1;
  std::string ignored;
  Lines lines(&ignored);
  std::string rows;
  for (int i = 0; i < 50; ++i)
    rows +=
        fmt::format("{}({}, 'v{}', {})", i == 0 ? "" : ", ", i, i % 5, i % 7 == 0 ? "NULL" : fmt::format("{}.25", i));
  for (const std::string& sql :
       {std::string("CREATE TABLE t (a INTEGER, b TEXT, d DECIMAL(30, 2)) WITH (tablet_rows = 7)"),
        "INSERT INTO t VALUES " + rows}) {
    if (!(*session)->Execute(sql, &lines).ok()) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Campaign campaign("messages", argc, argv);
  const std::vector<std::string> feeds = test::ValidFeeds();
  const ScratchFolder folder;
  const std::string directory = folder / "db";
  const ChildEnd made = RunInChild(60, [&] { return MakeDatabase(directory); });
  uint64_t jobs = 0, ended = 0, waited = 0;
  while (campaign.Next()) {
    if (campaign.trial() == 0) {
      if (made.status != 0) campaign.Break("the database cannot be made: " + made.Text());
      for (size_t i = 0; i < feeds.size(); ++i) {
        if (!test::Feed(feeds[i])) campaign.Break(fmt::format("feed {} is refused as it was written", i));
      }
    }
    if (campaign.trial() % 3 != 0) {
      // Many at once: a child costs more than they do.
      const ChildEnd end = RunInChild(60, [&] {
        for (int i = 0; i < 200; ++i) {
          std::string feed = feeds[campaign.Random(feeds.size())];
          for (uint64_t n = 1 + campaign.Random(3); n > 0; --n) {
            std::string bytes = feed.substr(1);
            Damage(&campaign, &bytes);
            feed.replace(1, std::string::npos, bytes);
          }
          (void)test::Feed(feed);
        }
        return 0;
      });
      if (end.status != 0) campaign.Break("bytes of a message: " + end.Text());
      continue;
    }
    const bool scatter = campaign.Random(3) == 0;
    const size_t first = campaign.Random(std::size(kQueries));
    const bool whole = campaign.trial() == 0;
    const uint64_t damaged = whole ? UINT64_MAX : campaign.Random(130);
    uint64_t number = 0;
    const ChildEnd end = RunInChild(60, [&] {
      const std::string answers = RunJob(directory, scatter, first, [&](std::string* bytes) {
        if (number++ == damaged) Damage(&campaign, bytes);
      });
      if (number > damaged) return 0;
      return answers == Answers(nullptr, directory, false, first) ? 0 : kWrongRows;
    });
    ++jobs;
    ended += end.status == kEnded;
    waited += end.status == kWaits;
    if (end.status != 0 && (whole || (end.status != kEnded && end.status != kWaits)))
      campaign.Break("a job: " + end.Text());
  }
  fmt::print("jobs {}, of which a rank ended {}, and {} waited\n", jobs, ended, waited);
  return campaign.Finish();
}
