// Joins whose two sides the devices of all ranks exchange by key. The rows of the join table wait on the devices until
// those that probe it have been made, too. Private to vm/.
//
// Start at: ExchangeByDevices. The thread of the run; all ranks.
#pragma once

#include "base/status.h"
#include "vm/run/device_sections.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

/// Both sides of the join go to the ranks of their keys: the table that waits on the devices, and the rows of section
/// `number`, which probe it. `mine`: this rank's, or none if its device keeps them, or an error, which then is that of all.
/// Returns the rows of this rank's keys, or none if the device keeps them. If the devices cannot, the hosts do it.
/// REQUIRES: Placement::IsExchangedByDevices.
Result<RowSet> ExchangeByDevices(RunState* state, DeviceSections* devices, int number, Result<RowSet> mine,
                                 SectionStatistics* stats);

}  // namespace tessera::vm
