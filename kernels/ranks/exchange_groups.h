// The groups of a section go to the ranks of their keys, device to device, and become one for each key. Private to
// kernels/.
//
// Start at: ExchangeGroups. REQUIRES: the device's mutex is held; all ranks call it together.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/groups/group_store.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/plan/lower.h"
#include "kernels/ranks/group_texts.h"
#include "kernels/ranks/rank_links.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"
#include "vm/run/device.h"
#include "vm/shares/exchange.h"

namespace tessera::kernels {

/// Groups that are to be exchanged, and their texts.
struct GroupsToExchange {
  const vm::Section& section;
  const LoweredProgram& lowered;
  GroupStore* groups = nullptr;
  GroupTexts* texts = nullptr;
  vm::StringPool* strings = nullptr;
  ThreadPool* pool = nullptr;
};

/// What this rank tells the others. Its groups can be exchanged if all are in the device's table, their states can be added
/// and have no texts, those in their keys are few enough to be told, and there is room.
tessera::Result<vm::GroupOffer> OfferGroups(GpuDevice* gpu, const GroupsToExchange& what, uint64_t ranks);

/// `offers`: of all ranks. `mine`: an error of this rank, which then is that of all. REQUIRES: they all can; the groups are
/// normalised; links are connected.
Status ExchangeGroups(GpuDevice* gpu, RankLinks* links, vm::Exchange* exchange,
                      const std::vector<vm::GroupOffer>& offers, Status mine, const GroupsToExchange& what);

}  // namespace tessera::kernels
