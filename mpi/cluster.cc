// The ranks of a job: how they meet, what the master tells the others to do, and how they leave.

#include "mpi/cluster.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <new>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "mpi/messenger.h"
#include "mpi/mpi_exchange.h"
#include "mpi/rank_gpu.h"
#include "mpi/rank_tablets.h"
#include "mpi/transport.h"
#include "mpi/wire.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

/// The first thing that ranks tell each other. Never changes in size or layout, so that any two versions can tell that
/// they differ.
struct Hello {
  char magic[8] = {'T', 'E', 'S', 'S', 'E', 'R', 'A', 0};
  char version[32] = {};
  uint64_t build = 0;  ///< XXH3-64 of the program file
  uint64_t reserved[2] = {};
};
static_assert(sizeof(Hello) == 64);

enum class Command : uint32_t { kOpen = 1, kRun, kClose, kLeave };

/// The same for two processes exactly if they run the same program file.
uint64_t BuildHash() {
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat info {};
  uint64_t hash = 0;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0) {
    const size_t size = static_cast<size_t>(info.st_size);
    void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes != MAP_FAILED) {
      hash = XXH3_64bits(bytes, size);
      munmap(bytes, size);
    }
  }
  if (fd >= 0) close(fd);
  return hash;
}

uint64_t PhysicalMemory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// A rank that serves has no terminal: a signal of the launcher means that all end, which the master sees to. One that
// was meant for this rank alone ends it when the master has had time to say something.
std::atomic<bool> interrupted{false};
std::atomic<int> interrupted_by{0};
void HandleSignal(int signal) {
  interrupted_by = signal;
  interrupted = true;
}
constexpr auto kGraceAfterSignal = std::chrono::seconds(2);

/// Sends tablet files: some pieces under way at a time, to many ranks, so that a slow one does not hold up the others.
class TabletSender {
 public:
  explicit TabletSender(Messenger* messenger) : messenger_(*messenger) {}

  void Add(int to, const std::string& path, uint64_t bytes) { queues_.push_back({to, path, bytes}); }

  /// Errors: a file that cannot be read. Its receiver gets zeros, which the checksums refuse, and the error when all
  /// agree.
  Status Run(uint64_t* bytes_sent) {
    // By turns over the ranks: the files of one rank keep their order.
    std::stable_sort(queues_.begin(), queues_.end(), [](const File& a, const File& b) { return a.to < b.to; });
    std::vector<std::deque<File>> by_rank;
    for (const File& f : queues_) {
      if (by_rank.empty() || by_rank.back().front().to != f.to) by_rank.emplace_back();
      by_rank.back().push_back(f);
    }
    Status status;
    for (bool any = true; any;) {
      any = false;
      for (std::deque<File>& files : by_rank) {
        if (files.empty()) continue;
        any = true;
        File& file = files.front();
        while (under_way_.size() >= kPiecesUnderWay) RetireOne();
        const size_t size = static_cast<size_t>(std::min<uint64_t>(kGreatestMessage, file.bytes - file.at));
        auto piece = std::make_unique<char[]>(size);
        Status read = Read(&file, piece.get(), size);
        if (status.ok()) status = std::move(read);
        const Transport::Request request = messenger_.transport().Send(file.to, kTagTablet, piece.get(), size, true);
        under_way_.push_back({request, std::move(piece)});
        file.at += size;
        *bytes_sent += size;
        if (file.at == file.bytes) {
          if (file.fd >= 0) close(file.fd);
          files.pop_front();
        }
      }
    }
    while (!under_way_.empty()) RetireOne();
    return status;
  }

 private:
  static constexpr size_t kPiecesUnderWay = 16;  // 64 MiB
  struct File {
    int to;
    std::string path;
    uint64_t bytes;
    uint64_t at = 0;
    int fd = -1;
  };
  struct Piece {
    Transport::Request request;
    std::unique_ptr<char[]> bytes;
  };

  static Status Read(File* file, char* to, size_t size) {
    if (file->at == 0) file->fd = open(file->path.c_str(), O_RDONLY | O_CLOEXEC);
    for (size_t got = 0; got < size;) {
      const ssize_t n = file->fd < 0 ? -1 : pread(file->fd, to + got, size - got, static_cast<off_t>(file->at + got));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        return {ErrorCode::kIo,
                "cannot read \"" + file->path + "\": " + (n == 0 ? "it is too short" : strerror(errno))};
      got += static_cast<size_t>(n);
    }
    return Status::Ok();
  }
  void RetireOne() {
    messenger_.Wait(under_way_.front().request);
    under_way_.pop_front();
  }

  Messenger& messenger_;
  std::vector<File> queues_;
  std::deque<Piece> under_way_;
};

class RankCluster final : public Cluster {
 public:
  RankCluster(std::unique_ptr<Transport> transport, const std::string& version)
      : transport_(std::move(transport)), messenger_(transport_.get()), exchange_(&messenger_) {
    Hello mine;
    version.copy(mine.version, sizeof mine.version - 1);
    mine.build = BuildHash();
    std::vector<Hello> all(static_cast<size_t>(ranks()));
    messenger_.Wait(transport_->AllGather(&mine, sizeof mine, all.data()));
    for (size_t r = 1; r < all.size() && ready_.ok(); ++r) {
      if (memcmp(&all[r], &all[0], sizeof(Hello)) == 0) continue;
      const bool other_version = std::string_view(all[r].version) != all[0].version;
      ready_ = {ErrorCode::kUnsupported,
                "rank " + std::to_string(r) + " runs another " + (other_version ? "version" : "build") +
                    " of Tessera than rank 0" +
                    (other_version ? std::string(": ") + all[r].version + ", not " + all[0].version : std::string()),
                "Install the same program on all nodes."};
    }
    left_ = !ready_.ok();
  }

  ~RankCluster() override {
    if (rank() == 0) Leave(2);
  }

  int rank() const override { return transport_->rank(); }
  int ranks() const override { return transport_->ranks(); }
  int local_rank() const override { return transport_->local_rank(); }
  int local_ranks() const override { return transport_->local_ranks(); }
  const Status& ready() const override { return ready_; }

  // ---- Ranks that serve ---------------------------------------------------------------------------------------------

  int Serve(int threads) override {
    default_threads_ = threads;
    struct sigaction action {};
    action.sa_handler = HandleSignal;
    sigemptyset(&action.sa_mask);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
    Clock::time_point since{};  // of the signal; the master may go on to other statements after it
    for (;;) {
      std::string message;
      messenger_.AwaitBytes(0, &message, [&] {
        if (!interrupted) return;
        if (since == Clock::time_point{}) since = Clock::now();
        if (Clock::now() - since > kGraceAfterSignal) {
          std::signal(interrupted_by, SIG_DFL);
          raise(interrupted_by);
        }
      });
      WireReader in(message);
      switch (in.Number<Command>()) {
        case Command::kOpen:
          ServeOpen(&in);
          break;
        case Command::kRun:
          try {
            ServeRun(&in);
          } catch (const std::bad_alloc&) {
            DieOfMemory();
          }
          break;
        case Command::kClose:
          tablets_.Open("", false);
          break;
        case Command::kLeave:
          return in.Number<int32_t>();
      }
    }
  }

  // ---- The master ---------------------------------------------------------------------------------------------------

  Status OpenDatabase(const std::string& directory, bool temporary, bool scatter) override {
    WireWriter out;
    out.Number(Command::kOpen);
    out.Text(directory);
    out.Number(temporary);
    out.Number(scatter);
    std::string message = out.Take();
    messenger_.BroadcastBytes(0, &message);
    return OpenOnAll(directory, temporary, scatter);
  }

  void CloseDatabase() override {
    if (left_) return;
    WireWriter out;
    out.Number(Command::kClose);
    std::string message = out.Take();
    messenger_.BroadcastBytes(0, &message);
  }

  Status Run(const ClusterQuery& query, vm::Executor* executor, vm::RunOptions options, const vm::RowConsumer& consume,
             vm::RunStatistics* statistics) override {
    try {
      return RunOnAll(query, executor, std::move(options), consume, statistics);
    } catch (const std::bad_alloc&) {
      DieOfMemory();
    }
  }

  void Leave(int status) override {
    if (left_) return;
    left_ = true;
    WireWriter out;
    out.Number(Command::kLeave);
    out.Number<int32_t>(status);
    std::string message = out.Take();
    messenger_.BroadcastBytes(0, &message);
  }

 private:
  /// Memory ran out between two messages (the executor catches what its workers ask for): where the others stand is
  /// unknown, so the job ends.
  [[noreturn]] void DieOfMemory() {
    fprintf(stderr, "tessera: rank %d: %s\n%s\n", rank(), OutOfMemory().message().c_str(),
            OutOfMemory().hint().c_str());
    transport_->Abort(1);
    _exit(1);
  }

  Status RunOnAll(const ClusterQuery& query, vm::Executor* executor, vm::RunOptions options,
                  const vm::RowConsumer& consume, vm::RunStatistics* statistics) {
    const auto start = Clock::now();
    WireWriter out;
    out.Number(Command::kRun);
    out.Number(++number_);
    out.Text(query.program->Serialize());
    out.Number<int32_t>(query.threads);
    out.Number(query.use_gpu);
    out.Number(query.gpu_required);
    out.Number(options.profile);
    out.Number(options.join_partitioning);
    out.Number(query.gpu_memory);
    out.Number(query.settings);
    TESSERA_TRY(WriteTables(*query.program, *query.snapshot, &out));
    std::string message = out.Take();
    messenger_.BroadcastBytes(0, &message);

    exchange_.Begin(number_, query.settings.replicate_below, BroadcastLimit(query.settings), options.cancel);
    vm::RunStatistics mine;
    uint64_t rows_out = 0;
    Status consumed;
    double scatter = 0;
    uint64_t scattered = 0;
    Status status = exchange_.Agree(Status::Ok());  // the others have the program and the tables
    if (status.ok()) {
      const auto scatter_start = Clock::now();
      if (scattered_) status = exchange_.Agree(Scatter(query, &scattered));
      scatter = MillisecondsSince(scatter_start);
    }
    if (status.ok()) {
      options.exchange = &exchange_;
      status = executor->Run(
          *query.program, *query.snapshot, options,
          [&](RowBatch&& batch) {
            rows_out += batch.rows;
            consumed = consume(std::move(batch));
            return consumed;
          },
          &mine);
    }
    exchange_.End();
    mine.mine.rows_out = rows_out;
    mine.mine.scatter = scatter;
    mine.mine.bytes_scattered = scattered;
    mine.mine.gather = exchange_.gather_milliseconds();
    mine.mine.total = MillisecondsSince(start);
    CountBytes(&mine.mine);
    CollectStatistics(query, std::move(mine), statistics);
    // What the consumer says is the statement's own business, not a rank's.
    return consumed.ok() ? status : consumed;
  }

  /// OK, or the error of one rank on all of them. No program runs.
  Status AgreeNow(const Status& mine) {
    exchange_.Begin(++number_, 0, 0, nullptr);
    Status status = exchange_.Agree(mine);
    exchange_.End();
    return status;
  }

  /// The same on all ranks.
  Status OpenOnAll(const std::string& directory, bool temporary, bool scatter) {
    const std::string catalog = directory + "/catalog.sqlite";
    const bool sees = access(catalog.c_str(), R_OK) == 0;
    Status status;
    if (!scatter && !temporary && !sees) {
      status = {ErrorCode::kIo, "database \"" + directory + "\" cannot be read here: " + strerror(errno),
                "With --scatter the master sends the tablets, and only its node needs the directory."};
    }
    if (temporary) scatter = messenger_.Sum(sees ? 0 : 1) > 0;
    TESSERA_TRY(AgreeNow(status));
    scattered_ = scatter;
    tablets_.Open(directory, scatter);
    // What every rank has room for.
    const int64_t room = static_cast<int64_t>(PhysicalMemory() / static_cast<uint64_t>(transport_->local_ranks()) / 4);
    least_room_ = static_cast<uint64_t>(messenger_.Minimum(room));
    return Status::Ok();
  }

  uint64_t BroadcastLimit(const ClusterSettings& settings) const {
    return settings.broadcast_limit != 0 ? settings.broadcast_limit : least_room_;
  }

  void ServeOpen(WireReader* in) {
    const std::string directory(in->Text());
    const bool temporary = in->Number<bool>(), scatter = in->Number<bool>();
    (void)OpenOnAll(directory, temporary, scatter);  // the master tells it
  }

  /// What the master's Run() does, from the other side.
  void ServeRun(WireReader* in) {
    const auto start = Clock::now();
    number_ = in->Number<uint64_t>();
    const std::string_view bytes = in->Text();
    int threads = in->Number<int32_t>();
    if (threads == 0) threads = default_threads_;
    const bool use_gpu = in->Number<bool>(), gpu_required = in->Number<bool>(), profile = in->Number<bool>();
    const auto join_partitioning = in->Number<vm::JoinPartitioning>();
    const auto gpu_memory = in->Number<uint64_t>();
    const auto settings = in->Number<ClusterSettings>();
    exchange_.Begin(number_, settings.replicate_below, BroadcastLimit(settings), &interrupted);

    vm::RunStatistics statistics;
    std::vector<RankTablets::Wanted> wanted;
    std::shared_ptr<const Snapshot> snapshot;
    vm::Program program;
    vm::RunOptions options;
    const auto prepare = [&]() -> Status {
      TESSERA_ASSIGN(program, vm::Program::Parse(bytes));
      TESSERA_TRY(vm::Verify(program));
      TESSERA_ASSIGN(snapshot, tablets_.Take(in, rank(), ranks(), settings.replicate_below, &wanted));
      if (use_gpu) {
        Status opened = gpu_.Open(local_rank(), gpu_memory);
        if (!opened.ok() && gpu_required) return opened;
      }
      if (executor_ == nullptr || executor_->threads() != threads) executor_ = std::make_unique<vm::Executor>(threads);
      return Status::Ok();
    };
    Status status = prepare();
    const double compile = MillisecondsSince(start);
    status = exchange_.Agree(status);
    double scatter = 0;
    uint64_t scattered = 0;
    if (status.ok() && scattered_) {
      const auto scatter_start = Clock::now();
      std::vector<uint8_t*> rooms;
      status = exchange_.Agree(ReceiveTablets(settings, wanted, &rooms, &scattered));
      for (size_t i = 0; i < rooms.size(); ++i) {
        if (!status.ok()) {
          munmap(rooms[i], wanted[i].identity.file_bytes);
          continue;
        }
        // The snapshot was made before they came.
        auto& table = const_cast<TableInfo&>(*snapshot->tables[wanted[i].table]);
        table.tablets[wanted[i].tablet] = tablets_.Keep(wanted[i].identity, rooms[i]);
      }
      scatter = MillisecondsSince(scatter_start);
    }
    if (status.ok()) {
      options.exchange = &exchange_;
      options.cancel = &interrupted;
      options.gpu = use_gpu ? gpu_.get() : nullptr;
      options.gpu_required = gpu_required;
      options.profile = profile;
      options.join_partitioning = join_partitioning;
      status = executor_->Run(
          program, *snapshot, options, [](RowBatch&&) { return Status::Ok(); }, &statistics);
    }
    exchange_.End();
    vm::RankStatistics& mine = statistics.mine;
    mine.rank = rank();
    mine.compile = compile;
    mine.scatter = scatter;
    mine.bytes_scattered = scattered;
    mine.gather = exchange_.gather_milliseconds();
    mine.total = MillisecondsSince(start);
    for (const vm::SectionStatistics& s : statistics.sections) mine.rows_out += s.rows_out;
    CountBytes(&mine);
    WireWriter out(true);
    WriteStatistics(statistics, &out);
    messenger_.Send(0, kTagStatistics, out.Take(), true);
  }

  /// Since the last call.
  void CountBytes(vm::RankStatistics* mine) {
    mine->bytes_sent = messenger_.bytes_sent() - sent_;
    mine->bytes_received = messenger_.bytes_received() - received_;
    sent_ = messenger_.bytes_sent();
    received_ = messenger_.bytes_received();
  }

  // ---- Tablets from the master --------------------------------------------------------------------------------------

  Status Scatter(const ClusterQuery& query, uint64_t* sent) {
    TabletSender sender(&messenger_);
    for (int r = 1; r < ranks(); ++r) {
      const Bytes message = messenger_.Receive(r, kTagWanted);
      WireReader in(message.view());
      for (const RankTablets::Wanted& w : in.Vector<RankTablets::Wanted>()) {
        const auto& tables = query.snapshot->tables;
        const auto same = [&](const std::shared_ptr<const TableInfo>& t) { return t->id == w.identity.table_id; };
        const auto table = std::find_if(tables.begin(), tables.end(), same);
        const bool there = table != tables.end() && w.tablet < (*table)->tablets.size();
        sender.Add(r, there ? (*table)->tablets[w.tablet]->path() : std::string(), w.identity.file_bytes);
      }
    }
    return sender.Run(sent);
  }

  /// `rooms` gets a mapping with the bytes of each tablet. Errors: there is no room; the master's come out when all
  /// agree.
  Status ReceiveTablets(const ClusterSettings& settings, const std::vector<RankTablets::Wanted>& wanted,
                        std::vector<uint8_t*>* rooms, uint64_t* received) {
    // Room first: what cannot be kept is not asked for.
    const uint64_t memory = settings.scatter_memory != 0
                                ? settings.scatter_memory
                                : PhysicalMemory() / static_cast<uint64_t>(transport_->local_ranks()) / 2;
    Status status;
    for (const RankTablets::Wanted& w : wanted) {
      Result<uint8_t*> room = tablets_.MakeRoom(w.identity, memory);
      if (!room.ok()) {
        status = room.status();
        break;
      }
      rooms->push_back(*room);
    }
    if (!status.ok()) {
      for (size_t i = 0; i < rooms->size(); ++i) munmap((*rooms)[i], wanted[i].identity.file_bytes);
      rooms->clear();
    }
    WireWriter out(true);
    out.Vector(status.ok() ? wanted : std::vector<RankTablets::Wanted>());
    messenger_.Send(0, kTagWanted, out.Take(), false);
    std::deque<Transport::Request> under_way;
    const auto retire = [&](size_t most) {
      while (under_way.size() > most) {
        messenger_.Wait(under_way.front());
        under_way.pop_front();
      }
    };
    for (size_t i = 0; i < rooms->size(); ++i) {
      const uint64_t bytes = wanted[i].identity.file_bytes;
      for (uint64_t at = 0; at < bytes; at += kGreatestMessage) {
        retire(3);
        under_way.push_back(transport_->Receive(0, kTagTablet, (*rooms)[i] + at,
                                                static_cast<size_t>(std::min<uint64_t>(kGreatestMessage, bytes - at))));
      }
      *received += bytes;
    }
    retire(0);
    return status;
  }

  // ---- Statistics ---------------------------------------------------------------------------------------------------

  void CollectStatistics(const ClusterQuery& query, vm::RunStatistics mine, vm::RunStatistics* out) {
    std::vector<vm::RunStatistics> all;
    all.push_back(std::move(mine));
    for (int r = 1; r < ranks(); ++r) {
      const Bytes message = messenger_.Receive(r, kTagStatistics);
      WireReader in(message.view());
      all.push_back(ReadStatistics(&in));
    }
    if (out == nullptr) return;
    *out = {};
    out->mine = all[0].mine;
    out->sections = all[0].sections;
    for (const vm::RunStatistics& s : all) out->ranks.push_back(s.mine);
    for (vm::SectionStatistics& section : out->sections) {
      const vm::Section& s = query.program->sections[static_cast<size_t>(section.section)];
      const bool of_table = s.source_kind == vm::Section::Source::kTable;
      if (!of_table && s.source_kind != vm::Section::Source::kJoin) continue;
      uint64_t tablets = 0;
      for (const auto& table : query.snapshot->tables) {
        if (of_table && table->id == query.program->tables[static_cast<size_t>(s.source)].id)
          tablets = table->tablets.size();
      }
      const bool all_rows = s.limit < 0 || s.sink != vm::Section::Sink::kRows;
      for (size_t r = 0; r < all.size(); ++r) {
        for (const vm::SectionStatistics& theirs : all[r].sections) {
          if (theirs.section != section.section) continue;
          // Nothing to scan where binding has shown that no row can pass.
          const bool could = theirs.tablets_skipped < theirs.tablets || theirs.tablets == 0;
          const bool idle = theirs.rows_in == 0 && theirs.pairs + theirs.pruned_pairs == 0;
          if (of_table && all_rows && tablets >= all.size() && idle && could) ++out->idle_shares;
          if (r == 0) continue;
          section.on_gpu |= theirs.on_gpu;
          section.rows_in += theirs.rows_in;
          if (s.sink == vm::Section::Sink::kJoin) section.rows_out += theirs.rows_out;
          section.tablets += theirs.tablets;
          section.tablets_skipped += theirs.tablets_skipped;
          section.bytes_read += theirs.bytes_read;
          section.bytes_transferred += theirs.bytes_transferred;
          section.pairs += theirs.pairs;
          section.pruned_pairs += theirs.pruned_pairs;
          section.child_grids += theirs.child_grids;
          if (section.joined.size() != theirs.joined.size()) section.joined.clear();  // a rank did not count them
          for (size_t j = 0; j < section.joined.size(); ++j) {
            vm::JoinedRows& join = section.joined[j];
            join.rows += theirs.joined[j].rows;
            join.milliseconds = std::max(join.milliseconds, theirs.joined[j].milliseconds);
          }
          section.join_passes = std::max(section.join_passes, theirs.join_passes);
          section.group_spills += theirs.group_spills;
          section.spilled_groups += theirs.spilled_groups;
          section.milliseconds = std::max(section.milliseconds, theirs.milliseconds);
          section.kernel_milliseconds = std::max(section.kernel_milliseconds, theirs.kernel_milliseconds);
          section.transfer_milliseconds = std::max(section.transfer_milliseconds, theirs.transfer_milliseconds);
        }
      }
    }
  }

  std::unique_ptr<Transport> transport_;
  Messenger messenger_;
  MpiExchange exchange_;
  Status ready_;
  bool left_ = false;
  uint64_t number_ = 0;      ///< of the program that runs, the same on all ranks
  int default_threads_ = 1;  ///< of a rank that serves
  bool scattered_ = false;
  uint64_t least_room_ = 0;
  uint64_t sent_ = 0, received_ = 0;
  RankTablets tablets_;
  std::unique_ptr<vm::Executor> executor_;
  RankGpu gpu_;
};

}  // namespace

Result<std::unique_ptr<Cluster>> Cluster::Join(const std::string& version) {
  TESSERA_ASSIGN(std::unique_ptr<Transport> transport, OpenTransport());
  if (transport == nullptr) return std::unique_ptr<Cluster>();
  // Messages of some MB come and go: kept by malloc instead of given back to the kernel, which would clear their pages
  // anew each time.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  return std::unique_ptr<Cluster>(std::make_unique<RankCluster>(std::move(transport), version));
}

bool ReadsTables(const vm::Program& program) {
  return std::any_of(program.sections.begin(), program.sections.end(),
                     [](const vm::Section& s) { return s.source_kind == vm::Section::Source::kTable; });
}

std::string RanksText(const vm::Program& program, const Snapshot& snapshot, int ranks,
                      const ClusterSettings& settings) {
  std::string out = std::to_string(ranks) + " ranks\n";
  for (size_t i = 0; i < program.sections.size(); ++i) {
    const vm::Section& s = program.sections[i];
    if (s.source_kind == vm::Section::Source::kDictionary) continue;
    std::string how;
    if (s.source_kind == vm::Section::Source::kTable) {
      bool by_tablets = false;
      for (const auto& table : snapshot.tables) {
        if (table->id == program.tables[static_cast<size_t>(s.source)].id)
          by_tablets = vm::SharedByTablets(*table, ranks, settings.replicate_below);
      }
      how = by_tablets ? "shared by tablets" : "on every rank, shared by tiles";
    } else {
      how = "on the master";
    }
    const bool shared = s.source_kind == vm::Section::Source::kTable;
    if (s.sink == vm::Section::Sink::kJoin) {
      how += "; build side broadcast to all";
    } else if (shared && s.sink == vm::Section::Sink::kGroups) {
      how += "; partial groups merged by a tree";
    } else if (shared && !s.order.empty()) {
      how += s.limit >= 0 ? "; the first rows of each rank merged at the master"
                          : "; sorted rows of each rank merged at the master";
    } else if (shared) {
      how += i + 1 == program.sections.size() ? "; rows streamed to the master" : "; rows gathered at the master";
    }
    out += "  section " + std::to_string(i) + " (" + s.label + "): " + how + "\n";
  }
  return out;
}

}  // namespace tessera
