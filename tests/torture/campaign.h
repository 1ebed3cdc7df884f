// A torture campaign: many small trials, each seeded by its number, that must all end well. `make torture` runs the
// campaigns of this folder for minutes each, `make test` for seconds.
//
//   torture_NAME [--seed N] [--seconds S] [--trials N] [--first TRIAL]
//
// A trial that breaks names itself; `--first TRIAL --trials 1` with the same seed repeats it alone. The last lines are
// "NAME: tried N, survived N, broke N (seed N, S s)" and the totals that tests/run counts.
//
// Start at: Campaign, RunInChild. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tessera {

class Campaign {
 public:
  /// Reads the options; ends the process with status 2 if they are wrong.
  Campaign(const char* name, int argc, char** argv);

  /// Whether there is time for another trial, which it begins. A campaign that never gets to one has failed.
  bool Next();
  /// Of the trial under way, from 0.
  uint64_t trial() const { return trial_; }
  /// Depends on the seed and the trial alone.
  std::mt19937_64& random() { return random_; }
  /// A number from 0 to n - 1.
  uint64_t Random(uint64_t n) { return n == 0 ? 0 : random_() % n; }

  /// The trial under way has broken something: `what`, in a line or more.
  void Break(const std::string& what);
  /// Prints the totals. Returns the exit status of the program.
  int Finish();

 private:
  const char* const name_;
  uint64_t seed_ = 1, first_ = 0, trials_ = UINT64_MAX;
  double seconds_ = 10;
  const std::chrono::steady_clock::time_point start_;
  uint64_t trial_ = 0, tried_ = 0, broke_ = 0;
  bool broken_ = false;  // the trial under way is counted in broke_
  std::mt19937_64 random_;
};

/// How a child process ended.
struct ChildEnd {
  int status = -1;         ///< its exit status, or -1
  int signal = 0;          ///< the signal that ended it, or 0
  bool timed_out = false;  ///< it was killed because it took too long
  double seconds = 0;
  std::string output;  ///< the last 64 KiB that it wrote to standard output and standard error

  /// It ended by itself, without a signal.
  bool Returned() const { return signal == 0 && !timed_out; }
  /// "exit status 1", "signal 11 (Segmentation fault)", "no end within 5.0 s", and then its output.
  std::string Text() const;
};

/// Runs `f` in a child process, which exits with the status that it returns and is killed, with its children, after
/// `seconds`. REQUIRES: this process has one thread.
ChildEnd RunInChild(double seconds, const std::function<int()>& f);
/// The same with a program and its arguments, the first of them its path.
ChildEnd RunProgram(double seconds, const std::vector<std::string>& command);

/// The path of a program that was built beside this one.
std::string SiblingProgram(const std::string& name);

/// A new folder of its own under $TMPDIR (or /tmp), removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace tessera
