// What the generators' command lines have in common: options, numbers that are checked, and how a failure ends the
// program.
//
// Exit status: 0 done, 1 the files could not be written, 2 the command line is wrong.
// Start at: CommandLine.
#pragma once

#include <getopt.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/status.h"
#include "data_gen/ordered_writer.h"

namespace tessera {

inline constexpr int kExitIo = 1;
inline constexpr int kExitUsage = 2;
inline constexpr unsigned kMostJobs = 1024;

/// Says what is wrong with the command line. Returns the exit status.
inline int UsageError(const char* program, const std::string& message) {
  std::fprintf(stderr, "%s: %s\nTry '%s --help'.\n", program, message.c_str(), program);
  return kExitUsage;
}

/// The whole number `text` given to `option`; if it is none or not in [least, most], says so and returns nothing.
inline std::optional<uint64_t> ParseCount(const char* program, const char* option, std::string_view text,
                                          uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  UsageError(program, std::string(option) + " '" + std::string(text) + "' is not a whole number from " +
                          std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

/// The options of a program, and --help.
class CommandLine {
 public:
  CommandLine(const char* program, const char* help) : program_(program), help_(help) {}

  /// An option with a value. `take` says what is wrong with it and returns false.
  void Value(const char* name, std::function<bool(const char*)> take) {
    options_.push_back({name, required_argument, std::move(take)});
  }
  void Text(const char* name, std::string* to) {
    Value(name, [to](const char* text) {
      *to = text;
      return true;
    });
  }
  void Count(const char* name, uint64_t least, uint64_t most, uint64_t* to) {
    Value(name, [=, program = program_](const char* text) {
      const std::optional<uint64_t> value = ParseCount(program, ("--" + std::string(name)).c_str(), text, least, most);
      if (value) *to = *value;
      return value.has_value();
    });
  }
  /// --scale, a factor from 0.01 to `most`.
  void Scale(double most, std::optional<double>* to) {
    Value("scale", [=, program = program_](const char* text) {
      double scale = 0;
      const std::string_view all(text);
      const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), scale);
      // The comparison refuses NaN too.
      const bool number = error == std::errc() && end == all.data() + all.size();
      if (number && scale >= 0.01 && scale <= most) {
        *to = scale;
        return true;
      }
      UsageError(program, "--scale '" + std::string(all) + "' is not a number from 0.01 to " +
                              std::to_string(static_cast<int>(most)));
      return false;
    });
  }
  void Seed(uint64_t* to) { Count("seed", 0, std::numeric_limits<uint64_t>::max(), to); }
  void Jobs(uint64_t* to) { Count("jobs", 1, kMostJobs, to); }
  /// An option without a value.
  void Flag(const char* name, bool* to) {
    options_.push_back({name, no_argument, [to](const char*) { return *to = true; }});
  }

  /// Goes through the command line. Returns the exit status if the program ends with it; then all has been said.
  std::optional<int> Parse(int argc, char** argv) const {
    const int help = static_cast<int>(options_.size());
    std::vector<option> options;
    for (const Option& o : options_) options.push_back({o.name, o.argument, nullptr, static_cast<int>(options.size())});
    options.push_back({"help", no_argument, nullptr, help});
    options.push_back({nullptr, 0, nullptr, 0});
    for (int choice; (choice = getopt_long(argc, argv, "", options.data(), nullptr)) != -1;) {
      if (choice == help) {
        std::fputs(help_, stdout);
        return 0;
      }
      if (choice < 0 || choice > help) {  // getopt_long has said what is wrong
        std::fprintf(stderr, "Try '%s --help'.\n", program_);
        return kExitUsage;
      }
      if (!options_[static_cast<size_t>(choice)].take(optarg)) return kExitUsage;
    }
    if (optind < argc) return UsageError(program_, std::string("unexpected argument '") + argv[optind] + "'");
    return std::nullopt;
  }

 private:
  struct Option {
    const char* name;
    int argument;
    std::function<bool(const char*)> take;
  };
  const char* program_;
  const char* help_;
  std::vector<Option> options_;
};

/// One thread for each hardware thread; 1 if the system does not say.
inline unsigned DefaultJobs() {
  const unsigned threads = std::thread::hardware_concurrency();
  return threads == 0 ? 1 : threads < kMostJobs ? threads : kMostJobs;
}

/// Says why the work failed. Returns the exit status, or ends the process by the signal that interrupted it, as a shell
/// expects.
inline int Failure(const char* program, const Status& status) {
  std::fprintf(stderr, "%s: %s\n", program, status.message().c_str());
  if (!status.hint().empty()) std::fprintf(stderr, "hint: %s\n", status.hint().c_str());
  if (status.code() == ErrorCode::kCancelled && CaughtSignal() != 0) {
    std::signal(CaughtSignal(), SIG_DFL);
    std::raise(CaughtSignal());
  }
  return kExitIo;
}

}  // namespace tessera
