// Waits for the disk on a thread of its own, while a load goes on encoding.
//
// Start at: FileSyncer::Add, FileSyncer::Finish. Any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "base/status.h"
#include "tablet/directory_lock.h"

namespace tessera {

/// Syncs written files and gives them their final names.
class FileSyncer {
 public:
  /// `durable` false: only renames.
  explicit FileSyncer(bool durable) : durable_(durable) {}
  ~FileSyncer() { (void)Finish(); }

  /// Takes over a file that is written. Waits while many files wait already: the memory that holds their dirty pages is
  /// not free either.
  void Add(FileDescriptor file, std::string temporary_path, std::string final_path);
  /// Waits until all files have their names. The first error of any.
  Status Finish();
  /// Files that still wait are closed without a sync or a new name.
  void Abandon();

 private:
  struct File {
    FileDescriptor descriptor;
    std::string temporary_path;
    std::string final_path;
  };
  void Run();
  Status SyncAndRename(const File& file) const;

  const bool durable_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<File> waiting_;
  bool finishing_ = false;
  Status status_;
  std::thread thread_;  ///< started by the first file
};

}  // namespace tessera
