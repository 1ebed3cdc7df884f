#include "shell/ranks_launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "mpi/launcher.h"
#include "shell/command_line.h"

namespace tessera {
namespace {

/// What StartRanks tells rank 0: the process group in the foreground, and which standard descriptors are the terminal,
/// as in "4711:012".
constexpr char kLent[] = "TESSERA_TERMINAL";

/// Says in the environment what is lent. True if something is.
bool LendTerminal() {
  std::string descriptors;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (IsControllingTerminal(fd)) descriptors += static_cast<char>('0' + fd);
  }
  if (descriptors.empty()) return false;
  setenv(kLent, fmt::format("{}:{}", getpgrp(), descriptors).c_str(), 1);
  // mpirun must not read what is typed.
  if (descriptors[0] == '0') {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  return true;
}

std::vector<std::string> MpirunArguments(const CommandLine& line, bool lent) {
  std::vector<std::string> arguments = {"mpirun", "-np", std::to_string(line.launch.ranks), "--bind-to", "none"};
  if (line.launch.hostfile.empty()) {
    arguments.push_back("--oversubscribe");  // who says how many wants that many
  } else {
    arguments.insert(arguments.end(), {"--hostfile", line.launch.hostfile});
    // A node that is gone is noticed within ten seconds; without these mpirun waits for its daemon.
    for (const auto& [option, value] : {std::pair("time", "5"), std::pair("intvl", "2"), std::pair("probes", "3")})
      arguments.insert(arguments.end(), {"--mca", std::string("oob_tcp_keepalive_") + option, value});
  }
  if (lent) arguments.insert(arguments.end(), {"-x", kLent});
  return arguments;
}

}  // namespace

bool IsControllingTerminal(int descriptor) {
  const pid_t session = tcgetsid(descriptor);
  return session > 0 && session == getsid(0);
}

Status StartRanks(int argc, char** argv) {
  const Result<CommandLine> line = ParseCommandLine(argc, argv);
  if (!line.ok() || line->launch.ranks == 0 || line->help || line->version || HasLauncher()) return Status::Ok();
  if (!line->launch.hostfile.empty() && access(line->launch.hostfile.c_str(), R_OK) != 0) {
    return {ErrorCode::kUnsupported,
            fmt::format("could not open the hostfile \"{}\": {}", line->launch.hostfile,
                        std::generic_category().message(errno)),
            "It has a line for each machine: its name, and slots=N for its ranks."};
  }
  if (const Status there = TransportIsThere(); !there.ok())
    return {there.kind(), "cannot start ranks without MPI: " + there.message(), there.hint()};
  // mpirun asks root to say twice that it is meant; in a container, root is often the only user.
  if (geteuid() == 0) {
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) setenv(name, "1", 0);
  }
  std::string program(4096, 0);
  const ssize_t n = readlink("/proc/self/exe", program.data(), program.size());
  program.resize(n > 0 ? static_cast<size_t>(n) : 0);
  std::vector<std::string> arguments = MpirunArguments(*line, LendTerminal());
  arguments.push_back(program);
  std::vector<char*> all;
  for (std::string& a : arguments) all.push_back(a.data());
  all.insert(all.end(), argv + 1, argv + argc);
  all.push_back(nullptr);
  execvp("mpirun", all.data());
  return {ErrorCode::kUnsupported, fmt::format("could not start mpirun: {}", std::generic_category().message(errno)),
          "Install Open MPI (openmpi-bin), or leave --ranks out."};
}

LentTerminal::~LentTerminal() {
  if (terminal_ < 0) return;
  if (lender_ > 0 && tcgetpgrp(terminal_) == getpgrp()) tcsetpgrp(terminal_, lender_);
  close(terminal_);
}

Status LentTerminal::Take() {
  const char* const text = std::getenv(kLent);
  if (text == nullptr) return Status::Ok();
  const std::string lent = text;
  unsetenv(kLent);
  pid_t group = 0;
  const auto [end, error] = std::from_chars(lent.data(), lent.data() + lent.size(), group);
  const std::string_view descriptors(end, static_cast<size_t>(lent.data() + lent.size() - end));
  if (error != std::errc{} || !descriptors.starts_with(':')) return Status::Ok();
  terminal_ = open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (terminal_ < 0) {
    if (descriptors.find('0') == std::string_view::npos) return Status::Ok();
    return {ErrorCode::kUnsupported, "rank 0 runs on another machine than the terminal",
            "Let this machine be the first of the hostfile, or give the statements with -c or -f."};
  }
  for (const char fd : descriptors.substr(1)) dup2(terminal_, fd - '0');
  // Rank 0 is no job of the user's shell, which could neither notice that it stopped nor continue it.
  std::signal(SIGTSTP, SIG_IGN);
  std::signal(SIGTTOU, SIG_IGN);  // for who goes to the foreground without being asked
  if (tcgetpgrp(terminal_) == group && tcsetpgrp(terminal_, getpgrp()) == 0) lender_ = group;
  return Status::Ok();
}

}  // namespace tessera
