// Where the time of a statement goes. The thread that drives a statement has a PhaseClock; scopes say in which phase the
// thread is, and for which section it works. A scope pauses the one around it, so every nanosecond belongs to one phase
// and one section, and they add up. On a thread without a clock, as workers are, scopes do nothing.
//
// A scope reads the clock twice, some 50 ns together: for steps of a statement, not of a row or a tile.
//
// Start at: PhaseClock, PhaseScope. One thread each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace tessera {

enum class Phase : uint8_t {
#define PHASE(Name, Column, Text) k##Name,
#include "base/phases.def"
#undef PHASE
};
inline constexpr size_t kPhases = 0
#define PHASE(Name, Column, Text) +1
#include "base/phases.def"
#undef PHASE
    ;

/// The name of a phase in messages and columns.
const char* NameOf(Phase phase);

/// Bytes between two ranks.
struct Traffic {
  uint64_t sent = 0, received = 0;
};

/// What was spent on a section, or on a whole statement.
struct Account {
  std::array<int64_t, kPhases> nanoseconds{};  ///< by phase
  std::vector<Traffic> traffic;                ///< by the other rank; empty without ranks
  uint64_t collectives = 0;                    ///< operations in which all ranks took part

  double Milliseconds(Phase phase) const { return static_cast<double>(nanoseconds[static_cast<size_t>(phase)]) * 1e-6; }
  /// Of all phases.
  double Milliseconds() const;
  /// Of all phases but waiting for other ranks.
  double BusyMilliseconds() const { return Milliseconds() - Milliseconds(Phase::kWait); }
  Traffic AllTraffic() const;
  void Add(const Account& other);
};

/// A stretch of time in one phase, for a timeline.
struct PhaseSpan {
  int64_t begin = 0, end = 0;  ///< nanoseconds of Clock, on this machine
  int32_t section = -1;        ///< -1: none
  Phase phase{};
  uint8_t zero = 0;
  uint16_t track = 0;  ///< 0: the thread with the clock; 1: a GPU's stream
};

class PhaseClock {
 public:
  /// Starts in `phase`, outside all sections, as the clock of this thread until its end.
  explicit PhaseClock(Phase phase) : before_(current_), phase_(phase) { current_ = this; }
  ~PhaseClock() { current_ = before_; }
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  /// Of this thread; may be nullptr.
  static PhaseClock* current() { return current_; }

  /// Makes room for a program's sections and for traffic with this number of ranks; what was measured stays.
  void Reserve(size_t sections, size_t ranks);
  /// Up to now: of one section, or of the time outside all.
  const Account& Of(int section);
  /// Of all sections and of the time outside them.
  Account All();

  void CountSent(int to, uint64_t bytes);
  void CountReceived(int from, uint64_t bytes);
  void CountCollective() { ++accounts_[account_].collectives; }

  /// From now on spans are kept, up to kMostSpans.
  void KeepSpans() { spans_.reserve(kMostSpans); }
  bool keeps_spans() const { return spans_.capacity() > 0; }
  const std::vector<PhaseSpan>& spans() const { return spans_; }
  /// A span of another track, for the section in whose scope the thread is.
  void AddSpan(Phase phase, uint16_t track, int64_t begin, int64_t end);
  static int64_t Nanoseconds(Clock::time_point at) { return at.time_since_epoch() / std::chrono::nanoseconds(1); }

 private:
  /// 3 MB.
  static constexpr size_t kMostSpans = 1 << 17;

  friend class PhaseScope;
  friend class SectionScope;

  /// Accounts for the time since the last switch.
  void Switch(Phase phase, size_t account) {
    const Clock::time_point now = Clock::now();
    accounts_[account_].nanoseconds[static_cast<size_t>(phase_)] += (now - since_) / std::chrono::nanoseconds(1);
    if (keeps_spans()) AddSpan(phase_, 0, Nanoseconds(since_), Nanoseconds(now));
    since_ = now;
    phase_ = phase;
    account_ = account;
  }

  static inline constinit thread_local PhaseClock* current_ = nullptr;
  PhaseClock* const before_;
  Clock::time_point since_ = Clock::now();
  Phase phase_;
  size_t account_ = 0;
  std::vector<Account> accounts_{1};  ///< outside all sections, then by section
  std::vector<PhaseSpan> spans_;
};

/// From here to its end, this thread is in a phase.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase) : clock_(PhaseClock::current()) {
    if (clock_ == nullptr) return;
    before_ = clock_->phase_;
    clock_->Switch(phase, clock_->account_);
  }
  ~PhaseScope() {
    if (clock_ != nullptr) clock_->Switch(before_, clock_->account_);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  PhaseClock* const clock_;
  Phase before_{};
};

/// From here to its end, this thread works for a section.
class SectionScope {
 public:
  explicit SectionScope(int section) : clock_(PhaseClock::current()) {
    if (clock_ == nullptr) return;
    before_ = clock_->account_;
    const size_t account = static_cast<size_t>(section + 1);
    clock_->Switch(clock_->phase_, account < clock_->accounts_.size() ? account : 0);
  }
  ~SectionScope() {
    if (clock_ != nullptr) clock_->Switch(clock_->phase_, before_);
  }
  SectionScope(const SectionScope&) = delete;
  SectionScope& operator=(const SectionScope&) = delete;

 private:
  PhaseClock* const clock_;
  size_t before_ = 0;
};

/// Bytes that this thread sent to another rank, or received from one, for the section in whose scope it is.
inline void CountSent(int to, uint64_t bytes) {
  if (PhaseClock* const clock = PhaseClock::current(); clock != nullptr) clock->CountSent(to, bytes);
}
inline void CountReceived(int from, uint64_t bytes) {
  if (PhaseClock* const clock = PhaseClock::current(); clock != nullptr) clock->CountReceived(from, bytes);
}
/// The same for an operation of all ranks.
inline void CountCollective() {
  if (PhaseClock* const clock = PhaseClock::current(); clock != nullptr) clock->CountCollective();
}

}  // namespace tessera
