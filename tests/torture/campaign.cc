#include "tests/torture/campaign.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr size_t kKeptOutput = size_t{64} << 10;

template <class T>
bool Parse(const char* text, T* out) {
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, *out);
  return error == std::errc() && stop == end;
}

/// Reads what the child writes until it has ended or the time is up.
ChildEnd Follow(pid_t child, int output, double seconds) {
  ChildEnd end;
  const auto start = Clock::now();
  std::array<char, 4096> bytes;
  int status = 0;
  bool ended = false;
  while (!ended) {
    const double left = seconds - SecondsSince(start);
    if (left <= 0) {
      end.timed_out = true;
      kill(-child, SIGKILL);
    }
    pollfd wait{output, POLLIN, 0};
    // Its own children may hold the pipe open after it has ended.
    if (!end.timed_out) poll(&wait, 1, 5);
    ended = waitpid(child, &status, end.timed_out ? 0 : WNOHANG) == child;
    for (ssize_t n; (n = read(output, bytes.data(), bytes.size())) > 0;) {
      end.output.append(bytes.data(), static_cast<size_t>(n));
      if (end.output.size() > 2 * kKeptOutput) end.output.erase(0, end.output.size() - kKeptOutput);
    }
  }
  close(output);
  kill(-child, SIGKILL);  // what it started and left behind
  end.seconds = SecondsSince(start);
  if (end.timed_out) return end;
  if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace

Campaign::Campaign(const char* name, int argc, char** argv) : name_(name), start_(Clock::now()) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    const bool known = option == "--seed"      ? Parse(value, &seed_)
                       : option == "--first"   ? Parse(value, &first_)
                       : option == "--trials"  ? Parse(value, &trials_)
                       : option == "--seconds" ? Parse(value, &seconds_)
                                               : false;
    if (known) continue;
    fmt::print(stderr, "usage: torture_{} [--seed N] [--seconds S] [--trials N] [--first TRIAL]\n", name_);
    std::exit(2);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

bool Campaign::Next() {
  if (tried_ == trials_ || (tried_ > 0 && SecondsSince(start_) > seconds_)) return false;
  trial_ = first_ + tried_++;
  broken_ = false;
  std::seed_seq seed{static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32), static_cast<uint32_t>(trial_),
                     static_cast<uint32_t>(trial_ >> 32)};
  random_.seed(seed);
  return true;
}

void Campaign::Break(const std::string& what) {
  if (!broken_) ++broke_;
  broken_ = true;
  fmt::print("FAILED: {}, trial {} of seed {}: {}\n", name_, trial_, seed_, what);
  std::fflush(stdout);
}

int Campaign::Finish() {
  fmt::print("{}: tried {}, survived {}, broke {} (seed {}, {:.1f} s)\n", name_, tried_, tried_ - broke_, broke_, seed_,
             SecondsSince(start_));
  const bool passed = broke_ == 0 && tried_ > 0;
  fmt::print("{} passed, {} failed\n", passed ? 1 : 0, passed ? 0 : 1);
  return passed ? 0 : 1;
}

std::string ChildEnd::Text() const {
  std::string text = timed_out     ? fmt::format("no end within {:.1f} s", seconds)
                     : signal != 0 ? fmt::format("signal {} ({})", signal, strsignal(signal))
                                   : fmt::format("exit status {}", status);
  if (!output.empty()) text += "\n" + output;
  return text;
}

ChildEnd RunInChild(double seconds, const std::function<int()>& f) {
  std::fflush(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    setpgid(0, 0);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    const int status = f();
    std::fflush(nullptr);
    std::_Exit(status);
  }
  setpgid(child, child);  // either may come first
  close(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Follow(child, ends[0], seconds);
}

ChildEnd RunProgram(double seconds, const std::vector<std::string>& command) {
  return RunInChild(seconds, [&command] {
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    fmt::print(stderr, "cannot run {}: {}\n", command[0], std::strerror(errno));
    return 127;
  });
}

std::string SiblingProgram(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tessera_torture_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::system_error(errno, std::generic_category(), pattern);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tessera
