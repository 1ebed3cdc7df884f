#include "vm/ranks/device_exchange.h"

#include <algorithm>
#include <utility>

#include "base/exception_status.h"
#include "vm/ranks/heavy_keys.h"
#include "vm/ranks/key_exchange.h"

namespace tessera::vm {
namespace {

/// By way of the hosts, where the section after then probes, unless only the device has what else it needs.
Result<RowSet> ExchangeByHosts(RunState* state, DeviceSections* devices, int number, Result<RowSet> mine,
                               SectionStatistics* stats) {
  const int join = state->traits.probed_with[static_cast<size_t>(number)];
  const int builder_number = state->join(join).section;
  const Section& section = state->section(number);
  const Section& builder = state->section(builder_number);
  Result<RowSet> built = Caught([&] { return devices->TakeJoin(join); });
  if (devices->Keeps(number)) {
    if (mine.ok()) mine = Caught([&] { return devices->Fetch(number); });
    devices->Drop(number);
  }
  const int prober = state->traits.join(join).exchanged_prober;
  const auto misses = [&](int other) { return other != join && !state->joins.Has(other); };
  // (A join table that was placed on the device is made there.)
  const bool on_device = state->section(prober).sink == Section::Sink::kJoin ||
                         std::ranges::any_of(state->traits.section(prober).probes, misses, &ProbeTrait::join);
  if (!on_device) {
    TESSERA_ASSIGN(RowSet rows, ExchangeJoinRows(state, builder_number, 1, std::move(built), stats));
    state->joins.Keep(join, std::move(rows), builder.keys);
    return ExchangeJoinRows(state, number, 1, std::move(mine), stats);
  }
  TESSERA_ASSIGN(const RowSet rows,
                 ExchangeByKey(state, std::move(built), builder.columns, ExchangeKeys(builder), stats));
  TESSERA_TRY(state->options.exchange->Agree(Caught([&] { return devices->PutJoin(builder, rows); })));
  return ExchangeByKey(state, std::move(mine), section.columns, ExchangeKeys(section), stats);
}

}  // namespace

Result<RowSet> ExchangeByDevices(RunState* state, DeviceSections* devices, int number, Result<RowSet> mine,
                                 SectionStatistics* stats) {
  stats->distributed = true;
  state->distributed[static_cast<size_t>(number)] = true;
  TESSERA_ASSIGN(const bool exchanged, devices->ExchangeJoin(number, mine, stats));
  if (exchanged) return RowSet{};
  Result<RowSet> rows = ExchangeByHosts(state, devices, number, std::move(mine), stats);
  if (rows.ok()) stats->rows_out = rows->rows;
  return rows;
}

}  // namespace tessera::vm
