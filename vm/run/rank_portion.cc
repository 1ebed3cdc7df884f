// Runs one rank's portion of a shared section.

#include "vm/run/rank_portion.h"

#include <algorithm>
#include <deque>

#include "base/clock.h"
#include "vm/row_set.h"
#include "vm/run/host_sections.h"
#include "vm/run/portion.h"
#include "vm/run/unit_runner.h"

namespace tessera::vm {

RankPortion::RankPortion(RunState* state, DeviceSections* device, int number, SectionStatistics* stats)
    : state_(*state), device_(device), number_(number), section_(state->section(number)), stats_(stats) {
  if (device_ == nullptr) {
    status_ = Caught([&] { return PrepareScan(state, number, &scan_); });
    return;
  }
  device_rows_ = MakeRowSet(section_.columns);  // all there is if this rank has no tablet
  const TableInfo& table = *state->SourceTable(section_);
  tablets_.id = table.id;
  tablets_.schema = table.schema;
  tablets_.statistics = table.statistics;
  const Exchange& exchange = *state->options.exchange;
  for (size_t t = static_cast<size_t>(exchange.rank()); t < table.tablets.size();
       t += static_cast<size_t>(exchange.ranks())) {
    tablets_.tablets.push_back(table.tablets[t]);
    tablets_.rows += table.tablets[t]->rows();
  }
}

Result<Shipment> RankPortion::Next(size_t window) {
  TESSERA_TRY(status_);
  const auto start = Clock::now();
  TESSERA_ASSIGN(Shipment out, Caught([&] { return on_device() ? NextOfDevice(window) : NextOfHost(window); }));
  state_.mine.execute += MillisecondsSince(start);
  stats_->rows_out += out.rows.rows;
  return out;
}

Result<Shipment> RankPortion::NextOfDevice(size_t window) {
  if (next_ == 0 && !tablets_.tablets.empty()) {
    TESSERA_ASSIGN(device_rows_, device_->Run(number_, &tablets_, stats_));
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
  AddStatistics();
  if (!all.ok()) state_.options.exchange->Stop();
  return all;
}

Status RankPortion::Groups(std::unique_ptr<GroupTable>* groups) {
  return Caught([&] { return MakeGroups(groups); });
}

Status RankPortion::MakeGroups(std::unique_ptr<GroupTable>* groups) {
  *groups = std::make_unique<GroupTable>(section_, &state_.strings);
  TESSERA_TRY(status_);
  if (on_device()) {
    if (tablets_.tablets.empty()) return Status::Ok();
    TESSERA_ASSIGN(const RowSet rows, device_->Run(number_, &tablets_, stats_));
    return (*groups)->Merge(rows);
  }
  Status status = RunAllUnits(&state_, &scan_, nullptr);
  AddStatistics();
  TESSERA_TRY(status);
  TESSERA_TRY(MergeIntoFirst(scan_.groups));
  *groups = std::make_unique<GroupTable>(std::move(scan_.groups[0]->table));
  return Status::Ok();
}

void RankPortion::AddStatistics() {
  if (!on_device()) AddScan(scan_, &state_, stats_);
}

}  // namespace tessera::vm
