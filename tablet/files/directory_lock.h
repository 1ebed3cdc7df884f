// Locks between the processes (and the Database objects of one process) that use a database directory.
//
// Two files, both locked with flock(), never removed:
//   writer.lock   exclusive while a process changes the database; holds the writer's process number, for the message
//   readers.lock  shared while a Snapshot lives; exclusive, for a moment, while files that no table has are removed
// The kernel drops both when a process dies. flock() belongs to the open file, so two objects of one process exclude
// one another as two processes do.
//
// Start at: WriterLock, ReaderLock. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/status.h"
#include "tablet/files/file_descriptor.h"

namespace tessera {

/// The right to change the database; the holder is alone.
class WriterLock {
 public:
  /// Waits up to `timeout_ms`. Errors: kBusy, naming the process that holds the lock; kIo.
  /// `name` is the database's name for the message.
  static Result<WriterLock> Acquire(const std::string& directory, const std::string& name, int timeout_ms);

  /// Holds nothing.
  WriterLock() = default;

 private:
  explicit WriterLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

/// The right to read the files of every table that the catalog had since.
class ReaderLock : public std::enable_shared_from_this<ReaderLock> {
 public:
  /// `read_only`: never creates the lock file. Where it is missing too (a copy on a read-only medium) nothing is
  /// locked.
  static Result<std::shared_ptr<ReaderLock>> Open(const std::string& directory, bool read_only);

  /// Where no other process removes files: nothing is locked.
  static std::shared_ptr<ReaderLock> OfOneProcess();

  /// The lock is held until the last copy of the result is gone.
  Result<std::shared_ptr<const void>> Hold();

  /// Calls `remove` while no other object, of this process or of another, holds the lock. Never waits: false if one does.
  /// What is read under this object's own lock is the caller's to know. REQUIRES: the writer lock is held, without which
  /// no process removes anything: the own lock is given up for a moment.
  bool WhileAlone(const std::function<void()>& remove);

 private:
  ReaderLock(FileDescriptor file, bool is_shared) : file_(std::move(file)), is_shared_(is_shared) {}
  void Drop();

  std::mutex mutex_;
  FileDescriptor file_;
  const bool is_shared_;  ///< with other processes
  int holders_ = 0;
};

}  // namespace tessera
