// How this process was started, and whether it could be a rank: what there is to know before MPI is loaded.
//
// Start at: HasLauncher. Any thread.
#pragma once

#include <string>

#include "base/status.h"

namespace tessera {

/// Whether mpirun or srun has started this process as a rank.
bool HasLauncher();
/// As many as srun started together; 0 without srun.
int TasksOfStep();

/// The file that has MPI in it, beside the program.
std::string TransportPath();
/// kUnsupported: tessera_mpi.so, without which there are no ranks, is not beside the program.
Status TransportIsThere();
/// What to do where it is missing or cannot be loaded.
inline constexpr char kHowToGetTransport[] =
    "Install Open MPI (libopenmpi-dev, openmpi-bin), say make build/tessera_mpi.so, and keep that file beside tessera "
    "on every node.";

}  // namespace tessera
