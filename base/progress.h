// ProgressBar: one line on the terminal that says how far a long piece of work is.
//
//     lineorder.tbl  42% [==========>              ] 12.3 M rows/s  ETA 0:42
//
// It draws only if standard error is a terminal and the work has lasted for a second, so that nothing is drawn for
// short work or if the output goes to a file. The line is redrawn at most ten times a second, never wider than the
// terminal, and cleared when the work is finished. Two bars at the same time would draw over each other.
//
// Any thread may call any function. Start at: ProgressBar, Advance().
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace tessera {

/// What is counted. It decides how the rate is written.
enum class ProgressUnit : uint8_t {
  kRows,   ///< "12.3 M rows/s"
  kBytes,  ///< "1.2 GB/s", powers of ten
};

class ProgressBar {
 public:
  /// When the bar may appear.
  enum class Show : uint8_t {
    kAfterOneSecond,  ///< the default: short work shows nothing
    kAtOnce,          ///< for work that is known to be long
  };

  /// `what` names the work in a few words; `total` is in `unit`, 0 if unknown: then the line has no percentage, bar or
  /// ETA. It may be an estimate: the percentage stops at 100. The clock starts here.
  ProgressBar(std::string what, uint64_t total, ProgressUnit unit, Show show = Show::kAfterOneSecond);
  ~ProgressBar() { Finish(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `amount` more units are done. Costs an atomic addition and, on a terminal, a look at the clock: call it for a
  /// batch of rows, not for a row.
  void Advance(uint64_t amount);

  /// Clears the line; nothing is drawn afterwards. Call it before printing anything else. Harmless if repeated.
  void Finish();

 private:
  using Clock = std::chrono::steady_clock;

  void Draw(Clock::time_point now);  ///< REQUIRES: mutex_ is held
  std::string Line(double seconds, size_t width) const;

  const std::string what_;
  const uint64_t total_;
  const ProgressUnit unit_;
  const Clock::time_point start_;
  std::atomic<uint64_t> done_{0};
  std::atomic<Clock::time_point> next_draw_;  ///< time_point::max() if nothing may be drawn (no terminal, or finished)

  std::mutex mutex_;        ///< held while drawing; guards what follows
  size_t drawn_width_ = 0;  ///< characters on the line now; 0 if the line is clear
};

}  // namespace tessera
