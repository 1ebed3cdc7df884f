// What goes on in the process beside a statement: its sessions, what they run, and how they are told to stop. The session
// knows it; the compiler asks for tessera_queries() and its kin.
//
// Start at: ActivitySource. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace tessera {

/// A session of the process. Moments are microseconds after 1970 in UTC.
struct SessionReport {
  int64_t pid = 0;  ///< the number by which pg_cancel_backend() knows it
  std::string user, application;
  std::string client;          ///< the address it comes from; "": this machine
  int client_port = -1;        ///< -1: a Unix socket, or no socket at all
  int64_t since = 0;           ///< when it connected
  int64_t changed = 0;         ///< when its state did
  int64_t transaction = 0;     ///< when its transaction began; 0: there is none
  int64_t query_since = 0;     ///< when its last statement began; 0: there was none
  const char* state = "idle";  ///< as in pg_stat_activity
  bool runs = false;           ///< a statement
  std::string query;           ///< the text of the statement that runs, or of the last one
  uint64_t statements = 0;     ///< that have begun
  std::string step;            ///< what the statement does; "": it is not known
  uint64_t done = 0, total = 0;
  bool is_bytes = false;  ///< else `done` and `total` are rows
};

class ActivitySource {
 public:
  virtual ~ActivitySource() = default;
  /// All sessions, by their numbers.
  virtual std::vector<SessionReport> Sessions() = 0;
  /// The number of this session, and who it is.
  virtual int64_t pid() = 0;
  virtual std::string user() = 0;
  /// Ends the statement of a session, or all of it. False: there is no session of that number. Errors: this one may not.
  virtual Result<bool> Signal(int64_t pid, bool terminates) = 0;
};

}  // namespace tessera
