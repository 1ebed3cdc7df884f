// Finding and loading the shared object that has MPI in it.
#include "mpi/transport.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/host_name.h"
#include "mpi/cluster.h"

namespace tessera {
namespace {

/// "rank 1 on node7: ", as the launcher says it.
std::string ThisRank() {
  const char* rank = std::getenv("PMIX_RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr ? "" : std::string("rank ") + rank + " on " + HostName() + ": ";
}

/// As many as srun started together; 0 without srun.
int TasksOfStep() {
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks != nullptr ? std::atoi(tasks) : 0;
}

constexpr char kHowToGetIt[] =
    "Install Open MPI (libopenmpi-dev, openmpi-bin), say make build/tessera_mpi.so, and keep that file beside tessera "
    "on "
    "every node.";

/// Beside the program.
std::string TransportPath() {
  std::string path(4096, 0);
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return path.substr(0, path.rfind('/') + 1) + "tessera_mpi.so";
}

}  // namespace

Status TransportIsThere() {
  const std::string path = TransportPath();
  if (access(path.c_str(), R_OK) == 0) return Status::Ok();
  return {ErrorCode::kUnsupported, "there is no " + path, kHowToGetIt};
}

bool HasLauncher() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr; }

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
                  kHowToGetIt);
  }
  return std::unique_ptr<Transport>(reinterpret_cast<Transport* (*)()>(open)());
}

}  // namespace tessera
