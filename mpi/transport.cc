// Loading the shared object that has MPI in it.
#include "mpi/transport.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "base/host_name.h"
#include "mpi/launcher.h"

namespace tessera {
namespace {

/// "rank 1 on node7: ", as the launcher says it.
std::string ThisRank() {
  const char* rank = std::getenv("PMIX_RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr ? "" : std::string("rank ") + rank + " on " + HostName() + ": ";
}

}  // namespace

Result<std::unique_ptr<Transport>> OpenTransport() {
  if (!HasLauncher() && TasksOfStep() > 1) {
    return Status(
        ErrorCode::kUnsupported,
        "srun started " + std::to_string(TasksOfStep()) +
            " tasks without PMIx: each would run all statements by itself",
        "Say srun --mpi=pmix. (To start them as single processes all the same: env -u SLURM_STEP_NUM_TASKS.)");
  }
  if (!HasLauncher()) return std::unique_ptr<Transport>();
  const std::string path = TransportPath();
  if (const Status there = TransportIsThere(); !there.ok())
    return Status(there.kind(), ThisRank() + "started by mpirun or srun, but without MPI: " + there.message(),
                  there.hint());
  // RTLD_GLOBAL, because Open MPI loads its own components, which look for its symbols there.
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* const open = object == nullptr ? nullptr : dlsym(object, kTransportFunction);
  if (open == nullptr) {
    const char* const reason = dlerror();
    return Status(ErrorCode::kUnsupported,
                  ThisRank() + "started by mpirun or srun, but without MPI: " + (reason != nullptr ? reason : path),
                  kHowToGetTransport);
  }
  return std::unique_ptr<Transport>(reinterpret_cast<Transport* (*)()>(open)());
}

}  // namespace tessera
