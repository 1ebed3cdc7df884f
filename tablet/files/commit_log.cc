// Records in pages, so that no write touches a page of an earlier one: a torn one would take that with it.
#include "tablet/files/commit_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/interrupt.h"
#include "tablet/files/io_error.h"
#include "tablet/files/regular_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

constexpr uint64_t kPage = 4096;
/// The file grows by zeros that are synced: a sync of what is written over them has nothing to note in the file system.
constexpr uint64_t kStep = uint64_t{1} << 20;
constexpr char kFileMagic[8] = {'T', 'C', 'O', 'M', 'L', 'O', 'G', '\n'};
constexpr char kRecordMagic[8] = {'T', 'C', 'O', 'M', 'M', 'I', 'T', '\n'};
constexpr uint32_t kVersion = 1;

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  CommitLog::DatabaseId database;
  uint64_t checksum;  ///< of what is before it
};
static_assert(sizeof(FileHeader) == 40);

uint64_t Pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// Whole, or an errno.
int WriteAt(int fd, uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return 0;
}

int WriteZeros(int fd, uint64_t begin, uint64_t end) {
  const std::string zeros(end - begin, '\0');
  return WriteAt(fd, begin, zeros);
}

/// flock() of the log for a moment. Over NFS it also makes a reader look at what others have written.
class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) {}
  ~FileLock() {
    if (locked_) (void)flock(fd_, LOCK_UN);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// 0 or an errno. A writer has it for the time of one sync.
  int Shared() {
    while (flock(fd_, LOCK_SH) != 0) {
      if (errno != EINTR) return errno;
    }
    locked_ = true;
    return 0;
  }
  int Exclusive(int timeout_ms) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EINTR && errno != EWOULDBLOCK) return errno;
      if (std::chrono::steady_clock::now() >= deadline) return EWOULDBLOCK;
      if (Interrupted()) return ECANCELED;
      // (Readers have it for some microseconds.)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    locked_ = true;
    return 0;
  }

 private:
  const int fd_;
  bool locked_ = false;
};

}  // namespace

struct CommitLog::RecordHeader {
  char magic[8];
  uint64_t generation;
  uint64_t number;
  uint64_t bytes;
  uint64_t payload;   ///< XXH3 of the bytes
  uint64_t previous;  ///< the checksum of the record before; 0: it is the first
  uint64_t zero;
  uint64_t checksum;  ///< of what is before it

  uint64_t Checksum() const { return XXH3_64bits(this, offsetof(RecordHeader, checksum)); }
  bool IsValid() const { return memcmp(magic, kRecordMagic, sizeof magic) == 0 && checksum == Checksum(); }
};

Status CommitLog::Damaged(const std::string& reason) const {
  return {ErrorCode::kCorrupt, "commit log \"" + path_ + "\" is corrupt: " + reason,
          "Restore the database from a copy."};
}

Status CommitLog::Create(const std::string& path, const DatabaseId& database) {
  TESSERA_ASSIGN(const FileDescriptor file, OpenRegularFile(path, O_RDWR | O_CREAT | O_TRUNC));
  FileHeader header{};
  memcpy(header.magic, kFileMagic, sizeof kFileMagic);
  header.version = kVersion;
  header.database = database;
  header.checksum = XXH3_64bits(&header, offsetof(FileHeader, checksum));
  int error = WriteZeros(file.get(), 0, kStep);
  if (error == 0) error = WriteAt(file.get(), 0, {reinterpret_cast<const char*>(&header), sizeof header});
  if (error != 0) return IoError("cannot write", path, error);
  return fsync(file.get()) == 0 ? Status() : IoError("cannot sync", path, errno);
}

Result<std::unique_ptr<CommitLog>> CommitLog::Open(const std::string& path, const DatabaseId& database,
                                                   bool read_only) {
  TESSERA_ASSIGN(FileDescriptor file, OpenRegularFile(path, read_only ? O_RDONLY : O_RDWR));
  std::unique_ptr<CommitLog> log(new CommitLog(path, std::move(file)));
  FileHeader header;
  uint64_t got = 0;
  TESSERA_TRY(log->ReadAt(0, reinterpret_cast<char*>(&header), sizeof header, &got));
  if (got != sizeof header || memcmp(header.magic, kFileMagic, sizeof kFileMagic) != 0 ||
      header.checksum != XXH3_64bits(&header, offsetof(FileHeader, checksum)))
    return log->Damaged("it does not begin as one");
  if (header.version != kVersion) return log->Damaged("version " + std::to_string(header.version) + " is not known");
  struct stat info;
  if (fstat(log->file_.get(), &info) != 0) return IoError("cannot read", path, errno);
  if (static_cast<uint64_t>(info.st_size) < kStep) return log->Damaged("it has been cut off");
  if (header.database != database) return log->Damaged("it is another database's");
  return log;
}

Status CommitLog::ReadAt(uint64_t offset, char* to, uint64_t bytes, uint64_t* got) const {
  *got = 0;
  while (*got < bytes) {
    const ssize_t size = pread(file_.get(), to + *got, bytes - *got, static_cast<off_t>(offset + *got));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return IoError("cannot read", path_, errno);
    if (size == 0) break;
    *got += static_cast<uint64_t>(size);
  }
  return {};
}

Result<std::string> CommitLog::Read(uint64_t offset, uint64_t bytes) const {
  std::string out(bytes, '\0');
  uint64_t got = 0;
  TESSERA_TRY(ReadAt(offset, out.data(), bytes, &got));
  if (got != bytes) return Damaged("it has been cut off");
  return out;
}

void CommitLog::Restart(uint64_t generation) {
  failed_ = failed_ && generation == generation_;
  generation_ = generation;
  number_ = 0;
  end_ = kPage;
  previous_ = 0;
}

Result<bool> CommitLog::IsNext(uint64_t offset, RecordHeader* header) const {
  uint64_t got = 0;
  TESSERA_TRY(ReadAt(offset, reinterpret_cast<char*>(header), sizeof *header, &got));
  return got == sizeof *header && header->IsValid() && header->generation == generation_ && header->number == number_ &&
         header->previous == previous_ && header->bytes <= kGreatestRecord;
}

Result<bool> CommitLog::HasLaterRecord() const {
  for (uint64_t at = end_; at < kGreatestBytes; at += kPage) {
    RecordHeader header;
    uint64_t got = 0;
    TESSERA_TRY(ReadAt(at, reinterpret_cast<char*>(&header), sizeof header, &got));
    if (got != sizeof header) return false;
    if (header.IsValid() && header.generation == generation_ && header.number > number_) return true;
  }
  return false;
}

Result<bool> CommitLog::Take(bool looks_for_damage) {
  FileLock lock(file_.get());
  if (const int error = lock.Shared()) return IoError("cannot lock", path_, error);
  RecordHeader header;
  TESSERA_ASSIGN(const bool is_next, IsNext(end_, &header));
  bool whole = is_next;
  if (is_next) {
    record_.resize(header.bytes);
    uint64_t got = 0;
    TESSERA_TRY(ReadAt(end_ + sizeof header, record_.data(), header.bytes, &got));
    whole = got == header.bytes && XXH3_64bits(record_.data(), record_.size()) == header.payload;
  }
  if (!whole) {
    if (!looks_for_damage) return false;
    // The last record may be torn, as the disk was waited for before another was begun. One in the middle has been damaged.
    TESSERA_ASSIGN(const bool is_damaged, HasLaterRecord());
    if (is_damaged) return Damaged("record " + std::to_string(number_ + 1) + " is damaged");
    return false;
  }
  record_offset_ = end_ + sizeof header;
  end_ += Pages(sizeof header + header.bytes);
  previous_ = header.checksum;
  ++number_;
  return true;
}

Result<bool> CommitLog::Next() { return Take(true); }
Result<bool> CommitLog::NextOfOthers() { return Take(false); }

Status CommitLog::MakeRoom(uint64_t bytes) {
  const uint64_t end = end_ + Pages(sizeof(RecordHeader) + bytes);
  if (failed_ || bytes > kGreatestRecord || end > kGreatestBytes)
    return {ErrorCode::kResource, "commit log \"" + path_ + "\" is full"};
  struct stat info;
  if (fstat(file_.get(), &info) != 0) return IoError("cannot read", path_, errno);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size >= end) return {};
  const uint64_t begin = std::max(size, end_);
  if (const int error = WriteZeros(file_.get(), begin, std::min(Pages(begin + kStep), kGreatestBytes)))
    return IoError("cannot write", path_, error);
  return fsync(file_.get()) == 0 ? Status() : IoError("cannot sync", path_, errno);
}

Status CommitLog::Append(std::string_view record, int timeout_ms) {
  RecordHeader header{};
  memcpy(header.magic, kRecordMagic, sizeof kRecordMagic);
  header.generation = generation_;
  header.number = number_;
  header.bytes = record.size();
  header.payload = XXH3_64bits(record.data(), record.size());
  header.previous = previous_;
  header.checksum = header.Checksum();
  buffer_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  buffer_.append(record);
  buffer_.resize(Pages(buffer_.size()), '\0');

  FileLock lock(file_.get());
  if (const int error = lock.Exclusive(timeout_ms)) {
    if (error == EWOULDBLOCK)
      return {ErrorCode::kBusy, "commit log \"" + path_ + "\" is being read by another process"};
    if (error == ECANCELED) return Cancelled();
    return IoError("cannot lock", path_, error);
  }
  int error = WriteAt(file_.get(), end_, buffer_);
  const bool written = error == 0;
  if (written && fdatasync(file_.get()) != 0) error = errno;
  if (error != 0) {
    // No one has seen it yet. Where the disk may have it, the disk has to forget it.
    failed_ = true;
    const bool undone = WriteZeros(file_.get(), end_, end_ + kPage) == 0 && (!written || fdatasync(file_.get()) == 0);
    const Status status = IoError(written ? "cannot sync" : "cannot write", path_, error);
    if (undone) return status;
    return {status.kind(), status.message(), "The change may have been made or not: look before you repeat it."};
  }
  record_offset_ = end_ + sizeof header;
  end_ += buffer_.size();
  previous_ = header.checksum;
  ++number_;
  return {};
}

}  // namespace tessera
