// What ranks get with each query of the session that asks: its settings, listed in mpi/cluster_settings.def, and what it chose.
//
// Start at: ClusterSettings. Plain data.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace tessera {

/// What ranks need of the session's settings: a field a row of the table.
struct ClusterSettings {
#define CLUSTER_SETTING(Type, Name, Default, Greatest, Comment) Type Name = Default;
#include "mpi/cluster_settings.def"
};

/// How the session wants one query to run, where no setting says it. It travels as a whole, too.
struct QueryChoices {
  bool use_gpu = false;
  bool gpu_required = false;
  bool profile = false;     ///< as vm::RunOptions::profile
  bool trace = false;       ///< ranks report their spans, too
  uint64_t gpu_memory = 0;  ///< of each rank, as GpuOptions::memory_bytes
};

}  // namespace tessera
