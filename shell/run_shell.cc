#include "shell/run_shell.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exception_status.h"
#include "base/version.h"
#include "mpi/cluster.h"
#include "shell/command_line.h"
#include "shell/exit_status.h"
#include "shell/plan_tree_text.h"
#include "shell/ranks_launcher.h"
#include "shell/server_session.h"
#include "shell/shell.h"
#include "shell/statistics_text.h"
#include "tablet/catalog/temporary_directory.h"

namespace tessera {
namespace {

/// Prints without memory of its own.
void PrintError(const Status& error) noexcept {
  for (const char* text :
       {"tessera: ", error.message().c_str(), error.hint().empty() ? "" : "\n", error.hint().c_str(), "\n"}) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return;
  }
}

/// For --role: the password is the first line of standard input.
int PrintRole(const std::string& role) {
  std::string password;
  for (int c; (c = std::getchar()) != EOF && c != '\n';) password += static_cast<char>(c);
  const Result<std::string> line = server::RoleLine(role, password);
  if (line.ok()) return std::puts(line->c_str()) >= 0 && std::fflush(stdout) == 0 ? kExitOk : kExitUsage;
  PrintError(line.status());
  return kExitUsage;
}

int Serve(CommandLine* line) {
  line->server.explain_text = [](const Explanation& explanation) { return ExplanationText(explanation, 0); };
  line->server.analysis_text = [](const Analysis& analysis) { return "\n" + StatisticsText(analysis); };
  const Status status = server::RunServer(line->session, line->server,
                                          [](const std::string& text) { fmt::print(stderr, "tessera: {}\n", text); });
  if (status.ok()) return kExitOk;
  PrintError(status);
  return kExitUsage;
}

int RunAtServer(const CommandLine& line, const Cluster* cluster) {
  if (cluster != nullptr) {
    PrintError(Unsupported("--host runs without ranks", -1, "Start it without mpirun."));
    return kExitUsage;
  }
  const bool asks = !line.script.batch && isatty(STDIN_FILENO) == 1;
  Result<std::unique_ptr<ShellSession>> session =
      ConnectToServer(line.address, asks, line.session.standard_input_is_free && !line.script.safe);
  if (session.ok()) return Shell(std::move(*session), line).Run();
  PrintError(session.status());
  return session.status().code() == ErrorCode::kUnsupported ? kExitUsage : kExitDatabase;
}

int Run(int argc, char** argv, Cluster* cluster) {
  Result<CommandLine> line = ParseCommandLine(argc, argv);
  if (!line.ok()) {
    fmt::print(stderr, "tessera: {}\nTry tessera --help.\n", line.status().message());
    return kExitUsage;
  }
  if (line->help || line->version) {
    const std::string text = line->help ? UsageText() : fmt::format("tessera {}\n", kVersion);
    return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? kExitOk : kExitUsage;
  }
  if (!line->role.empty()) return PrintRole(line->role);
  if (line->serves && cluster != nullptr && !cluster->any_thread()) {
    fmt::print(stderr,
               "tessera: --serve on ranks needs an MPI that takes calls from several threads (MPI_THREAD_SERIALIZED), "
               "which this one does not: start it without mpirun, or build Open MPI with threads\n");
    return kExitUsage;
  }
  // Scripts that cannot be read are known before anything runs.
  std::vector<std::string> files;
  if (!line->script.init_file.empty()) files.push_back(line->script.init_file);
  for (const CommandLineInput& input : line->script.inputs) {
    if (input.kind == CommandLineInput::Kind::kFile) files.push_back(input.text);
  }
  for (const std::string& file : files) {
    if (access(file.c_str(), R_OK) == 0) continue;
    fmt::print(stderr, "tessera: could not open \"{}\": {}\n", file, std::generic_category().message(errno));
    return kExitUsage;
  }
  line->session.standard_input_is_free = !line->script.inputs.empty();
  line->session.cluster = cluster;
  line->session.make_verifier = server::PasswordVerifier;
  if (cluster != nullptr && line->launch.ranks != 0 && line->launch.ranks != cluster->ranks()) {
    fmt::print(stderr, "tessera: --ranks {}, but mpirun started {}; leave --ranks out\n", line->launch.ranks,
               cluster->ranks());
    return kExitUsage;
  }
  // mpirun gives rank 0 a terminal of its own for standard output, wherever that goes in the end.
  if (cluster != nullptr && !line->output.format && !IsControllingTerminal(STDOUT_FILENO))
    line->output.format = ResultFormat::kCsv;
  if (!line->session.directory.empty()) RemoveAbandonedDirectories();  // (else the session does)
  if (line->serves) return Serve(&*line);
  if (!line->address.host.empty()) return RunAtServer(*line, cluster);
  Result<std::unique_ptr<Session>> session = Session::Open(line->session);
  if (!session.ok()) {
    PrintError(session.status());
    return session.status().code() == ErrorCode::kDevice ? kExitUsage : kExitDatabase;
  }
  return Shell(MakeLocalSession(std::move(*session)), *line).Run();
}

}  // namespace

int RunShell(int argc, char** argv, Cluster* cluster) noexcept {
  try {
    return Run(argc, argv, cluster);
  } catch (...) {
    const Status error = StatusOfException();
    PrintError(error);
    return kExitSqlError;
  }
}

}  // namespace tessera
