// Commands that the shell starts: .shell, those that read results (.output |COMMAND), the pager.
//
// Start at: RunCommand, CommandPipe. One thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/status.h"

namespace tessera {

/// Runs `command` by sh and waits for it. Returns its exit status, or 128 and the signal that ended it. Errors: kResource,
/// it cannot be started.
Result<int> RunCommand(const std::string& command);

/// A command that reads what is written to `fd()`.
class CommandPipe {
 public:
  CommandPipe() = default;
  ~CommandPipe() { Close(); }
  CommandPipe(const CommandPipe&) = delete;
  CommandPipe& operator=(const CommandPipe&) = delete;

  /// Errors: kResource, it cannot be started.
  Status Open(const std::string& command);
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  /// Says that this was all, and waits for the command's end.
  void Close();

 private:
  int fd_ = -1;
  pid_t child_ = -1;
};

}  // namespace tessera
