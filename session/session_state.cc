// What a change of the settings means, and what a statement sees.

#include "session/session_state.h"

#include <algorithm>

#include "base/memory_budget.h"
#include "base/temporary_memory.h"
#include "mpi/cluster.h"

namespace tessera {

Status SessionState::OpenGpu() { return gpu.Open(cluster != nullptr ? cluster->local_rank() : 0, options.gpu_memory); }

Result<std::shared_ptr<const Snapshot>> SessionState::Read() {
  TESSERA_ASSIGN(std::shared_ptr<const Snapshot> snapshot, database->Read());
  if (temporary_views.empty()) return snapshot;
  auto with_views = std::make_shared<Snapshot>(*snapshot);
  with_views->views.insert(with_views->views.end(), temporary_views.begin(), temporary_views.end());
  std::sort(with_views->views.begin(), with_views->views.end(), ViewLess);
  return std::shared_ptr<const Snapshot>(std::move(with_views));
}

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
