#include "vm/ranks/exchanged_rows.h"

#include <algorithm>

#include "base/clock.h"
#include "base/phase_clock.h"
#include "vm/ranks/heavy_keys.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {
namespace {

/// Units of a rank's portion whose rows are exchanged in a round, at least: a quarter of a million source rows, so that a
/// rank holds little beside the join table, and a round takes long beside its messages.
constexpr size_t kRoundUnits = 4;

}  // namespace

ExchangedRows::ExchangedRows(RunState* state, DeviceSections* device, int number, SectionStatistics* stats)
    : state_(*state),
      number_(number),
      section_(state->section(number)),
      stats_(stats),
      exchange_(*state->options.exchange),
      portion_(state, device, Status::Ok(), number, stats) {
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

}  // namespace tessera::vm
