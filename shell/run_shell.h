// All that the program `tessera` does as one process, or as rank 0: parses the command line, opens the database, runs
// the shell. A function, so that tests can run it with memory that fails.
//
// Start at: RunShell. One thread.
#pragma once

namespace tessera {

class Cluster;

/// `cluster`: this is rank 0 of it; nullptr: one process. Returns the exit status of the program (shell/exit_status.h).
/// Errors go to standard error; no exception leaves it.
int RunShell(int argc, char** argv, Cluster* cluster) noexcept;

}  // namespace tessera
