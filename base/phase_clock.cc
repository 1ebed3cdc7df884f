#include "base/phase_clock.h"

#include <algorithm>
#include <numeric>

namespace tessera {

const char* NameOf(Phase phase) {
  static constexpr std::array<const char*, kPhases> kNames = {
#define PHASE(Name, Column, Text) Column,
#include "base/phases.def"
#undef PHASE
  };
  return kNames[static_cast<size_t>(phase)];
}

double Account::Milliseconds() const {
  return static_cast<double>(std::accumulate(nanoseconds.begin(), nanoseconds.end(), int64_t{0})) * 1e-6;
}

Traffic Account::AllTraffic() const {
  Traffic all;
  for (const Traffic& t : traffic) {
    all.sent += t.sent;
    all.received += t.received;
  }
  return all;
}

void Account::Add(const Account& other) {
  for (size_t p = 0; p < kPhases; ++p) nanoseconds[p] += other.nanoseconds[p];
  traffic.resize(std::max(traffic.size(), other.traffic.size()));
  for (size_t r = 0; r < other.traffic.size(); ++r) {
    traffic[r].sent += other.traffic[r].sent;
    traffic[r].received += other.traffic[r].received;
  }
  collectives += other.collectives;
}

void PhaseClock::Reserve(size_t sections, size_t ranks) {
  accounts_.resize(std::max(accounts_.size(), sections + 1));
  for (Account& a : accounts_) a.traffic.resize(std::max(a.traffic.size(), ranks));
}

const Account& PhaseClock::Of(int section) {
  Switch(phase_, account_);
  return accounts_.at(static_cast<size_t>(section + 1));
}

Account PhaseClock::All() {
  Switch(phase_, account_);
  Account all;
  for (const Account& a : accounts_) all.Add(a);
  return all;
}

void PhaseClock::AddSpan(Phase phase, uint16_t track, int64_t begin, int64_t end) {
  // (A scope ends without an error, so nothing is allocated here.)
  if (begin == end || spans_.size() == spans_.capacity()) return;
  const int32_t section = static_cast<int32_t>(account_) - 1;
  if (!spans_.empty()) {
    PhaseSpan& last = spans_.back();
    if (last.end == begin && last.phase == phase && last.section == section && last.track == track) {
      last.end = end;
      return;
    }
  }
  spans_.push_back({begin, end, section, phase, 0, track});
}

void PhaseClock::CountSent(int to, uint64_t bytes) {
  std::vector<Traffic>& traffic = accounts_[account_].traffic;
  if (static_cast<size_t>(to) < traffic.size()) traffic[static_cast<size_t>(to)].sent += bytes;
}

void PhaseClock::CountReceived(int from, uint64_t bytes) {
  std::vector<Traffic>& traffic = accounts_[account_].traffic;
  if (static_cast<size_t>(from) < traffic.size()) traffic[static_cast<size_t>(from)].received += bytes;
}

}  // namespace tessera
