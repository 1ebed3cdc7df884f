#include "server/slow_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/lower_case.h"
#include "compiler/parse/sql_scanner.h"

namespace tessera::server {
namespace {

/// Longer texts are cut.
constexpr size_t kMostText = 100'000;

/// 2026-01-31T12:00:00.123Z
std::string Moment() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  const size_t size = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  const auto milliseconds = duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  const std::string digits = std::to_string(1000 + milliseconds);
  return std::string(text, size) + "." + digits.substr(1) + "Z";
}

}  // namespace

std::string WithoutPasswords(std::string_view sql) {
  std::string out;
  bool after_word = false;
  for (size_t at = 0; at < sql.size();) {
    const Token token = NextToken(sql, at);
    if (token.kind == Token::Kind::kEnd) break;
    const std::string_view text = sql.substr(token.begin, token.end - token.begin);
    const bool hides = after_word && token.kind == Token::Kind::kQuoted;
    out += hides ? std::string_view("***") : text;
    if (token.kind != Token::Kind::kSpace && text != "=") {
      after_word = token.kind == Token::Kind::kWord && LowerCase(text) == "password";
    }
    at = token.end;
  }
  return out;
}

SlowLog::~SlowLog() {
  if (descriptor_ > STDERR_FILENO) close(descriptor_);
}

Status SlowLog::Open() {
  const int opened =
      file_.empty() ? STDERR_FILENO : open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (opened < 0)
    return {ErrorCode::kIo, "cannot write the log of slow statements to \"" + file_ + "\": " + std::strerror(errno)};
  const std::lock_guard lock(mutex_);
  if (descriptor_ > STDERR_FILENO) close(descriptor_);
  descriptor_ = opened;
  return Status::Ok();
}

void SlowLog::Write(const SlowStatement& s) {
  if (s.milliseconds < milliseconds_) return;
  nlohmann::ordered_json line;
  const auto rounded = [](double milliseconds) { return std::round(milliseconds * 1000) / 1000; };
  line["time"] = Moment();
  line["pid"] = s.pid;
  line["user"] = s.user;
  if (!s.application.empty()) line["application"] = s.application;
  if (!s.client.empty()) line["client"] = s.client;
  line["milliseconds"] = rounded(s.milliseconds);
  line["compile_milliseconds"] = rounded(s.timing.compile);
  line["execute_milliseconds"] = rounded(s.timing.execute);
  if (s.timing.kernel > 0) line["kernel_milliseconds"] = rounded(s.timing.kernel);
  line["rows"] = s.timing.rows;
  line["bytes_read"] = s.timing.bytes_read;
  if (!s.status.ok()) {
    line["sqlstate"] = s.status.sqlstate();
    line["error"] = s.status.message();
  }
  line["query"] = WithoutPasswords(s.sql.substr(0, kMostText));
  // (A text that is no UTF-8 was refused, but is shown.)
  const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(mutex_);
  // One write is one line, whatever other processes append.
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(descriptor_, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) done += static_cast<size_t>(n);
  }
}

}  // namespace tessera::server
