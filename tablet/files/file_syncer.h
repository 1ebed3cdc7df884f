// Waits for the disk on a thread of its own, while a load goes on encoding.
//
// Start at: FileSyncer::Add, FileSyncer::Finish. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "base/background_thread.h"
#include "base/interrupt.h"
#include "base/status.h"
#include "tablet/files/file_descriptor.h"

namespace tessera {

/// Gives written files their final names and syncs them. (In this order: the catalog names neither, and a file system whose
/// journal is written at each sync writes it once.)
class FileSyncer {
 public:
  /// `durable` false: only renames. `cancel` (may be nullptr) ends the waiting of Add() and Finish(), and so does an
  /// interruption of their thread.
  FileSyncer(bool durable, const std::atomic<bool>* cancel) : durable_(durable), cancel_(cancel) {}
  ~FileSyncer() { Abandon(); }

  /// Takes over a file that is written. An empty `final_path`: it keeps its name. Waits while many files wait already:
  /// the memory that holds their dirty pages is not free either. A first small file waits for Finish(), which syncs it if no
  /// other has come: a thread costs as much as one.
  void Add(FileDescriptor file, std::string temporary_path, std::string final_path);
  /// Waits until all files have their names. The first error of any; kCancelled.
  /// `unsynced` (may be nullptr): a small file for which no thread was started is only named, and it becomes its path.
  Status Finish(std::vector<std::string>* unsynced);
  /// Ends the thread. Files that still wait are closed without a sync or a new name.
  void Abandon();

 private:
  struct File {
    FileDescriptor descriptor;
    std::string temporary_path;
    std::string final_path;
  };
  Status Run();
  bool Cancelled() const { return Interrupted() || (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)); }
  Status RenameAndSync(const File& file, bool sync) const;
  /// Takes the next file's work. REQUIRES: lock holds mutex_, and a file waits.
  void WorkOnNext(std::unique_lock<std::mutex>* lock, bool sync);

  const bool durable_;
  const std::atomic<bool>* const cancel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<File> waiting_;
  bool working_ = false;    ///< the thread has a file
  bool finishing_ = false;  ///< the thread shall end when no file waits
  Status status_;
  BackgroundThread thread_;  ///< started by the first file
};

}  // namespace tessera
