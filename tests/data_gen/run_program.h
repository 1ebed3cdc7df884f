// What tests of whole programs share: they run the programs of $TESSERA_BUILD_DIR, or "build", and read the files that these
// write.
//
// Start at: RunProgram, Program, TemporaryDirectory. One thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <regex.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// A directory that goes with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tessera_data_gen_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.insert(entry.path().filename().string());
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string Program(const std::string& name) {
  const char* directory = std::getenv("TESSERA_BUILD_DIR");
  return std::string(directory == nullptr ? "build" : directory) + "/" + name;
}

/// Starts a program. `in_child` runs before it: redirections and limits.
inline pid_t StartProgram(const std::vector<std::string>& command, const std::function<void()>& in_child) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    in_child();
    execv(arguments[0], arguments.data());
    _exit(127);  // a test that expects 1 or 2 then fails
  }
  return child;
}

struct Outcome {
  int status = -1;  ///< exit status; -1 if a signal ended it
  std::string out, err;
};

/// Runs a program to its end. `file_limit` is in bytes; 0 if there is none.
inline Outcome RunProgram(const std::vector<std::string>& command, rlim_t file_limit = 0) {
  const TemporaryDirectory scratch;
  const std::string out = scratch / "out", err = scratch / "err";
  const pid_t child = StartProgram(command, [&] {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), flags, 0600), STDERR_FILENO);
    const rlimit limit{file_limit, file_limit};
    if (file_limit > 0) setrlimit(RLIMIT_FSIZE, &limit);
  });
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadAll(out), ReadAll(err)};
}

inline bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

inline int64_t Number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_TRUE(error == std::errc() && end == text.data() + text.size()) << "not an integer: '" << text << "'";
  return value;
}

inline int64_t NumberIn(const std::string& text, int64_t low, int64_t high) {
  const int64_t value = Number(text);
  EXPECT_TRUE(value >= low && value <= high) << value << " is not in " << low << ".." << high;
  return value;
}

/// Whether all of `text` has the form of `pattern`, a POSIX extended expression. (std::regex does not compile without
/// warnings under g++ 12's address sanitizer.)
inline bool Matches(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  if (regcomp(&compiled, ("^(" + pattern + ")$").c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    ADD_FAILURE() << "bad pattern " << pattern;
    return false;
  }
  const bool matches = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return matches;
}

}  // namespace tessera
