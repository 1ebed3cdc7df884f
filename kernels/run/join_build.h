// Building join tables: runs the sections that make their rows and lays the tables out. Private to kernels/.
//
// Start at: BuildJoins. REQUIRES: the device's mutex is held.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "kernels/join/device_joins.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/ranks/rank_links.h"
#include "kernels/ranks/rank_texts.h"
#include "kernels/run/kept_results.h"
#include "kernels/run/waiting_tables.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// Builds the tables of sections that do not need each other's, over stored tables and over `results`. `meanwhile` is
/// called while the device makes their rows. `begun`: an error of this rank; if ranks build together it is that of all, as
/// those are that turn up before the rows are on their way. `links`, `texts`: what they know of each other. `waiting`: gets
/// the rows of tables that are to be exchanged. Errors: those of the sections; kUnsupported, kResource: a table cannot be
/// here.
Status BuildJoins(GpuDevice* gpu, DeviceJoins* joins, const KeptResults& results, RankLinks* links, RankTexts* texts,
                  WaitingTables* waiting, const std::vector<vm::SectionContext>& contexts, const Status& begun,
                  const std::function<void()>& meanwhile);

}  // namespace tessera::kernels
