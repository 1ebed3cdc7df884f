// The syncing thread.
#include "tablet/file_syncer.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>

#include "tablet/io_error.h"

namespace tessera {
namespace {
constexpr size_t kGreatestWaiting = 16;
constexpr std::chrono::milliseconds kCancelInterval{20};
}  // namespace

Status FileSyncer::SyncAndRename(const File& file) const {
  if (durable_ && fsync(file.descriptor.get()) != 0) return IoError("cannot sync", file.temporary_path, errno);
  if (file.final_path.empty()) return {};
  if (rename(file.temporary_path.c_str(), file.final_path.c_str()) != 0) {
    return IoError("cannot rename", file.temporary_path, errno);
  }
  return {};
}

void FileSyncer::Add(FileDescriptor file, std::string temporary_path, std::string final_path) {
  std::unique_lock lock(mutex_);
  while (waiting_.size() >= kGreatestWaiting && status_.ok() && !Cancelled()) changed_.wait_for(lock, kCancelInterval);
  if (status_.ok() && Cancelled()) status_ = {ErrorCode::kCancelled, "cancelled"};
  if (!status_.ok()) return;
  if (!thread_.started()) status_ = thread_.Start([this] { return Run(); });
  if (!status_.ok()) return;
  waiting_.push_back({std::move(file), std::move(temporary_path), std::move(final_path)});
  changed_.notify_all();
}

Status FileSyncer::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !waiting_.empty() || finishing_; });
    if (waiting_.empty()) return {};
    const File file = std::move(waiting_.front());
    waiting_.pop_front();
    working_ = true;
    lock.unlock();
    Status status;
    try {
      status = SyncAndRename(file);
    } catch (...) {  // those that wait for the file must learn of it
      status = StatusOfException();
    }
    lock.lock();
    working_ = false;
    if (!status.ok() && status_.ok()) status_ = std::move(status);
    if (!status_.ok()) waiting_.clear();
    changed_.notify_all();
  }
}

Status FileSyncer::Finish() {
  std::unique_lock lock(mutex_);
  while ((!waiting_.empty() || working_) && status_.ok()) {
    if (Cancelled()) {
      status_ = {ErrorCode::kCancelled, "cancelled"};
      break;
    }
    changed_.wait_for(lock, kCancelInterval);
  }
  return status_;
}

void FileSyncer::Abandon() {
  {
    std::lock_guard lock(mutex_);
    waiting_.clear();
    finishing_ = true;
    changed_.notify_all();
  }
  // A sync that has begun cannot be stopped, but it is that of one tablet only.
  (void)thread_.Join();
}

}  // namespace tessera
