// What a shell's statements run in: a session of this process, or one of a server (shell/server_session.h).
//
// Start at: ShellSession. One thread, but Cancel() may come from any thread or a signal handler.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "session/session.h"

namespace tessera {

class ShellSession {
 public:
  virtual ~ShellSession() = default;
  /// As Session::Execute does. Errors: also kIo, the server cannot be reached.
  virtual Status Execute(std::string_view sql, ResultWriter* out) = 0;
  /// As Session::Cancel does. Async-signal-safe.
  virtual void Cancel() = 0;
  /// Where COPY FROM STDIN reads from now on; it outlives its use. nullptr: the standard input.
  virtual void SetCopyClient(CopyClient* client) = 0;
  virtual void SetProgress(std::function<void(const Progress&)> progress) = 0;
  virtual Session::TransactionState transaction() const = 0;
  /// A server's has only the whole time and the rows.
  virtual const Timing& last_timing() const = 0;
  virtual bool last_was_query() const = 0;
  /// What is to be said of the last statement though it succeeded: lines, or "". It is told once.
  virtual std::string TakeWarning() = 0;
  /// One line: where statements run.
  virtual std::string Description() const = 0;
  /// The session of this process; nullptr: it is a server's.
  virtual Session* local() = 0;
};

std::unique_ptr<ShellSession> MakeLocalSession(std::unique_ptr<Session> session);

}  // namespace tessera
