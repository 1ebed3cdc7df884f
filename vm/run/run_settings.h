// The settings of the session that say how sections run. The list is vm/run/run_settings.def.
//
// Start at: RunSettings. Plain data.
#pragma once

#include <cstdint>

namespace tessera::vm {

/// Whether a device partitions the rows of a section by hash slot before it probes a join table.
enum class JoinPartitioning : uint8_t {
  kAuto,  ///< if the table outgrows the device's cache and partitioning should be faster
  kOn,    ///< wherever possible
  kOff,
};

/// SET decompression: how far columns that are stored packed are unpacked before they are read.
enum class Decompression : uint8_t {
  kPartial,  ///< as far as what reads them needs
  kFull,     ///< wholly
};

/// A field a row of the table.
struct RunSettings {
#define RUN_SETTING(Type, Name, Default, Greatest, Comment) Type Name = Type::Default;
#include "vm/run/run_settings.def"
};

}  // namespace tessera::vm
