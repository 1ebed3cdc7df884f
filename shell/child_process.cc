#include "shell/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace tessera {
namespace {

/// `input`: what becomes its standard input; -1: ours.
Result<pid_t> Start(const std::string& command, int input) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  if (input >= 0) posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  // This process ignores it; a command expects to die of it.
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const char* const words[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, "/bin/sh", &files, &attributes, const_cast<char* const*>(words), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return child;
  return Status(ErrorCode::kResource, "could not start \"" + command + "\": " + std::generic_category().message(error));
}

int WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<int> RunCommand(const std::string& command) {
  TESSERA_ASSIGN(const pid_t child, Start(command, -1));
  return WaitFor(child);
}

Status CommandPipe::Open(const std::string& command) {
  Close();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return {ErrorCode::kResource, "could not make a pipe: " + std::generic_category().message(errno)};
  const Result<pid_t> child = Start(command, ends[0]);
  close(ends[0]);
  if (!child.ok()) {
    close(ends[1]);
    return child.status();
  }
  fd_ = ends[1];
  child_ = *child;
  return Status::Ok();
}

void CommandPipe::Close() {
  if (fd_ < 0) return;
  close(std::exchange(fd_, -1));
  WaitFor(child_);
}

}  // namespace tessera
