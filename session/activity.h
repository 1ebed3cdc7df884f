// What the sessions of one process do, for those who look on: tessera_queries(), pg_stat_activity, pg_cancel_backend().
//
// A session reports to its SessionActivity; Activity, which the engine holds, knows all of them.
//
// Start at: SessionActivity::Begin, Activity::Sessions. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "compiler/query/activity_source.h"

namespace tessera {

class Activity;

class SessionActivity final : public ActivitySource {
 public:
  /// `report`: its number, who it is and whence it came. `rules_others`: it may end what others run.
  SessionActivity(std::shared_ptr<Activity> all, SessionReport report, bool rules_others);
  ~SessionActivity() override;
  SessionActivity(const SessionActivity&) = delete;
  SessionActivity& operator=(const SessionActivity&) = delete;

  /// What ends the statement that runs, and what ends the session (empty: nothing can). They are not called from the return
  /// of Disconnect() on.
  void Connect(std::function<void()> cancel, std::function<void()> terminate);
  void Disconnect();

  /// `query`: "", it is still about the one before.
  void Begin(std::string_view query);
  /// Whether a transaction is open then, and has failed.
  void End(bool in_transaction, bool has_failed);
  /// It may be called by several threads at once; what another is telling is not waited for.
  void Tell(const char* step, uint64_t done, uint64_t total, ProgressUnit unit);

  std::vector<SessionReport> Sessions() override;
  int64_t pid() override { return pid_; }
  std::string user() override { return user_; }
  Result<bool> Signal(int64_t pid, bool terminates) override;

 private:
  friend class Activity;
  SessionReport Report() const;
  /// Errors: nothing can end it.
  Status Stop(bool terminates);

  const std::shared_ptr<Activity> all_;
  const int64_t pid_;
  const std::string user_;
  const bool rules_others_;
  mutable std::mutex mutex_;  ///< guards what follows
  SessionReport report_;
  std::mutex stop_mutex_;  ///< guards what follows
  std::function<void()> cancel_, terminate_;
};

class Activity {
 public:
  std::vector<SessionReport> Sessions();

 private:
  friend class SessionActivity;
  /// Holds it while it is told to stop.
  Result<bool> Signal(const SessionActivity& by, int64_t pid, bool terminates);

  std::mutex mutex_;
  std::map<int64_t, SessionActivity*> sessions_;  ///< by their numbers
};

}  // namespace tessera
