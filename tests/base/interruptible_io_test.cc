// Writing to what takes a part at a time: a pipe, one with a name, one that does not block. Nothing is lost or comes twice.
#include "base/interruptible_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "base/interrupt.h"

namespace tessera::test {
namespace {

std::string Text() {
  std::string text;
  for (int i = 0; text.size() < 1'000'000; ++i) text += std::to_string(i) + '\n';
  return text;
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = WriteInterruptible(fd, text.data(), text.size());
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

/// Reads to the end, now and then slowly.
std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 7000> part;
  for (ssize_t n; (n = read(fd, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<size_t>(n));
    if (text.size() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return text;
}

void PassesThrough(int reader, int writer) {
  std::string came;
  std::thread reads([&] { came = ReadAll(reader); });
  const std::string text = Text();
  EXPECT_TRUE(WriteAll(writer, text));
  close(writer);
  reads.join();
  close(reader);
  EXPECT_TRUE(came == text) << came.size() << " bytes";
}

TEST(InterruptibleIo, Pipes) {
  for (const int flags : {0, O_NONBLOCK}) {
    std::array<int, 2> ends;
    ASSERT_EQ(pipe(ends.data()), 0);
    ASSERT_EQ(fcntl(ends[1], F_SETFL, flags), 0);
    PassesThrough(ends[0], ends[1]);
  }
}

TEST(InterruptibleIo, PipesWithNames) {
  const std::filesystem::path name =
      std::filesystem::temp_directory_path() / ("interruptible_io_test." + std::to_string(getpid()));
  ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
  for (const bool blocks : {false, true}) {
    const int reader = open(name.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    const int writer = blocks ? open(name.c_str(), O_WRONLY) : OpenInterruptible(name.c_str(), O_WRONLY);
    ASSERT_GE(writer, 0);
    ASSERT_EQ(fcntl(reader, F_SETFL, 0), 0);
    PassesThrough(reader, writer);
  }
  std::filesystem::remove(name);
}

/// A statement that is canceled does not wait for the reader.
TEST(InterruptibleIo, NobodyReads) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  std::atomic<bool> interrupted{false};
  const InterruptScope scope(&interrupted);
  std::thread cancels([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    interrupted = true;
  });
  EXPECT_FALSE(WriteAll(ends[1], Text()));
  EXPECT_EQ(errno, ECANCELED);
  cancels.join();
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace tessera::test
