// The syncing thread.
#include "tablet/file_syncer.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "tablet/io_error.h"

namespace tessera {
namespace {
constexpr size_t kGreatestWaiting = 16;
}  // namespace

Status FileSyncer::SyncAndRename(const File& file) const {
  if (durable_ && fsync(file.descriptor.get()) != 0) return IoError("cannot sync", file.temporary_path, errno);
  if (rename(file.temporary_path.c_str(), file.final_path.c_str()) != 0) {
    return IoError("cannot rename", file.temporary_path, errno);
  }
  return {};
}

void FileSyncer::Add(FileDescriptor file, std::string temporary_path, std::string final_path) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < kGreatestWaiting || !status_.ok() || finishing_; });
  if (!status_.ok()) return;
  waiting_.push_back({std::move(file), std::move(temporary_path), std::move(final_path)});
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_all();
}

void FileSyncer::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !waiting_.empty() || finishing_; });
    if (waiting_.empty()) return;
    const File file = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Status status = SyncAndRename(file);
    lock.lock();
    if (!status.ok() && status_.ok()) status_ = std::move(status);
    if (!status_.ok()) waiting_.clear();
    changed_.notify_all();
  }
}

Status FileSyncer::Finish() {
  {
    std::lock_guard lock(mutex_);
    finishing_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  return status_;
}

void FileSyncer::Abandon() {
  {
    std::lock_guard lock(mutex_);
    waiting_.clear();
  }
  (void)Finish();
}

}  // namespace tessera
