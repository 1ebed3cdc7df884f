// What a change of the settings means, and what a statement sees.

#include "session/session_state.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/memory_budget.h"
#include "base/size_text.h"
#include "base/temporary_memory.h"
#include "mpi/cluster.h"

namespace tessera {

uint64_t SessionState::session_memory() const {
  const auto bytes = static_cast<uint64_t>(settings.session_memory);
  return bytes != 0 ? bytes : options.session_memory != 0 ? options.session_memory : UINT64_MAX;
}

Status SessionState::OpenGpu() {
  return engine->OpenGpu(cluster != nullptr ? cluster->local_rank() : 0, options.gpu_memory);
}

Settings SessionState::CurrentSettings() const {
  Settings current = settings;
  if (options.engine == nullptr) return current;
  current.temp_file_limit = static_cast<int64_t>(std::min<uint64_t>(TemporaryLimit(), INT64_MAX));
  const uint64_t limit = MemoryLimit();
  current.memory_limit = limit == defaults.memory_limit || limit > INT64_MAX ? 0 : static_cast<int64_t>(limit);
  return current;
}

Result<std::shared_ptr<const Snapshot>> SessionState::Read() {
  TESSERA_ASSIGN(std::shared_ptr<const Snapshot> snapshot, database->Read());
  return WithTemporary(std::move(snapshot));
}

Result<std::shared_ptr<const Snapshot>> SessionState::WithTemporary(std::shared_ptr<const Snapshot> snapshot) {
  std::shared_ptr<const Snapshot> of_session;
  if (temporaries.database != nullptr) {
    TESSERA_ASSIGN(of_session, temporaries.database->Read());
  }
  const bool has_tables = of_session != nullptr && !of_session->tables.empty();
  const bool has_sequences = of_session != nullptr && !of_session->names.sequences.empty();
  const bool has_frames = !temporaries.frames.empty();
  if (temporaries.views.empty() && !has_tables && !has_frames && !has_sequences && search_path.empty() &&
      attached.empty())
    return snapshot;
  auto all = std::make_shared<Snapshot>(*snapshot);
  for (const std::string& schema : search_path) {  // those that are there
    const bool is_default = schema == "public" || schema == "main";
    if (is_default || std::ranges::count(all->names.schemas, schema) > 0) all->path.push_back(is_default ? "" : schema);
  }
  TESSERA_ASSIGN(all->attached, ReadAttached());
  all->views.insert(all->views.end(), temporaries.views.begin(), temporaries.views.end());
  std::sort(all->views.begin(), all->views.end(), ViewLess);
  if (has_tables) all->tables.insert(all->tables.end(), of_session->tables.begin(), of_session->tables.end());
  if (has_tables || has_frames) {
    all->tables.insert(all->tables.end(), temporaries.frames.begin(), temporaries.frames.end());
    std::ranges::sort(all->tables, {}, [](const auto& table) { return std::string_view(table->schema.name); });
  }
  if (has_sequences) {
    Sequences& of_both = all->names.sequences;
    const Sequences& more = of_session->names.sequences;
    of_both.insert(of_both.end(), more.begin(), more.end());
    std::ranges::sort(of_both, {}, &Sequence::name);
  }
  return std::shared_ptr<const Snapshot>(std::move(all));
}

Result<AttachedDatabases::List> SessionState::ReadAttached() {
  if (transaction.is_open && transaction.attached) return *transaction.attached;
  AttachedLakes lakes;
  TESSERA_ASSIGN(AttachedDatabases::List list, attached.Read(&lakes));
  files.SetLakes(std::move(lakes));
  if (transaction.is_open) transaction.attached = list;
  return list;
}

Status SessionState::ChangeSettings(const Settings& changed) {
  if (options.session_memory != 0 && static_cast<uint64_t>(changed.session_memory) > options.session_memory) {
    return SqlError(ErrorKind::kInsufficientPrivilege,
                    "session_memory may not be more than " + SizeText(options.session_memory), -1,
                    "The server was started with --session-memory.");
  }
  if (changed.device == DeviceChoice::kGpu) TESSERA_TRY(OpenGpu());
  settings = changed;
  SetMemoryLimit(memory_limit());
  SetTemporaryLimit(static_cast<uint64_t>(settings.temp_file_limit));
  database->SetLockTimeout(static_cast<int>(settings.lock_timeout));
  attached.SetLockTimeout(static_cast<int>(settings.lock_timeout));
  database->SetCompression(settings.compression);
  if (temporaries.database != nullptr) temporaries.database->SetCompression(settings.compression);
  programs.SetLimit(static_cast<uint64_t>(settings.program_cache));
  return Status::Ok();
}

}  // namespace tessera
