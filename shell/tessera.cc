// The program `tessera`: an interactive shell and a batch runner for one database.
//
// Start at: RunShell (shell/run_shell.h); the options are in shell/command_line.cc.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "base/processors.h"
#include "base/version.h"
#include "mpi/cluster.h"
#include "shell/exit_status.h"
#include "shell/interrupts.h"
#include "shell/ranks_launcher.h"
#include "shell/run_shell.h"

namespace {

/// If a standard descriptor is closed, the next file gets its number, and results would be written into the catalog.
void KeepStandardDescriptorsTaken() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // Opened for the wrong direction, so that using it is an error as before.
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int Fail(const tessera::Status& why) {
  fmt::print(stderr, "tessera: {}\n{}\n", why.message(), why.hint());
  return tessera::kExitUsage;
}

int Run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  if (const tessera::Status started = tessera::StartRanks(argc, argv); !started.ok()) return Fail(started);
  tessera::Result<std::unique_ptr<tessera::Cluster>> joined = tessera::Cluster::Join(tessera::kVersion);
  const tessera::Status& ready = joined.ok() && *joined != nullptr ? (*joined)->ready() : joined.status();
  if (!ready.ok()) {
    // Every rank knows it; rank 0 says it.
    return !joined.ok() || (*joined)->rank() == 0 ? Fail(ready) : tessera::kExitUsage;
  }
  const std::unique_ptr<tessera::Cluster> cluster = std::move(*joined);
  if (cluster != nullptr && cluster->rank() != 0) {
    tessera::SetMemoryLimit(tessera::MemoryOfRank(cluster->local_ranks()));
    return cluster->Serve(tessera::ProcessorsOfRank(cluster->local_ranks()));
  }
  int status = tessera::kExitUsage;
  {
    tessera::LentTerminal terminal;
    const tessera::Status taken = terminal.Take();
    status = taken.ok() ? tessera::RunShell(argc, argv, cluster.get()) : Fail(taken);
  }
  if (cluster != nullptr) cluster->Leave(status);
  // The session is closed and its temporary files are gone: now the signal that ended the batch may end the process.
  if (const int signal = tessera::PendingInterrupt(); signal != 0) tessera::DieOf(signal);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  KeepStandardDescriptorsTaken();
  try {
    return Run(argc, argv);
  } catch (...) {  // no memory to join the ranks, or to serve them
    fprintf(stderr, "tessera: %s\n", tessera::StatusOfException().message().c_str());
    return tessera::kExitUsage;
  }
}
