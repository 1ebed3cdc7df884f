// INSERTs of several sessions that share commits: what they save, and that each is there or not, as its session was told.
#include "session/insert_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "session/engine.h"
#include "session/session.h"
#include "shell/result_text.h"

namespace tessera {

/// Of the commit log, and how many of the next ones fail.
std::atomic<int> syncs{0}, failing_syncs{0};

namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 16;

/// The result as CSV, or the tag.
Result<std::string> Ask(Session* session, const std::string& sql) {
  std::string out;
  ResultTextOptions options;
  options.format = ResultFormat::kCsv;
  const auto writer = MakeResultText(
      options,
      [&](std::string_view text) {
        out += text;
        return Status::Ok();
      },
      [&](const std::string& tag) { out += tag; });
  TESSERA_TRY(session->Execute(sql, writer.get()));
  return out;
}

class InsertQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path parent = access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string path = (parent / "insert-queue-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
    session_ = Open();
    for (const char* sql : {"CREATE TABLE t (k INTEGER PRIMARY KEY, thread INTEGER NOT NULL CHECK (thread < 100))",
                            "CREATE TABLE u (k INTEGER, thread INTEGER)", "INSERT INTO t VALUES (-1, -1)",
                            "INSERT INTO u VALUES (-1, -1)"})
      Expect(session_.get(), sql);
    syncs = failing_syncs = 0;
  }
  void TearDown() override {
    session_.reset();
    fs::remove_all(folder_);
  }

  std::unique_ptr<Session> Open() const {
    SessionOptions options;
    options.directory = folder_ + "/d";
    options.device = DeviceChoice::kHost;
    options.threads = 1;
    options.engine = engine_;
    Result<std::unique_ptr<Session>> session = Session::Open(options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return std::move(*session);
  }
  static void Expect(Session* session, const std::string& sql, const std::string& answer = "") {
    const Result<std::string> got = Ask(session, sql);
    ASSERT_TRUE(got.ok()) << sql << ": " << got.status().message();
    if (!answer.empty()) {
      EXPECT_EQ(*got, answer) << sql;
    }
  }
  /// f(session, thread) in each of the threads, at once.
  void InThreads(const std::function<void(Session*, int)>& f) const {
    std::vector<std::thread> threads;
    std::atomic<int> ready{0};
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const std::unique_ptr<Session> session = Open();
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        f(session.get(), thread);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  const std::shared_ptr<Engine> engine_ = std::make_shared<Engine>();
  std::string folder_;
  std::unique_ptr<Session> session_;
};

std::string Row(int k, int thread) { return "(" + std::to_string(k) + ", " + std::to_string(thread) + ")"; }

TEST_F(InsertQueueTest, SessionsShareSyncs) {
  constexpr int kRounds = 25;
  InThreads([](Session* session, int thread) {
    for (int round = 0; round < kRounds; ++round) {
      Expect(session, "INSERT INTO t VALUES " + Row(thread * kRounds + round, thread));
      // What is acknowledged is seen at once.
      Expect(session, "SELECT count(*) AS n FROM t WHERE thread = " + std::to_string(thread),
             "n\n" + std::to_string(round + 1) + "\n");
    }
  });
  EXPECT_LT(syncs, kThreads * kRounds / 2);
  Expect(session_.get(), "SELECT count(*) AS n, count(DISTINCT k) AS k, max(k) AS m FROM t WHERE k >= 0",
         "n,k,m\n400,400,399\n");
  session_ = Open();
  Expect(session_.get(), "SELECT count(*) AS n, count(DISTINCT thread) AS t FROM t WHERE k >= 0", "n,t\n400,16\n");
}

TEST_F(InsertQueueTest, EachHasItsOwnError) {
  constexpr int kKeys = 20;
  std::atomic<int> stored{0}, refused{0}, others{0};
  InThreads([&](Session* session, int thread) {
    for (int key = 0; key < kKeys; ++key) {
      // All want the same key, and one gets it; but some break another rule, and some have another table.
      const bool is_wrong = thread % 8 == 1;
      const bool is_other = thread % 8 == 2;
      const std::string sql = std::string("INSERT INTO ") + (is_other ? "u" : "t") + " VALUES " +
                              Row(key, is_wrong ? 100 + thread : thread);
      const Result<std::string> got = Ask(session, sql);
      if (is_wrong) {
        EXPECT_FALSE(got.ok());
        EXPECT_EQ(got.ok() ? "" : std::string(got.status().sqlstate()), "23514");
      } else if (is_other) {
        EXPECT_TRUE(got.ok());
        ++others;
      } else if (got.ok()) {
        ++stored;
      } else {
        EXPECT_EQ(std::string(got.status().sqlstate()), "23505") << got.status().message();
        ++refused;
      }
    }
  });
  EXPECT_EQ(stored, kKeys);
  EXPECT_EQ(refused, (kThreads - 4) * kKeys - kKeys);
  Expect(session_.get(), "SELECT count(*) AS n, count(DISTINCT k) AS k FROM t WHERE k >= 0", "n,k\n20,20\n");
  Expect(session_.get(), "SELECT count(*) AS n FROM u WHERE k >= 0", "n\n" + std::to_string(others) + "\n");
}

TEST_F(InsertQueueTest, AFailedSyncFailsAllThatShareIt) {
  constexpr int kRounds = 12;
  std::atomic<int> stored{0}, failed{0};
  InThreads([&](Session* session, int thread) {
    for (int round = 0; round < kRounds; ++round) {
      if (thread == 0 && round % 4 == 1) failing_syncs = 1;
      const Result<std::string> got = Ask(session, "INSERT INTO t VALUES " + Row(thread * kRounds + round, thread));
      stored += got.ok() ? 1 : 0;
      failed += got.ok() ? 0 : 1;
      if (!got.ok()) {
        EXPECT_NE(got.status().message().find("cannot sync"), std::string::npos) << got.status().message();
      }
    }
  });
  EXPECT_GE(failed, 2);
  for (const bool anew : {false, true}) {
    if (anew) session_ = Open();
    Expect(session_.get(), "SELECT count(*) AS n FROM t WHERE k >= 0", "n\n" + std::to_string(stored) + "\n");
  }
}

TEST_F(InsertQueueTest, OneThatWaitsMayBeCancelledAndIsNotKeptForLong) {
  Expect(session_.get(), "BEGIN");
  Expect(session_.get(), "INSERT INTO u VALUES (1, 1)");
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int> cancelled{0}, busy{0};
  InThreads([&](Session* session, int thread) {
    Expect(session, "SET lock_timeout = " + std::to_string(thread < 8 ? 60000 : 400));
    std::thread other;
    if (thread < 8) {
      other = std::thread([session] {
        std::this_thread::sleep_for(std::chrono::milliseconds(900));
        session->Cancel();
      });
    }
    const Result<std::string> got = Ask(session, "INSERT INTO t VALUES " + Row(thread, thread));
    if (other.joinable()) other.join();
    EXPECT_FALSE(got.ok());
    cancelled += !got.ok() && got.status().code() == ErrorCode::kCancelled ? 1 : 0;
    busy += !got.ok() && got.status().code() == ErrorCode::kBusy ? 1 : 0;
  });
  EXPECT_EQ(cancelled, 8);
  EXPECT_EQ(busy, 8);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  Expect(session_.get(), "COMMIT");
  Expect(session_.get(), "INSERT INTO t VALUES (0, 0)");
  Expect(session_.get(), "SELECT count(*) AS n FROM t WHERE k >= 0", "n\n1\n");
}

TEST_F(InsertQueueTest, TablesThatChangeMeanwhile) {
  InThreads([](Session* session, int thread) {
    for (int round = 0; round < 15; ++round) {
      if (thread == 0) {
        Expect(session, round % 2 == 0 ? "ALTER TABLE u ADD COLUMN more INTEGER" : "ALTER TABLE u DROP COLUMN more");
        continue;
      }
      const Result<std::string> got = Ask(session, "INSERT INTO u (k, thread) VALUES " + Row(round, thread));
      if (!got.ok()) {
        EXPECT_NE(got.status().message().find("changed"), std::string::npos) << got.status().message();
        --round;
      }
    }
  });
  Expect(session_.get(), "SELECT count(*) AS n, count(DISTINCT (k * 100 + thread)) AS d FROM u WHERE k >= 0",
         "n,d\n225,225\n");
}

}  // namespace
}  // namespace tessera

// (In place of the C library's; as slow as a disk.)
extern "C" int fdatasync(int fd) {
  if (tessera::fs::read_symlink("/proc/self/fd/" + std::to_string(fd)).string().ends_with("/commit.log")) {
    ++tessera::syncs;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    int failing = tessera::failing_syncs;
    // (Who syncs what others have written may read it alone.)
    const bool writes = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
    if (writes && failing > 0 && tessera::failing_syncs.compare_exchange_strong(failing, failing - 1)) {
      errno = EIO;
      return -1;
    }
  }
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
