// Runs one rank's portion of a shared section.

#include "vm/ranks/rank_portion.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/exception_status.h"
#include "vm/rows/row_set.h"
#include "vm/run/host_sections.h"
#include "vm/run/unit_runner.h"
#include "vm/shares/portion.h"
#include "vm/shares/tablet_shares.h"

namespace tessera::vm {

RankPortion::RankPortion(RunState* state, DeviceSections* device, const Status& ready, int number,
                         SectionStatistics* stats, std::unique_ptr<SourceRounds> rounds)
    : state_(*state),
      device_(device),
      number_(number),
      section_(state->section(number)),
      stats_(stats),
      status_(ready),
      rounds_(std::move(rounds)) {
  device_rows_ = MakeRowSet(section_.columns);  // all there is if this rank has no tablet
  if (device_ != nullptr || !status_.ok()) return;
  status_ = Caught([&] {
    if (rounds_ != nullptr) TESSERA_TRY(rounds_->Begin());
    return PrepareScan(state, number, &scan_);
  });
}

Result<Shipment> RankPortion::NextOfRound() {
  bool last = false;
  TESSERA_TRY(rounds_->Next(&last));
  Result<Shipment> out = Caught([&]() -> Result<Shipment> {
    TESSERA_TRY(rounds_->Cut(&scan_));
    next_ = 0;
    return NextOfHost(SIZE_MAX);
  });
  if (!out.ok()) return last ? out.status() : rounds_->Fail(out.status());
  if (rounds_->RepeatsSource()) {
    // What the source's units make of a piece is one unit, the first pieces' first.
    const Exchange& exchange = *state_.options.exchange;
    const auto ranks = static_cast<uint64_t>(exchange.ranks());
    out->units.clear();
    if (out->rows.rows > 0)
      out->units.push_back({round_ * ranks + static_cast<uint64_t>(exchange.rank()), out->rows.rows});
    ++round_;
  }
  out->last = last;
  out->through = last ? UINT64_MAX : 0;
  stats_->rows_out += out->rows.rows;
  return out;
}

Result<Shipment> RankPortion::Next(size_t window) {
  if (in_rounds()) return status_.ok() ? NextOfRound() : rounds_->Fail(status_);
  TESSERA_TRY(status_);
  TESSERA_ASSIGN(Shipment out, Caught([&] { return on_device() ? NextOfDevice(window) : NextOfHost(window); }));
  stats_->rows_out += out.rows.rows;
  return out;
}

/// Whether this rank has something to run the section over.
bool RankPortion::HasSource() const {
  const TableInfo* const table = device_->TableOf(number_);
  return table == nullptr || !table->tablets.empty();
}

Result<Shipment> RankPortion::NextOfDevice(size_t window) {
  if (next_ == 0 && HasSource()) {
    TESSERA_ASSIGN(device_rows_, device_->Run(number_, stats_));
  }
  if (is_kept()) {
    Shipment kept;
    kept.rows.rows = device_rows_.rows;
    return kept;
  }
  Shipment out;
  out.rows = MakeRowSet(section_.columns);
  const size_t count = std::min(device_rows_.rows - next_, window * kUnitRows);
  AppendRange(&out.rows, device_rows_, next_, count);
  // The GPU makes rows in any order, so they are all sent as one unit, with this rank as its number.
  if (count > 0) out.units.push_back({static_cast<uint64_t>(state_.options.exchange->rank()), count});
  next_ += count;
  out.last = next_ == device_rows_.rows;
  out.through = out.last ? UINT64_MAX : 0;
  return out;
}

Result<Shipment> RankPortion::NextOfHost(size_t window) {
  Shipment out;
  out.rows = MakeRowSet(section_.columns);
  const ScanUnits& units = scan_.units;
  const size_t last = std::min(units.size(), next_ + std::min(window, units.size()));
  do {
    const size_t end = std::min(last, next_ + kWindowUnits);
    std::deque<UnitOutput> outputs(end - next_);
    TESSERA_TRY(RunUnits(&state_, &scan_, {next_, end, WantedRows(section_, made_)}, &outputs));
    for (size_t u = next_; u < end; ++u) {
      RowSet& rows = outputs[u - next_].rows;
      if (rows.rows == 0) continue;
      out.units.push_back({units.At(u).number, rows.rows});
      made_ += rows.rows;
      AppendRows(&out.rows, std::move(rows));
    }
    next_ = end;
  } while (next_ < last && WantedRows(section_, made_) > 0);
  out.last = next_ == units.size() || WantedRows(section_, made_) == 0;
  out.through = out.last ? UINT64_MAX : units.At(next_).number;
  return out;
}

Result<Shipment> RankPortion::All() {
  Result<Shipment> all = Next(SIZE_MAX / kUnitRows);
  while (all.ok() && !all->last) {
    Result<Shipment> next = Next(SIZE_MAX / kUnitRows);
    if (!next.ok()) {
      all = next.status();
      break;
    }
    all->units.insert(all->units.end(), next->units.begin(), next->units.end());
    AppendRows(&all->rows, std::move(next->rows));
    all->last = next->last;
    all->through = next->through;
  }
  AddStatistics();
  if (!all.ok()) state_.options.exchange->Stop();
  return all;
}

Status RankPortion::Fetch(Shipment* all) {
  TESSERA_ASSIGN(all->rows, device_->Fetch(number_));
  device_->Drop(number_);
  all->units = {{static_cast<uint64_t>(state_.options.exchange->rank()), all->rows.rows}};
  return Status::Ok();
}

Status RankPortion::FindGroups() {
  if (!status_.ok()) return in_rounds() ? rounds_->Fail(status_) : status_;
  if (on_device()) {
    if (section_.keys > 0) {
      TESSERA_ASSIGN(device_groups_, device_->FindGroups(number_, stats_));
      has_device_groups_ = true;
    } else if (HasSource()) {
      TESSERA_ASSIGN(device_rows_, device_->Run(number_, stats_));
    }
    return Status::Ok();
  }
  Status status = in_rounds() ? GroupRounds() : RunAllUnits(&state_, &scan_, nullptr);
  AddStatistics();
  return status;
}

uint64_t RankPortion::groups() const {
  uint64_t groups = device_groups_ + device_rows_.rows;
  for (const std::unique_ptr<WorkerGroups>& worker : scan_.groups) groups += worker == nullptr ? 0 : worker->groups();
  return groups;
}

Result<std::unique_ptr<GroupTable>> RankPortion::Groups() {
  if (on_device()) {
    auto groups = std::make_unique<GroupTable>(section_, &state_.strings);
    TESSERA_ASSIGN(const RowSet rows, GroupRows());
    if (rows.rows > 0) TESSERA_TRY(groups->Merge(rows));
    return groups;
  }
  TESSERA_TRY(MergeIntoFirst(scan_.groups));
  return std::make_unique<GroupTable>(std::move(scan_.groups[0]->table));
}

Result<RowSet> RankPortion::GroupRows() {
  if (has_device_groups_) return device_->TakeGroups(false);
  if (on_device()) return std::move(device_rows_);
  return MergeGroups(section_, &state_.strings, state_.pool, scan_.groups);
}

Result<RowSet> RankPortion::ExchangeGroups(const std::vector<GroupOffer>& offers) {
  const uint64_t before = device_groups_;
  TESSERA_ASSIGN(stats_->rows_out, device_->ExchangeGroups(offers));
  stats_->rows_exchanged += before - before / static_cast<uint64_t>(state_.options.exchange->ranks());
  return OwnGroups();
}

Result<RowSet> RankPortion::OwnGroups() {
  TESSERA_ASSIGN(RowSet rows, has_device_groups_ ? device_->TakeGroups(true) : GroupRows());
  stats_->rows_out = rows.rows;
  return is_kept() ? RowSet{} : std::move(rows);
}

Status RankPortion::GroupRounds() {
  for (bool last = false; !last;) {
    TESSERA_TRY(rounds_->Next(&last));
    const Status status = Caught([&] {
      TESSERA_TRY(rounds_->Cut(&scan_));
      return RunAllUnits(&state_, &scan_, nullptr);
    });
    if (!status.ok()) return last ? status : rounds_->Fail(status);
  }
  return Status::Ok();
}

void RankPortion::AddStatistics() {
  if (!on_device()) AddScan(scan_, &state_, stats_);
}

}  // namespace tessera::vm
