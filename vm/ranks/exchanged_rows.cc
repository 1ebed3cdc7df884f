#include "vm/ranks/exchanged_rows.h"

#include <algorithm>

#include "base/clock.h"
#include "base/phase_clock.h"
#include "vm/ranks/build_pieces.h"
#include "vm/ranks/heavy_keys.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {
namespace {

/// Units of a rank's portion whose rows are exchanged in a round, at least: a quarter of a million source rows, so that a
/// rank holds little beside the join table, and a round takes long beside its messages.
constexpr size_t kRoundUnits = 4;

/// The rows of a fed section, as the source of the section after it.
class FedSource : public SourceRounds {
 public:
  FedSource(RunState* state, int fed)
      : state_(*state),
        fed_(fed),
        stats_(state->StartStatistics(fed)),
        rows_(state, state->fed[static_cast<size_t>(fed)].device, fed, &stats_) {
    state->result(fed) = MakeRowSet(state->section(fed).columns);
  }

  Status Begin() override { return Status::Ok(); }
  Status Next(bool* last) override {
    RowSet& source = state_.result(fed_);
    source = RowSet{};
    TESSERA_ASSIGN(source, rows_.Next(last));
    came_ += source.rows;
    if (!*last) return Status::Ok();
    stats_.rows_out = came_;
    state_.finished.push_back(stats_);
    return Status::Ok();
  }
  Status Fail(const Status& status) override { return rows_.Fail(status); }
  Status Cut(Scan* scan) override { return RenewSource(&state_, scan); }
  bool RepeatsSource() const override { return false; }

 private:
  RunState& state_;
  const int fed_;
  SectionStatistics stats_;
  ExchangedRows rows_;
  uint64_t came_ = 0;  ///< rows
};

}  // namespace

ExchangedRows::ExchangedRows(RunState* state, DeviceSections* device, int number, SectionStatistics* stats)
    : state_(*state),
      number_(number),
      section_(state->section(number)),
      stats_(stats),
      exchange_(*state->options.exchange),
      portion_(state, device, Status::Ok(), number, stats, RoundsOf(state, device, number)) {
  stats_->distributed = true;
}

Result<RowSet> ExchangedRows::Next(bool* last) {
  const SectionScope scope(number_);
  const auto start = Clock::now();
  Result<RowSet> made = MakeRowSet(section_.columns);
  if (!made_all_) {
    const size_t threads = static_cast<size_t>(state_.pool->threads());
    Result<Shipment> next = portion_.Next(std::max(kRoundUnits, 2 * threads));
    made_all_ = !next.ok() || next->last;
    if (next.ok()) {
      made = std::move(next->rows);
    } else {
      exchange_.Stop();
      made = next.status();
    }
  }
  TESSERA_ASSIGN(RowSet came, ExchangeJoinRows(&state_, number_, ++round_, std::move(made), stats_));
  TESSERA_ASSIGN(const uint64_t open, exchange_.Sum(made_all_ ? 0 : 1));
  *last = open == 0;
  if (*last) portion_.AddStatistics();
  stats_->milliseconds += MillisecondsSince(start);
  return came;
}

Status ExchangedRows::Fail(const Status& status) {
  exchange_.Stop();
  return exchange_.Agree(status);
}

std::unique_ptr<SourceRounds> RoundsOf(RunState* state, const DeviceSections* device, int number) {
  if (device == nullptr) {
    if (std::unique_ptr<BuildPieces> pieces = BuildPieces::Of(state, number)) return pieces;
  }
  const Section& section = state->section(number);
  const bool is_fed =
      section.source_kind == Section::Source::kSection && state->fed[static_cast<size_t>(section.source)].is_fed;
  return is_fed ? std::make_unique<FedSource>(state, section.source) : nullptr;
}

}  // namespace tessera::vm
