// Statements that took long, a line of JSON each. A literal after the word PASSWORD is written as ***.
//
// Start at: SlowLog::Write. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "session/session.h"

namespace tessera::server {

struct SlowStatement {
  int64_t pid = 0;
  std::string_view user, application, client, sql;
  double milliseconds = 0;  ///< until all rows were sent
  Timing timing;
  Status status;
};

class SlowLog {
 public:
  /// `file`: "" is the standard error. `milliseconds`: a statement that took as long is written.
  SlowLog(std::string file, double milliseconds) : file_(std::move(file)), milliseconds_(milliseconds) {}
  ~SlowLog();
  SlowLog(const SlowLog&) = delete;
  SlowLog& operator=(const SlowLog&) = delete;

  /// Opens the file anew: what was moved away gets no more lines. Errors: kIo; the file that was open stays.
  Status Open();
  /// No effect if it was fast. What cannot be written is lost: the statement has run.
  void Write(const SlowStatement& statement);

 private:
  const std::string file_;
  const double milliseconds_;
  std::mutex mutex_;  ///< guards what follows
  int descriptor_ = -1;
};

/// The text without what stands after the word PASSWORD.
std::string WithoutPasswords(std::string_view sql);

}  // namespace tessera::server
