// Identifiers for texts that rows on the device have numbers of (vm/rows/late_texts.h). Private to kernels/.
//
// Start at: ResolveTexts. REQUIRES: the device's mutex is held.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// Puts identifiers in the place of the numbers among `rows` values on the device, by way of the host.
Status ResolveTexts(GpuDevice* gpu, const vm::SectionContext& context, uint64_t* values, uint64_t rows);

}  // namespace tessera::kernels
