// Two sessions on one database. For tests of transactions that overlap.
//
// Start at: TwoSessions. One thread, if the test starts no other.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "session/session.h"
#include "tests/session/session_answer.h"

namespace tessera {

class TwoSessions : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "sessions-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    one_ = Open(directory());
    two_ = Open(directory());
  }
  void TearDown() override {
    one_.reset();
    two_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string directory() const { return folder_ + "/db"; }

  static std::unique_ptr<Session> Open(const std::string& directory, DeviceChoice device = DeviceChoice::kHost) {
    SessionOptions options;
    options.directory = directory;
    options.device = device;
    options.threads = 1;
    Result<std::unique_ptr<Session>> session = Session::Open(options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return std::move(*session);
  }

  /// The answer, as comma separated values without a header; "ERROR: ..." if there is none.
  static std::string Run(const std::unique_ptr<Session>& session, const std::string& sql) {
    ResultTextOptions options;
    options.format = ResultFormat::kCsv;
    options.headers = false;
    return Answer(session.get(), sql, options);
  }
  static bool Failed(const std::string& answer) { return answer.starts_with("ERROR"); }

  std::string folder_;
  std::unique_ptr<Session> one_, two_;
};

}  // namespace tessera
