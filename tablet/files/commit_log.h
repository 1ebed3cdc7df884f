// The commit log: a file of records, each one small change of the catalog, synced before the change is acknowledged. What the
// records say is not known here (log_record.h of the catalog). FORMAT.md gives the bytes.
//
// Records of one generation follow one another from the beginning; what a catalog has taken over belongs to an older one, and
// is written over. Who writes holds the database's writer lock, and for the time of a record an exclusive lock of the file:
// readers see a record only when the disk has it.
//
// Start at: CommitLog::Open, Next, Append. Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tablet/files/file_descriptor.h"

namespace tessera {

class CommitLog {
 public:
  using DatabaseId = std::array<uint8_t, 16>;
  /// Larger changes are not worth a record: the disk takes them twice then.
  static constexpr uint64_t kGreatestRecord = uint64_t{256} << 10;
  /// When it is full, the catalog takes over what is in it: some syncs for a hundred records and more.
  static constexpr uint64_t kGreatestBytes = uint64_t{4} << 20;

  /// An empty log, in place of what is there, on the disk but for the directory's entry.
  static Status Create(const std::string& path, const DatabaseId& database);
  /// Errors: kCorrupt: it is no log, or another database's; kIo.
  static Result<std::unique_ptr<CommitLog>> Open(const std::string& path, const DatabaseId& database, bool read_only);

  /// The records are those of this generation from now on, and the next one is the first.
  void Restart(uint64_t generation);
  /// Takes the next record; false: there is none yet. Errors: kIo; kCorrupt: it is damaged, and there are others after it.
  Result<bool> Next();
  /// As Next(), but does not look for records after a damaged one: cheap where there is none.
  Result<bool> NextOfOthers();
  /// Of the record that was taken last.
  const std::string& record() const { return record_; }
  uint64_t record_offset() const { return record_offset_; }
  /// A part of what a record holds, by its offset in the file. REQUIRES: no one has written over it.
  Result<std::string> Read(uint64_t offset, uint64_t bytes) const;

  /// Makes room for a record of that many bytes. Errors: the log is full, or the disk is.
  Status MakeRoom(uint64_t bytes);
  /// Adds a record after those that were taken, and waits for the disk. Afterwards record() is it. REQUIRES: MakeRoom().
  /// After an error it is not there, unless the message says that this cannot be known; nothing is added to this generation
  /// any more then. Errors: kBusy, where a reader of another process has the file locked for `timeout_ms`.
  Status Append(std::string_view record, int timeout_ms);
  /// Whether nothing is added to this generation any more.
  bool failed() const { return failed_; }

 private:
  struct RecordHeader;
  CommitLog(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  Status ReadAt(uint64_t offset, char* to, uint64_t bytes, uint64_t* got) const;
  /// Whether the header of the record that is expected next is at that place.
  Result<bool> IsNext(uint64_t offset, RecordHeader* header) const;
  /// Whether a record of this generation that comes after the next one is there.
  Result<bool> HasLaterRecord() const;
  Result<bool> Take(bool looks_for_damage);
  Status Damaged(const std::string& reason) const;

  const std::string path_;
  const FileDescriptor file_;
  uint64_t generation_ = 0, number_ = 0, end_ = 0, previous_ = 0;
  bool failed_ = false;
  std::string record_;
  uint64_t record_offset_ = 0;
  mutable std::string buffer_;
};

}  // namespace tessera
