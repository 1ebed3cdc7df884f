#include "base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace tessera {
namespace {

constexpr auto kDelay = std::chrono::seconds(1);
constexpr auto kBetweenDraws = std::chrono::milliseconds(100);
constexpr size_t kNarrowestBar = 5;
constexpr size_t kWidestBar = 60;

/// The columns of the terminal that a line may use: all but the last, where some terminals wrap at once.
size_t UsableColumns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 79;
  return std::max<size_t>(size.ws_col, 2) - 1;
}

/// Errors are ignored: a terminal that went away must not stop the work.
void Print(const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (n <= 0) return;
    written += static_cast<size_t>(n);
  }
}

/// 1234567 rows -> "1.2 M rows/s", 1234567 bytes -> "1.2 MB/s".
std::string Rate(double per_second, ProgressUnit unit) {
  constexpr std::array<const char*, 5> kPrefixes = {"", "k", "M", "G", "T"};
  size_t prefix = 0;
  while (per_second >= 999.5 && prefix + 1 < kPrefixes.size()) {
    per_second /= 1000;
    ++prefix;
  }
  const char* name = unit == ProgressUnit::kBytes ? "B/s" : prefix > 0 ? " rows/s" : "rows/s";
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), prefix > 0 ? "%.1f %s%s" : "%.0f %s%s", per_second, kPrefixes[prefix], name);
  return text.data();
}

std::string Duration(double seconds) {
  // An estimate of more than four days means nothing.
  if (!(seconds < 100 * 3600)) return "-:--";
  const auto whole = static_cast<unsigned>(seconds + 0.5);
  std::array<char, 32> text{};
  if (whole >= 3600) {
    std::snprintf(text.data(), text.size(), "%u:%02u:%02u", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%u:%02u", whole / 60, whole % 60);
  }
  return text.data();
}

/// File names may hold newlines and escape sequences, which would break the line.
std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

/// The beginning of `text`, at most `bytes` long (a terminal shows no more columns than bytes), not cut inside a
/// character.
std::string CutTo(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

ProgressBar::ProgressBar(std::string what, uint64_t total, ProgressUnit unit, Show show)
    : what_(Printable(std::move(what))), total_(total), unit_(unit), start_(Clock::now()) {
  auto first = Clock::time_point::max();
  if (isatty(STDERR_FILENO) == 1) first = show == Show::kAtOnce ? start_ : start_ + kDelay;
  next_draw_.store(first, std::memory_order_relaxed);
}

void ProgressBar::Advance(uint64_t amount) {
  done_.fetch_add(amount, std::memory_order_relaxed);
  const auto next = next_draw_.load(std::memory_order_relaxed);
  if (next == Clock::time_point::max()) return;
  const auto now = Clock::now();
  if (now < next) return;
  // One thread draws; the others go on working.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || now < next_draw_.load(std::memory_order_relaxed)) return;
  next_draw_.store(now + kBetweenDraws, std::memory_order_relaxed);
  Draw(now);
}

void ProgressBar::Finish() {
  const std::scoped_lock lock(mutex_);
  next_draw_.store(Clock::time_point::max(), std::memory_order_relaxed);
  // Blanks rather than an escape sequence: they clear the line on every terminal.
  if (drawn_width_ > 0) Print('\r' + std::string(std::min(drawn_width_, UsableColumns()), ' ') + '\r');
  drawn_width_ = 0;
}

void ProgressBar::Draw(Clock::time_point now) {
  const size_t width = UsableColumns();
  std::string line = Line(std::chrono::duration<double>(now - start_).count(), width);
  const size_t length = line.size();
  if (length < drawn_width_) line.append(std::min(drawn_width_, width) - std::min(length, width), ' ');
  drawn_width_ = length;
  Print('\r' + line);
}

std::string ProgressBar::Line(double seconds, size_t width) const {
  const auto done = static_cast<double>(done_.load(std::memory_order_relaxed));
  const auto total = static_cast<double>(total_);
  const double rate = seconds > 0 ? done / seconds : 0;

  // If there is little room, the bar is left out first, then the end of the name, then the rate.
  std::string percent = "  ";
  std::string right = Rate(rate, unit_);
  double fraction = 0;
  if (total > 0) {
    fraction = std::min(done / total, 1.0);
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), " %3d%% ", static_cast<int>(fraction * 100));
    percent = text.data();
    right += "  ETA " + Duration(rate > 0 ? std::max(total - done, 0.0) / rate : 1e9);
  }
  const size_t numbers = percent.size() + right.size();
  std::string line = CutTo(what_, width > numbers ? width - numbers : 0) + percent;
  const size_t taken = line.size() + right.size() + 3;  // 3: two brackets and a blank
  if (total > 0 && taken + kNarrowestBar <= width) {
    const size_t bar = std::min(width - taken, kWidestBar);
    const auto filled = static_cast<size_t>(fraction * static_cast<double>(bar));
    line += '[' + std::string(filled, '=');
    if (filled < bar) line += '>' + std::string(bar - filled - 1, ' ');
    line += "] ";
  }
  return CutTo(line + right, width);
}

}  // namespace tessera
