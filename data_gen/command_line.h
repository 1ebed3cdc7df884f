// What the generators' command lines have in common: numbers that are checked, and how a failure ends the program.
//
// Exit status: 0 done, 1 the files could not be written, 2 the command line is wrong.
// Start at: ParseCount(), UsageError().
#pragma once

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

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
