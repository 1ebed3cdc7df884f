// The syncing thread.
#include "tablet/files/file_syncer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>

#include "base/exception_status.h"
#include "tablet/files/io_error.h"

namespace tessera {
namespace {
constexpr size_t kGreatestWaiting = 16;
constexpr std::chrono::milliseconds kCancelInterval{20};
/// Bytes that a disk has in some milliseconds, in which a statement cannot be cancelled.
constexpr off_t kSmallFile = off_t{1} << 20;
}  // namespace

Status FileSyncer::RenameAndSync(const File& file, bool sync) const {
  if (!file.final_path.empty() && rename(file.temporary_path.c_str(), file.final_path.c_str()) != 0)
    return IoError("cannot rename", file.temporary_path, errno);
  if (sync && fsync(file.descriptor.get()) != 0)
    return IoError("cannot sync", file.final_path.empty() ? file.temporary_path : file.final_path, errno);
  return {};
}

void FileSyncer::Add(FileDescriptor file, std::string temporary_path, std::string final_path) {
  std::unique_lock lock(mutex_);
  while (waiting_.size() >= kGreatestWaiting && status_.ok() && !Cancelled()) changed_.wait_for(lock, kCancelInterval);
  if (status_.ok() && Cancelled()) status_ = {ErrorCode::kCancelled, "cancelled"};
  if (!status_.ok()) return;
  struct stat info {};
  const bool is_small = fstat(file.get(), &info) == 0 && info.st_size <= kSmallFile;
  const bool needs_thread = !waiting_.empty() || (durable_ && !is_small);
  // The disk starts to write now, while other tablets are encoded, so that the fsync() before the commit waits less.
  if (durable_ && !is_small) (void)sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  if (needs_thread && !thread_.started()) status_ = thread_.Start([this] { return Run(); });
  if (!status_.ok()) return;
  waiting_.push_back({std::move(file), std::move(temporary_path), std::move(final_path)});
  changed_.notify_all();
}

void FileSyncer::WorkOnNext(std::unique_lock<std::mutex>* lock, bool sync) {
  const File file = std::move(waiting_.front());
  waiting_.pop_front();
  working_ = true;
  lock->unlock();
  Status status;
  try {
    status = RenameAndSync(file, sync);
  } catch (...) {  // a thread that waits for the file must learn of it
    status = StatusOfException();
  }
  lock->lock();
  working_ = false;
  if (!status.ok() && status_.ok()) status_ = std::move(status);
  if (!status_.ok()) waiting_.clear();
  changed_.notify_all();
}

Status FileSyncer::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !waiting_.empty() || finishing_; });
    if (waiting_.empty()) return {};
    WorkOnNext(&lock, durable_);
  }
}

Status FileSyncer::Finish(std::vector<std::string>* unsynced) {
  std::unique_lock lock(mutex_);
  while ((!waiting_.empty() || working_) && status_.ok()) {
    if (Cancelled()) {
      status_ = {ErrorCode::kCancelled, "cancelled"};
      break;
    }
    if (thread_.started()) {
      changed_.wait_for(lock, kCancelInterval);
    } else {
      if (durable_ && unsynced != nullptr)
        unsynced->push_back(waiting_.front().final_path.empty() ? waiting_.front().temporary_path
                                                                : waiting_.front().final_path);
      WorkOnNext(&lock, durable_ && unsynced == nullptr);
    }
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
