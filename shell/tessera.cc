// The program `tessera`: an interactive shell and a batch runner for one database.
//
// Start at: Shell (shell/shell.h); the options are in shell/command_line.cc.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "mpi/cluster.h"
#include "session/processors.h"
#include "shell/command_line.h"
#include "shell/exit_status.h"
#include "shell/interrupts.h"
#include "shell/shell.h"
#include "shell/version.h"

namespace {

/// If a standard descriptor is closed, the next file gets its number, and results would be written into the catalog.
void KeepStandardDescriptorsTaken() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // Opened for the wrong direction, so that using it is an error as before.
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int RunTessera(int argc, char** argv, tessera::Cluster* cluster) {
  using tessera::ExitStatus;
  tessera::Result<tessera::CommandLine> line = tessera::ParseCommandLine(argc, argv);
  if (!line.ok()) {
    fmt::print(stderr, "tessera: {}\nTry tessera --help.\n", line.status().message());
    return tessera::kExitUsage;
  }
  if (line->help || line->version) {
    const std::string text = line->help ? tessera::UsageText() : fmt::format("tessera {}\n", tessera::kVersion);
    return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? tessera::kExitOk : tessera::kExitUsage;
  }
  // Scripts that cannot be read are known before anything runs.
  for (const tessera::CommandLineInput& input : line->inputs) {
    if (input.kind == tessera::CommandLineInput::Kind::kFile && access(input.text.c_str(), R_OK) != 0) {
      fmt::print(stderr, "tessera: could not open \"{}\": {}\n", input.text, std::generic_category().message(errno));
      return tessera::kExitUsage;
    }
  }
  line->session.standard_input_is_free = !line->inputs.empty();
  line->session.cluster = cluster;
  // mpirun gives rank 0 a terminal of its own for standard output, wherever that goes in the end.
  if (cluster != nullptr && !line->format) line->format = tessera::ResultFormat::kCsv;
  tessera::Result<std::unique_ptr<tessera::Session>> session = tessera::Session::Open(line->session);
  if (!session.ok()) {
    const tessera::Status& error = session.status();
    fmt::print(stderr, "tessera: {}\n", error.message());
    if (!error.hint().empty()) fmt::print(stderr, "{}\n", error.hint());
    return error.code() == tessera::ErrorCode::kDevice ? tessera::kExitUsage : tessera::kExitDatabase;
  }
  return tessera::Shell(session->get(), *line).Run();
}

}  // namespace

int main(int argc, char** argv) {
  KeepStandardDescriptorsTaken();
  std::signal(SIGPIPE, SIG_IGN);
  tessera::Result<std::unique_ptr<tessera::Cluster>> joined = tessera::Cluster::Join(tessera::kVersion);
  const tessera::Status& ready = joined.ok() && *joined != nullptr ? (*joined)->ready() : joined.status();
  if (!ready.ok()) {
    // Every rank knows it; rank 0 says it.
    if (!joined.ok() || (*joined)->rank() == 0) fmt::print(stderr, "tessera: {}\n{}\n", ready.message(), ready.hint());
    return tessera::kExitUsage;
  }
  const std::unique_ptr<tessera::Cluster> cluster = std::move(*joined);
  if (cluster != nullptr && cluster->rank() != 0)
    return cluster->Serve(tessera::ProcessorsOfRank(cluster->local_ranks()));
  const int status = RunTessera(argc, argv, cluster.get());
  if (cluster != nullptr) cluster->Leave(status);
  // The session is closed and its temporary files are gone: now the signal that ended the batch may end the process.
  if (const int signal = tessera::PendingInterrupt(); signal != 0) tessera::DieOf(signal);
  return status;
}
