// The groups of a section go to the ranks of their keys, device to device, and become one for each key. Private to
// kernels/.
//
// Start at: ExchangeGroups. REQUIRES: the device's mutex is held; all ranks call it together.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/plan/lower.h"
#include "kernels/ranks/rank_links.h"
#include "kernels/run/group_store.h"
#include "vm/vm.h"

namespace tessera::kernels {

/// Whether groups of this section mean the same on all ranks, and their states can be added. (Identifiers of texts are
/// each rank's own.)
bool CanExchangeGroups(const vm::Section& section, const LoweredProgram& lowered);

/// REQUIRES: CanExchangeGroups; all groups are in the device's table, normalised. `mine`: an error of this rank, which then
/// is that of all.
Status ExchangeGroups(GpuDevice* gpu, RankLinks* links, vm::Exchange* exchange, Status mine, const vm::Section& section,
                      const LoweredProgram& lowered, GroupStore* groups);

}  // namespace tessera::kernels
