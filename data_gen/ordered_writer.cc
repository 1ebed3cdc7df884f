#include "data_gen/ordered_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tessera {
namespace {

volatile std::sig_atomic_t caught_signal = 0;

Status IoError(const std::string& path, const char* doing, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) hint = "free some space or choose another place";
  if (error == EACCES || error == EPERM || error == EROFS) hint = "choose a place that you may write to";
  return {ErrorCode::kIo, std::string("cannot ") + doing + " " + path + ": " + std::generic_category().message(error),
          std::move(hint)};
}

/// A file that gets its name when it is complete, and is removed if it never is.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path) : path_(std::move(path)) {}
  ~AtomicFile() {
    if (fd_ < 0) return;
    close(fd_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  Status Open() {
    struct stat existing {};
    const bool direct = stat(path_.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode);
    if (!direct) temporary_ = path_ + "." + std::to_string(getpid()) + ".partial";
    // A file of that name can only be left over from a dead process with our number: overwrite it.
    fd_ = open(Target().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return fd_ < 0 ? IoError(path_, "create", errno) : Status::Ok();
  }

  Status Write(std::string_view bytes) {
    while (!bytes.empty()) {
      if (caught_signal != 0) return {ErrorCode::kCancelled, "interrupted while writing " + path_};
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      if (n >= 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
      } else if (errno != EINTR) {
        return IoError(path_, "write", errno);
      }
    }
    return Status::Ok();
  }

  /// Gives the file its name. Some file systems report a full disk only on closing.
  Status Commit() {
    const int fd = std::exchange(fd_, -1);
    if (close(fd) != 0 && errno != EINTR) {
      const int error = errno;
      if (!temporary_.empty()) unlink(temporary_.c_str());
      return IoError(path_, "finish", error);
    }
    if (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      const int error = errno;
      unlink(temporary_.c_str());
      return IoError(path_, "rename the finished file to", error);
    }
    return Status::Ok();
  }

 private:
  const std::string& Target() const { return temporary_.empty() ? path_ : temporary_; }

  std::string path_;
  std::string temporary_;  ///< empty if path_ is written directly
  int fd_ = -1;            ///< -1 before Open() and after Commit()
};

/// The ring between the threads that make blocks and the one that writes them. Block b uses slot b modulo the number of
/// slots, so a block may be started once the block a whole ring before it is written.
class BlockRing {
 public:
  BlockRing(uint64_t blocks, size_t slots) : blocks_(blocks), slots_(slots) {}

  struct Slot {
    RowBuffer rows;
    uint64_t row_count = 0;
    bool ready = false;
  };

  /// The next block to make, or nothing if there is none left or the writing was given up. Waits for a free slot.
  std::optional<uint64_t> Start() {
    std::unique_lock lock(mutex_);
    if (next_ == blocks_) return std::nullopt;
    const uint64_t block = next_++;
    slot_free_.wait(lock, [&] { return stopped_ || block < written_ + slots_.size(); });
    if (stopped_) return std::nullopt;
    return block;
  }

  Slot& At(uint64_t block) { return slots_[block % slots_.size()]; }

  /// The block that Start() gave out is complete.
  void Made(uint64_t block) {
    const std::scoped_lock lock(mutex_);
    At(block).ready = true;
    if (block == written_) slot_ready_.notify_one();
  }

  /// Waits until `block` is complete; false if the writing was given up. REQUIRES: all blocks before it are Written().
  bool WaitFor(uint64_t block) {
    std::unique_lock lock(mutex_);
    slot_ready_.wait(lock, [&] { return stopped_ || At(block).ready; });
    return !stopped_;
  }

  void Written(uint64_t block) {
    const std::scoped_lock lock(mutex_);
    At(block).ready = false;
    written_ = block + 1;
    slot_free_.notify_all();
  }

  /// Ends all waiting. The first status given stays.
  void Stop(Status status) {
    const std::scoped_lock lock(mutex_);
    if (!stopped_) status_ = std::move(status);
    stopped_ = true;
    slot_free_.notify_all();
    slot_ready_.notify_all();
  }

  Status status() {
    const std::scoped_lock lock(mutex_);
    return status_;
  }

 private:
  const uint64_t blocks_;
  std::vector<Slot> slots_;  ///< a slot belongs to its maker until it is ready, then to the writer until it is written

  std::mutex mutex_;  ///< guards what follows and Slot::ready
  std::condition_variable slot_free_;
  std::condition_variable slot_ready_;
  uint64_t next_ = 0;     ///< first block that is not started
  uint64_t written_ = 0;  ///< blocks written
  bool stopped_ = false;
  Status status_;
};

void MakeBlocks(const OrderedFile& file, BlockRing& ring) {
  while (const auto block = ring.Start()) {
    auto& slot = ring.At(*block);
    slot.rows.Clear();
    try {
      slot.row_count = file.make_block(*block, slot.rows);
    } catch (const std::bad_alloc&) {
      ring.Stop({ErrorCode::kResource, "out of memory while making " + file.path, "use fewer threads: --jobs 1"});
      return;
    }
    ring.Made(*block);
  }
}

Status WriteBlocks(const OrderedFile& file, BlockRing& ring, AtomicFile& output, WrittenFile& written,
                   ProgressBar& progress) {
  for (uint64_t block = 0; block < file.blocks; ++block) {
    if (!ring.WaitFor(block)) return ring.status();
    const auto& slot = ring.At(block);
    TESSERA_TRY(output.Write(slot.rows.bytes()));
    written.rows += slot.row_count;
    written.bytes += slot.rows.bytes().size();
    progress.Advance(slot.row_count);
    ring.Written(block);
  }
  return Status::Ok();
}

/// Threads started while this lives leave signals to the writer, whose write() they shall interrupt.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<WrittenFile> WriteInOrder(const OrderedFile& file, unsigned jobs, ProgressBar& progress) {
  AtomicFile output(file.path);
  TESSERA_TRY(output.Open());
  TESSERA_TRY(output.Write(file.header));
  WrittenFile written;
  written.bytes = file.header.size();

  const uint64_t useful_jobs = jobs < file.blocks ? jobs : file.blocks;
  BlockRing ring(file.blocks, 2 * useful_jobs);
  std::vector<std::jthread> makers;
  makers.reserve(useful_jobs);
  {
    const SignalsBlocked blocked;
    for (uint64_t i = 0; i < useful_jobs; ++i) {
      try {
        makers.emplace_back([&] { MakeBlocks(file, ring); });
      } catch (const std::system_error& error) {
        // Fewer threads do the same work.
        if (makers.empty()) return Status(ErrorCode::kResource, std::string("cannot start a thread: ") + error.what());
        break;
      }
    }
  }
  const Status status = WriteBlocks(file, ring, output, written, progress);
  if (!status.ok()) ring.Stop(status);
  makers.clear();  // joins
  TESSERA_TRY(status);
  TESSERA_TRY(output.Commit());
  return written;
}

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { caught_signal = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // no SA_RESTART: a write() that waits for a pipe must come back
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    // What the parent had ignored (nohup) stays ignored.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

int CaughtSignal() { return caught_signal; }

}  // namespace tessera
