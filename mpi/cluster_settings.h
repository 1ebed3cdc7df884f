// The settings of the session that ranks get with each query. The list is mpi/cluster_settings.def.
//
// Start at: ClusterSettings. Plain data.
#pragma once

#include <cstdint>

namespace tessera {

/// What ranks need of the session's settings: a field a row of the table.
struct ClusterSettings {
#define CLUSTER_SETTING(Name, Default, Comment) uint64_t Name = Default;
#include "mpi/cluster_settings.def"
};

}  // namespace tessera
