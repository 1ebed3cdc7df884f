// Databases and connections as the C interface and ADBC have them: sessions of one process over one engine, with what a
// stranger's calls may do wrong looked after: two threads at a time, a call after fork().
//
// Start at: OpenDatabase, Connection::Use. Connect: any thread; a connection is one thread's at a time.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/status.h"
#include "capi/interrupt_signal.h"
#include "session/session.h"

namespace tessera {

class Connection {
 public:
  /// While it lives the connection is this thread's, and SIGINT may cancel its statement.
  class Use {
   public:
    Use(Use&& other) noexcept
        : connection_(std::exchange(other.connection_, nullptr)), signal_(std::move(other.signal_)) {}
    Use& operator=(Use&&) = delete;
    ~Use();
    Session* operator->() const { return connection_->session_.get(); }
    Session& operator*() const { return *connection_->session_; }

   private:
    friend class Connection;
    explicit Use(Connection* connection);
    Connection* connection_;
    std::unique_ptr<InterruptSignal> signal_;
  };

  Connection(std::shared_ptr<void> database, std::unique_ptr<Session> session);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Errors: another thread uses it; this process is a child of the one that opened it.
  Result<Use> Begin();
  /// Any thread, and signal handlers.
  void Cancel() { session_->Cancel(); }
  void SetInterruptible(bool interruptible) { interruptible_ = interruptible; }
  bool in_transaction() const { return session_->in_transaction(); }

 private:
  const std::shared_ptr<void> database_;  ///< lives as long
  std::unique_ptr<Session> session_;
  const pid_t process_;
  std::atomic<bool> used_{false};
  bool interruptible_ = false;
};

class SharedDatabase : public std::enable_shared_from_this<SharedDatabase> {
 public:
  /// `options`: the directory is "" for one that lives until the last connection is closed.
  static Result<std::shared_ptr<SharedDatabase>> Open(SessionOptions options);
  ~SharedDatabase();
  SharedDatabase(const SharedDatabase&) = delete;
  SharedDatabase& operator=(const SharedDatabase&) = delete;

  Result<std::shared_ptr<Connection>> Connect();

 private:
  explicit SharedDatabase(SessionOptions options);

  SessionOptions options_;
  const pid_t process_;
  std::mutex mutex_;
  /// Opened first, so that errors are told early: then that of the first connection, or the one that a database in memory lives by.
  std::unique_ptr<Session> first_;
};

}  // namespace tessera
