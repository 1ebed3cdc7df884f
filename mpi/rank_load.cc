#include "mpi/rank_load.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/background_thread.h"
#include "base/exception_status.h"
#include "base/interrupt.h"
#include "mpi/messages.h"
#include "tablet/load/file_load.h"

namespace tessera {
namespace {

/// How long a rank may not hear that another one failed.
constexpr std::chrono::microseconds kListenInterval{5000};

/// Of `n` things, the first that belongs to rank `rank` or a later one. The first rank has one if any rank does.
uint64_t FirstOf(uint64_t n, int rank, int ranks) {
  const auto r = static_cast<uint64_t>(rank), of = static_cast<uint64_t>(ranks);
  return n / of * r + (n % of * r + of - 1) / of;
}

}  // namespace

RankLoad::RankLoad(Messenger* messenger, MpiExchange* exchange, const SharedLoad& load, const std::atomic<bool>* cancel)
    : messenger_(*messenger), exchange_(*exchange), load_(load), cancel_(cancel) {}

std::string RankLoad::ProbePath(int rank) const {
  return load_.target.directory + "/" + kTemporaryPrefix + load_.target.load + "-rank-" + std::to_string(rank);
}

bool RankLoad::CanStart(const SharedFile* file) {
  bool can = file != nullptr && file->bytes() == load_.file_bytes && file->written() == load_.file_written;
  const std::string probe = ProbePath(messenger_.rank());
  // Nodes may have directories of the same name, each its own: the master has to find a file of every rank.
  if (can) {
    const int fd = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    can = fd >= 0;
    if (can) close(fd);
  }
  const bool made = can;
  can = messenger_.Sum(can ? 0 : 1) == 0;
  if (can && messenger_.rank() == 0) {
    for (int r = 1; r < messenger_.ranks() && can; ++r) can = access(ProbePath(r).c_str(), F_OK) == 0;
  }
  can = messenger_.Sum(can ? 0 : 1) == 0;
  if (made) unlink(probe.c_str());
  return can;
}

Status RankLoad::WhileListening(const std::function<Status()>& work) {
  std::atomic<bool> done{false};
  BackgroundThread thread;
  TESSERA_TRY(thread.Start([&] {
    const InterruptScope interrupts(&stop_);
    Status status;
    try {
      status = work();
    } catch (...) {
      status = StatusOfException();
    }
    done = true;
    return status;
  }));
  messenger_.WaitUntil(
      [&] {
        const bool cancelled = cancel_ != nullptr && cancel_->load(std::memory_order_relaxed);
        if (cancelled) exchange_.Stop();
        if (cancelled || exchange_.Stopped()) stop_ = true;
        return done.load();
      },
      kListenInterval);
  Status status = thread.Join();
  if (!status.ok() && status.code() != ErrorCode::kCancelled) exchange_.StopLater();
  return status;
}

uint64_t RankLoad::FirstTablet(int rank) const { return FirstOf(Tablets(), rank, messenger_.ranks()); }

uint64_t RankLoad::RowsBefore(uint64_t tablet) const {
  if (tablet == 0) return 0;
  return std::min(rows_, tablet * tablet_rows_ - load_.short_rows);
}

Status RankLoad::Plan(SharedFile* file) {
  const size_t stretches = file->stretches();
  const int rank = messenger_.rank(), ranks = messenger_.ranks();
  CountsMessage mine;
  const auto count = [&]() -> Status {
    ThreadPool pool(load_.options.threads);
    const size_t begin = FirstOf(stretches, rank, ranks);
    TESSERA_ASSIGN(mine.counts, file->Count(begin, FirstOf(stretches, rank + 1, ranks), &pool));
    return Status::Ok();
  };
  TESSERA_TRY(exchange_.Agree(WhileListening(count)));
  std::vector<StretchCount> all;
  const std::vector<Bytes> messages = messenger_.AllGatherBytes(WriteMessage(mine));
  for (int r = 0; r < ranks; ++r) {
    CountsMessage theirs;
    const size_t due = FirstOf(stretches, r + 1, ranks) - FirstOf(stretches, r, ranks);
    if (!ReadMessage(messages[static_cast<size_t>(r)].view(), &theirs).ok() || theirs.counts.size() != due) {
      messenger_.Die(Messenger::Damaged(r));
    }
    all.insert(all.end(), theirs.counts.begin(), theirs.counts.end());
  }
  TESSERA_TRY(exchange_.Agree(file->SetCounts(all)));
  rows_ = file->rows();
  tablet_rows_ = load_.tablet_rows != 0 ? load_.tablet_rows : ChooseTabletRows(load_.short_rows + rows_);
  return {};
}

Status RankLoad::Make(SharedFile* file, TabletCutter* cutter) {
  CopyFromOptions options = load_.options;
  options.cancel = &stop_;
  if (options.progress) {
    options.progress = [&](uint64_t done, uint64_t all) {
      const double fraction = all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
      load_.options.progress(static_cast<uint64_t>(fraction * static_cast<double>(load_.file_bytes)), load_.file_bytes);
    };
  }
  const int rank = messenger_.rank();
  const uint64_t begin = RowsBefore(FirstTablet(rank)), end = RowsBefore(FirstTablet(rank + 1));
  return exchange_.Agree(WhileListening([&]() -> Status {
    TESSERA_ASSIGN(const std::unique_ptr<FileReader> reader, file->ReadRows(begin, end));
    TESSERA_TRY(LoadFile(reader.get(), options, cutter));
    if (cutter->rows_added() != end - begin) {
      return {ErrorCode::kIo, "\"" + load_.file + "\" has changed while it was read"};
    }
    return cutter->Finish(nullptr);
  }));
}

bool RankLoad::AreOf(int rank, const NewTablets& tablets) const {
  const uint64_t first = FirstTablet(rank), end = FirstTablet(rank + 1);
  bool good = tablets.records.size() == end - first && tablets.nulls.size() == load_.schema.columns.size() &&
              tablets.rows_added == RowsBefore(end) - RowsBefore(first);
  for (size_t i = 0; i < tablets.records.size() && good; ++i) {
    const uint64_t tablet = first + i;
    good = tablets.records[i].id == load_.target.first_tablet_id + static_cast<int64_t>(tablet) &&
           tablets.records[i].rows == RowsBefore(tablet + 1) - RowsBefore(tablet);
  }
  return good;
}

}  // namespace tessera
