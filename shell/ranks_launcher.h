// `tessera --ranks N`: the same command line on N ranks, with rank 0 at the terminal.
//
// mpirun gives rank 0 a pipe to read from and a terminal of mpirun's own to write to: there is no line to edit, and
// Ctrl-C ends the job instead of the statement. So the process becomes mpirun, and rank 0 takes the controlling terminal
// of its session, which mpirun leaves to the processes that it starts on this machine, and goes to its foreground.
//
// Start at: StartRanks (before the ranks are there), then LentTerminal (rank 0). The main thread.
#pragma once

#include <sys/types.h>

#include "base/status.h"

namespace tessera {

/// With --ranks on the command line and no launcher yet: becomes mpirun, and does not return. Otherwise does nothing; a
/// command line with errors is left to who reads it next. Errors: kUnsupported, mpirun or the hostfile
/// cannot be used.
Status StartRanks(int argc, char** argv);

/// Whether the descriptor is the controlling terminal of this process.
bool IsControllingTerminal(int descriptor);

/// The terminal as rank 0 has it from StartRanks: its standard descriptors, and the foreground, until it is destroyed.
class LentTerminal {
 public:
  LentTerminal() = default;
  ~LentTerminal();
  LentTerminal(const LentTerminal&) = delete;
  LentTerminal& operator=(const LentTerminal&) = delete;

  /// Does nothing if none was lent. Errors: kUnsupported, statements are typed at a terminal of another machine.
  Status Take();

 private:
  int terminal_ = -1;
  pid_t lender_ = 0;  ///< the process group that had the foreground; 0: none did, it stays as it is
};

}  // namespace tessera
