// Window functions on the device: the columns that the windows of a section add to its ordered rows, as vm/after/window.h
// makes them on the host. Private to kernels/.
//
// Start at: AddWindows. REQUIRES, of it: the device's mutex is held.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/rows/device_rows.h"
#include "vm/program/program.h"

namespace tessera::kernels {

/// Whether the device has all of the section's windows. It has none of values that are texts, because a text is a number
/// here and may not have its own yet, nor those where NTILE's number is a column.
bool HasWindows(const vm::Section& section);

/// Fills the columns after Section::columns; `rows` has those of vm::TypesOfRows, in the section's order. false: a row
/// is an error, which the host is to find. REQUIRES: HasWindows; there are rows. Errors: kResource, kDevice.
tessera::Result<bool> AddWindows(GpuDevice* gpu, const vm::Section& section, const DeviceRows& rows);

}  // namespace tessera::kernels
