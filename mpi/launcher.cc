// The environment of the launchers, and the folder of the program.
#include "mpi/launcher.h"

#include <unistd.h>

#include <cstdlib>

namespace tessera {

bool HasLauncher() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr; }

int TasksOfStep() {
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks != nullptr ? std::atoi(tasks) : 0;
}

std::string TransportPath() {
  std::string path(4096, 0);
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return path.substr(0, path.rfind('/') + 1) + "tessera_mpi.so";
}

Status TransportIsThere() {
  const std::string path = TransportPath();
  if (access(path.c_str(), R_OK) == 0) return Status::Ok();
  return {ErrorCode::kUnsupported, "there is no " + path, kHowToGetTransport};
}

}  // namespace tessera
