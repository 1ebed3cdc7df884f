#include "session/activity.h"

#include <utility>

#include "base/clock.h"

namespace tessera {
SessionActivity::SessionActivity(std::shared_ptr<Activity> all, SessionReport report, bool rules_others)
    : all_(std::move(all)),
      pid_(report.pid),
      user_(report.user),
      rules_others_(rules_others),
      report_(std::move(report)) {
  report_.since = report_.changed = MicrosecondsNow();
  const std::lock_guard lock(all_->mutex_);
  all_->sessions_[pid_] = this;
}

SessionActivity::~SessionActivity() {
  const std::lock_guard lock(all_->mutex_);
  // (Sessions of a process without a server have the number of the process.)
  const auto at = all_->sessions_.find(pid_);
  if (at != all_->sessions_.end() && at->second == this) all_->sessions_.erase(at);
}

void SessionActivity::Connect(std::function<void()> cancel, std::function<void()> terminate) {
  const std::lock_guard lock(stop_mutex_);
  cancel_ = std::move(cancel);
  terminate_ = std::move(terminate);
}

void SessionActivity::Disconnect() { Connect({}, {}); }

void SessionActivity::Begin(std::string_view query) {
  const int64_t now = MicrosecondsNow();
  const std::lock_guard lock(mutex_);
  if (!query.empty()) report_.query = query;
  report_.query_since = report_.changed = now;
  report_.state = "active";
  report_.runs = true;
  if (!query.empty()) ++report_.statements;
  if (report_.transaction == 0) report_.transaction = now;
}

void SessionActivity::End(bool in_transaction, bool has_failed) {
  const int64_t now = MicrosecondsNow();
  const std::lock_guard lock(mutex_);
  report_.changed = now;
  report_.runs = false;
  report_.step.clear();
  report_.done = report_.total = 0;
  report_.state = !in_transaction ? "idle" : has_failed ? "idle in transaction (aborted)" : "idle in transaction";
  if (!in_transaction) report_.transaction = 0;
}

void SessionActivity::Tell(const char* step, uint64_t done, uint64_t total, ProgressUnit unit) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !report_.runs) return;
  if (report_.step != step) report_.step = step;
  report_.done = done;
  report_.total = total;
  report_.is_bytes = unit == ProgressUnit::kBytes;
}

SessionReport SessionActivity::Report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

Status SessionActivity::Stop(bool terminates) {
  const std::lock_guard lock(stop_mutex_);
  if (terminates && cancel_ != nullptr && terminate_ == nullptr)
    return Unsupported("this session is not one of a server, and cannot be terminated", -1,
                       "pg_cancel_backend() ends the statement that runs.");
  const std::function<void()>& stop = terminates ? terminate_ : cancel_;
  if (stop != nullptr) stop();
  return Status::Ok();
}

std::vector<SessionReport> SessionActivity::Sessions() { return all_->Sessions(); }

Result<bool> SessionActivity::Signal(int64_t pid, bool terminates) { return all_->Signal(*this, pid, terminates); }

std::vector<SessionReport> Activity::Sessions() {
  std::vector<SessionReport> reports;
  const std::lock_guard lock(mutex_);
  for (const auto& [pid, session] : sessions_) reports.push_back(session->Report());
  return reports;
}

Result<bool> Activity::Signal(const SessionActivity& by, int64_t pid, bool terminates) {
  const std::lock_guard lock(mutex_);
  const auto at = sessions_.find(pid);
  if (at == sessions_.end()) return false;
  SessionActivity& session = *at->second;
  if (!by.rules_others_ && session.user_ != by.user_) {
    return Status(ErrorKind::kInsufficientPrivilege,
                  std::string("must be \"") + session.user_ + "\" to " +
                      (terminates ? "terminate its session" : "cancel its statement"),
                  "Roles that are readonly end their own statements only.");
  }
  TESSERA_TRY(session.Stop(terminates));
  return true;
}

}  // namespace tessera
