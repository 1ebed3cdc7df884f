// What a change of the settings means.

#include "session/session_state.h"

#include "base/memory_budget.h"
#include "base/temporary_memory.h"
#include "mpi/cluster.h"

namespace tessera {

Status SessionState::OpenGpu() { return gpu.Open(cluster != nullptr ? cluster->local_rank() : 0, options.gpu_memory); }

Status SessionState::ChangeSettings(const Settings& changed) {
  if (changed.device == DeviceChoice::kGpu) TESSERA_TRY(OpenGpu());
  settings = changed;
  SetMemoryLimit(memory_limit());
  SetTemporaryLimit(static_cast<uint64_t>(settings.temp_file_limit));
  database->SetLockTimeout(static_cast<int>(settings.lock_timeout));
  database->SetCompression(settings.compression);
  programs.SetLimit(static_cast<uint64_t>(settings.program_cache));
  return Status::Ok();
}

}  // namespace tessera
