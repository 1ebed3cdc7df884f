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
#include <cstring>
#include <deque>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/exception_status.h"
#include "base/host_name.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "base/processors.h"
#include "base/temporary_memory.h"
#include "mpi/messages.h"
#include "mpi/messenger.h"
#include "mpi/mpi_exchange.h"
#include "mpi/rank_gpu.h"
#include "mpi/rank_load.h"
#include "mpi/rank_statistics.h"
#include "mpi/rank_tablets.h"
#include "mpi/rank_watch.h"
#include "mpi/tablet_sender.h"
#include "mpi/transport.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/files/file_names.h"
#include "tablet/files/tablet_of_files.h"
#include "vm/shares/tablet_shares.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

/// The first message between ranks. Its size and layout never change, so that any two versions can find out that they
/// differ.
struct Hello {
  char magic[8] = {'T', 'E', 'S', 'S', 'E', 'R', 'A', 0};
  char version[32] = {};
  uint64_t build = 0;  ///< XXH3-64 of the program file
  uint64_t reserved[2] = {};
};
static_assert(sizeof(Hello) == 64);

/// Where a rank is. A longer name is cut.
struct Place {
  char node[64] = {};
  uint64_t processes = 0;  ///< in which its process has its number: the namespace's inode; 0: it has not found out
  uint64_t process = 0;
};
static_assert(sizeof(Place) == 80);

/// It may fill the field.
std::string VersionOf(const Hello& hello) { return {hello.version, strnlen(hello.version, sizeof hello.version)}; }

/// Equal for two processes exactly if they run the same program file.
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

// A serving rank has no terminal: a signal from the launcher means that all ranks end, and the master ends them. If it
// was meant for this rank alone, RankWatch ends the job after the master has had time to act.
std::atomic<bool> interrupted{false};
std::atomic<int> interrupted_by{0};
void HandleSignal(int signal) {
  interrupted_by = signal;
  interrupted = true;
}

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
      const std::string theirs = VersionOf(all[r]), ours = VersionOf(all[0]);
      const bool other_version = theirs != ours;
      ready_ = {ErrorCode::kUnsupported,
                "rank " + std::to_string(r) + " runs another " + (other_version ? "version" : "build") +
                    " of Tessera than rank 0" + (other_version ? ": " + theirs + ", not " + ours : std::string()),
                "Install the same program on all nodes."};
    }
    left_ = !ready_.ok();
    if (ready_.ok()) {
      const std::vector<NeighbourRank> neighbours = LearnNodes();
      const std::chrono::milliseconds timeout(ClusterSettings().rank_timeout);
      watch_ = std::make_unique<RankWatch>(&messenger_, timeout, rank() == 0 ? nullptr : &interrupted_by,
                                           nodes_[static_cast<size_t>(rank())], neighbours);
    }
  }

  ~RankCluster() override {
    if (rank() == 0) Leave(2);
    // MPI_Finalize waits for all ranks, and none is watched any more.
    if (ready_.ok()) (void)messenger_.Minimum(0);
  }

  int rank() const override { return transport_->rank(); }
  int ranks() const override { return transport_->ranks(); }
  int local_rank() const override { return transport_->local_rank(); }
  int local_ranks() const override { return transport_->local_ranks(); }
  bool any_thread() const override { return transport_->any_thread(); }
  const std::vector<std::string>& nodes() const override { return nodes_; }
  const Status& ready() const override { return ready_; }
  uint64_t least_room() const override { return least_room_; }

  // ---- Ranks that serve ---------------------------------------------------------------------------------------------

  int Serve(int threads) override {
    default_threads_ = threads;
    default_memory_limit_ = MemoryLimit();
    struct sigaction action {};
    action.sa_handler = HandleSignal;
    sigemptyset(&action.sa_mask);
    if (transport_->any_thread()) {  // without a watch a signal ends the rank at once
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
    }
    try {
      return ServeCommands();
    } catch (...) {
      messenger_.Die(StatusOfException());
    }
  }

  // ---- The master ---------------------------------------------------------------------------------------------------

  Status OpenDatabase(const std::string& directory, bool temporary, bool scatter) override {
    OpenCommand command;
    command.directory = directory;
    command.temporary = temporary;
    command.scatter = scatter;
    teller_.Clear();
    SendCommand(command);
    return OpenOnAll(command);
  }

  void CloseDatabase() override {
    if (left_) return;
    teller_.Clear();
    SendCommand(CloseCommand());
  }

  Status Run(const ClusterQuery& query, vm::Executor* executor, vm::RunOptions options, const vm::RowConsumer& consume,
             vm::RunStatistics* statistics) override {
    try {
      return RunOnAll(query, executor, std::move(options), consume, statistics);
    } catch (...) {
      messenger_.Die(StatusOfException());
    }
  }

  Result<bool> Load(const ClusterLoad& load, SharedFile* file, TableLoad* own) override {
    if (scattered_) return false;
    try {
      return LoadOnAll(load, file, own);
    } catch (...) {
      messenger_.Die(StatusOfException());
    }
  }

  void Leave(int status) override {
    if (left_) return;
    left_ = true;
    // (The launcher has ended this rank, perhaps, because another one is gone.)
    if (watch_ != nullptr) watch_->SayWhoDied();
    messenger_.SayFarewell();
    SendCommand(LeaveCommand{status});
  }

 private:
  /// Returns the other ranks on this node, as far as this process sees theirs.
  std::vector<NeighbourRank> LearnNodes() {
    Place mine;
    HostName().copy(mine.node, sizeof mine.node - 1);
    struct stat info {};
    if (stat("/proc/self/ns/pid", &info) == 0) mine.processes = info.st_ino;
    mine.process = static_cast<uint64_t>(getpid());
    std::vector<Place> all(static_cast<size_t>(ranks()));
    messenger_.Wait(transport_->AllGather(&mine, sizeof mine, all.data()));
    std::vector<NeighbourRank> neighbours;
    for (size_t r = 0; r < all.size(); ++r) {
      const Place& place = all[r];
      nodes_.emplace_back(place.node, strnlen(place.node, sizeof place.node));
      const bool is_near = memcmp(place.node, mine.node, sizeof mine.node) == 0 && place.processes == mine.processes;
      if (is_near && place.processes != 0 && place.process != mine.process && place.process <= INT32_MAX)
        neighbours.push_back({static_cast<int>(r), static_cast<int>(place.process)});
    }
    return neighbours;
  }

  /// Until the master leaves; returns with which status.
  int ServeCommands() {
    for (;;) {
      std::string message;
      messenger_.AwaitBytes(0, &message);
      WireReader in(message);
      Command command{};
      in.Number(command);
      switch (command) {
        case Command::kOpen:
          (void)OpenOnAll(Rest<OpenCommand>(&in));  // the master reports the error
          break;
        case Command::kRun:
          ServeRun(&in, message.size());
          break;
        case Command::kClose:
          (void)Rest<CloseCommand>(&in);
          tablets_.Open("", false);
          break;
        case Command::kLoad:
          ServeLoad(Rest<LoadCommand>(&in));
          break;
        case Command::kLeave:
          return Rest<LeaveCommand>(&in).status;
        default:
          messenger_.Die(Messenger::Damaged(0));
      }
    }
  }

  template <class M>
  void SendCommand(const M& command) {
    std::string message = WriteCommand(command);
    messenger_.BroadcastBytes(0, &message);
  }

  /// A command after which the master waits for no agreement: if it is damaged the job ends.
  template <class M>
  M Rest(WireReader* in) {
    M command;
    Fields(*in, command);
    if (!in->End().ok()) messenger_.Die(Messenger::Damaged(0));
    return command;
  }

  Status RunOnAll(const ClusterQuery& query, vm::Executor* executor, vm::RunOptions options,
                  const vm::RowConsumer& consume, vm::RunStatistics* statistics) {
    if (PhaseClock* const clock = PhaseClock::current(); clock != nullptr)
      clock->Reserve(query.program->sections.size(), static_cast<size_t>(ranks()));
    bool scatters = scattered_;
    TESSERA_TRY(SendProgram(query, options, &scatters));
    watch_->SetTimeout(std::chrono::milliseconds(query.settings.rank_timeout));
    SetThreads(executor->threads());

    exchange_.Begin(number_, LimitsOf(query.settings), options.cancel);
    exchange_.UsePool(executor->pool());
    vm::RunStatistics mine;
    uint64_t rows_out = 0;
    Status consumed;
    uint64_t scattered = 0;
    Status status = exchange_.Agree(Status::Ok());  // the others have the program and the tables
    if (status.ok()) {
      teller_.NoteTold(*query.program, *query.snapshot);
    } else {
      teller_.Clear();
    }
    const int64_t agreed = PhaseClock::Nanoseconds(Clock::now());
    if (status.ok() && scatters) {
      const PhaseScope phase(Phase::kScatter);
      status = exchange_.Agree(Scatter(query, &scattered));
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
    mine.mine.bytes_scattered = scattered;
    mine.mine.agreed = agreed;
    const Status collected = CollectStatistics(query, std::move(mine), statistics);
    if (status.ok()) status = collected;
    // An error of the consumer is an error of the statement, not of a rank.
    return consumed.ok() ? status : consumed;
  }

  Status SendProgram(const ClusterQuery& query, const vm::RunOptions& options, bool* scatters) {
    const PhaseScope phase(Phase::kCompile);
    RunCommand command;
    command.number = ++number_;
    command.program = query.program->Serialize();
    command.choices = query.choices;
    command.run_settings = options.settings;
    command.settings = query.settings;
    TESSERA_ASSIGN(command.tables, teller_.Describe(*query.program, *query.snapshot));
    *scatters |= command.tables.have_files();
    SendCommand(command);
    return Status::Ok();
  }

  /// OK, or one rank's error, the same on all ranks. REQUIRES: no program runs.
  Status AgreeNow(const Status& mine) {
    exchange_.Begin(++number_, {}, nullptr);
    Status status = exchange_.Agree(mine);
    exchange_.End();
    return status;
  }

  /// The same on all ranks.
  Status OpenOnAll(const OpenCommand& command) {
    const std::string& directory = command.directory;
    // (The catalog of a temporary one is in the master's memory.)
    const std::string file = directory + "/" + (command.temporary ? kOwnerFile : kCatalogFile);
    bool scatter = command.scatter;
    const bool sees = access(file.c_str(), R_OK) == 0;
    Status status;
    if (!scatter && !command.temporary && !sees) {
      status = {ErrorCode::kIo, "database \"" + directory + "\" cannot be read here: " + strerror(errno),
                "With --scatter the master sends the tablets, and only its node needs the directory."};
    }
    if (command.temporary) scatter |= messenger_.Sum(sees ? 0 : 1) > 0;
    TESSERA_TRY(AgreeNow(status));
    scattered_ = scatter;
    tablets_.Open(directory, scatter);
    directory_ = directory;
    // The room that every rank has.
    const int64_t room = static_cast<int64_t>(UsableMemory() / static_cast<uint64_t>(transport_->local_ranks()) / 4);
    least_room_ = static_cast<uint64_t>(messenger_.Minimum(room));
    return Status::Ok();
  }

  /// Of the program that is about to run.
  void SetThreads(int threads) {
    if (threads == threads_) return;
    threads_ = threads;
    messenger_.SetOwnCore(HaveOwnProcessors(local_ranks(), threads));
  }

  int ThreadsOf(const ClusterSettings& settings) const {
    return settings.threads != 0 ? static_cast<int>(settings.threads) : default_threads_;
  }

  ExchangeLimits LimitsOf(const ClusterSettings& settings) const {
    return {settings.replicate_below, settings.broadcast_limit != 0 ? settings.broadcast_limit : least_room_,
            settings.exchange_above};
  }

  void ApplyLimits(const ClusterSettings& settings) const {
    SetMemoryLimit(settings.memory_limit != 0 ? settings.memory_limit : default_memory_limit_);
    SetTemporaryLimit(settings.temp_file_limit);
  }

  /// The other side of the master's Run().
  void ServeRun(WireReader* in, size_t bytes) {
    const auto start = Clock::now();
    PhaseClock clock(Phase::kCompile);
    clock.Reserve(0, static_cast<size_t>(ranks()));
    clock.CountReceived(0, bytes);
    RunCommand command;
    Fields(*in, command);
    const QueryChoices& choices = command.choices;
    if (choices.trace) clock.KeepSpans();
    number_ = command.number;
    const ClusterSettings& settings = command.settings;
    if (!in->failed()) watch_->SetTimeout(std::chrono::milliseconds(settings.rank_timeout));
    const int threads = ThreadsOf(settings);
    ApplyLimits(settings);
    exchange_.Begin(number_, LimitsOf(settings), &interrupted);

    vm::RunStatistics statistics;
    std::vector<WantedTablet> wanted;
    std::shared_ptr<const Snapshot> snapshot;
    vm::Program program;
    vm::RunOptions options;
    const auto prepare = [&]() -> Status {
      TESSERA_TRY(in->End());
      TESSERA_ASSIGN(program, vm::Program::Parse(command.program));
      TESSERA_TRY(vm::Verify(program));
      TESSERA_ASSIGN(snapshot, tablets_.Update(command.tables, program,
                                               {rank(), ranks(), settings.replicate_below, choices.use_gpu}, &wanted));
      if (choices.use_gpu) {
        Status opened = gpu_.Open(local_rank(), choices.gpu_memory);
        if (!opened.ok() && choices.gpu_required) return opened;
        if (opened.ok()) TESSERA_TRY(gpu_.get()->SetTransfer(settings.transfer, settings.transfer_piece));
      }
      if (executor_ == nullptr || executor_->threads() != threads) executor_ = std::make_unique<vm::Executor>(threads);
      SetThreads(threads);
      return Status::Ok();
    };
    Status status = prepare();
    status = exchange_.Agree(status);
    const int64_t agreed = PhaseClock::Nanoseconds(Clock::now());
    uint64_t scattered = 0;
    if (status.ok() && (scattered_ || command.tables.have_files())) {
      const PhaseScope phase(Phase::kScatter);
      std::vector<uint8_t*> rooms;
      status = exchange_.Agree(ReceiveTablets(settings, wanted, &rooms, &scattered));
      for (size_t i = 0; i < rooms.size(); ++i) {
        if (!status.ok()) {
          munmap(rooms[i], wanted[i].identity.file_bytes);
          continue;
        }
        // The snapshot was made before these tablets came.
        auto& table = const_cast<TableInfo&>(*snapshot->tables[wanted[i].table]);
        const std::shared_ptr<const Tablet> tablet = tablets_.Keep(wanted[i], rooms[i]);
        // (Others of its files come next.)
        if (tablet != nullptr) PutTablet(tablet, wanted[i].tablet, &table);
      }
    }
    if (status.ok()) {
      options.exchange = &exchange_;
      exchange_.UsePool(executor_->pool());
      options.cancel = &interrupted;
      options.gpu = choices.use_gpu ? gpu_.get() : nullptr;
      if (options.gpu != nullptr) options.gpu_name = gpu_.get()->info().name;
      options.gpu_required = choices.gpu_required;
      options.profile = choices.profile;
      options.settings = command.run_settings;
      session_memory_.Begin(settings.session_memory != 0 ? settings.session_memory : UINT64_MAX);
      const MemoryAccountScope account(&session_memory_);
      status = executor_->Run(
          program, *snapshot, options, [](RowBatch&&) { return Status::Ok(); }, &statistics);
    }
    exchange_.End();
    vm::RankStatistics& mine = statistics.mine;
    mine.rank = rank();
    mine.bytes_scattered = scattered;
    mine.agreed = agreed;
    for (const vm::SectionStatistics& s : statistics.sections) mine.rows_out += s.rows_out;
    TakeAccounts(&clock, &mine);
    mine.total = MillisecondsSince(start);
    messenger_.Send(0, kTagStatistics, WriteMessage(statistics, true), true);
  }

  // ---- Loads --------------------------------------------------------------------------------------------------------

  Result<bool> LoadOnAll(const ClusterLoad& load, SharedFile* file, TableLoad* own) {
    LoadCommand command;
    command.number = ++number_;
    command.load = *load.load;
    if (command.load.options.zone != nullptr) command.zone = command.load.options.zone->name();
    command.settings = load.settings;
    SendCommand(command);
    watch_->SetTimeout(std::chrono::milliseconds(load.settings.rank_timeout));
    exchange_.Begin(number_, {}, load.load->options.cancel);
    Result<bool> loaded = LoadShares(*load.load, file, own);
    exchange_.End();
    return loaded;
  }

  Result<bool> LoadShares(const SharedLoad& load, SharedFile* file, TableLoad* own) {
    RankLoad shares(&messenger_, &exchange_, load, load.options.cancel);
    if (!shares.CanStart(file)) return false;
    TESSERA_TRY(shares.Plan(file));
    own->SettleTabletRows(shares.rows());
    TESSERA_TRY(shares.Make(file, own));
    for (int r = 1; r < ranks(); ++r) {
      const Bytes message = messenger_.Receive(r, kTagLoaded);
      LoadedMessage loaded;
      // Only this rank knows now which files the load has.
      if (!ReadMessage(message.view(), &loaded).ok() || !shares.AreOf(r, loaded.tablets)) {
        messenger_.Die(Messenger::Damaged(r));
      }
      own->Adopt(load.target.load, std::move(loaded.tablets));
    }
    return true;
  }

  /// The other side of the master's Load().
  void ServeLoad(LoadCommand command) {
    number_ = command.number;
    watch_->SetTimeout(std::chrono::milliseconds(command.settings.rank_timeout));
    ApplyLimits(command.settings);
    SharedLoad& load = command.load;
    load.target.directory = directory_;
    load.options.threads = ThreadsOf(command.settings);
    bool sees = true;
    if (!command.zone.empty()) {
      const Result<const TimeZone*> zone = FindTimeZone(command.zone);
      sees = zone.ok();
      if (sees) load.options.zone = *zone;
    }
    Result<std::unique_ptr<SharedFile>> file = OpenSharedFile(load);
    exchange_.Begin(number_, {}, &interrupted);
    RankLoad shares(&messenger_, &exchange_, load, &interrupted);
    if (shares.CanStart(sees && file.ok() ? file->get() : nullptr) && shares.Plan(file->get()).ok()) {
      TabletTarget target = load.target;
      target.first_tablet_id += static_cast<int64_t>(shares.FirstTablet(rank()));
      TabletCutter cutter(std::move(target), load.schema, shares.tablet_rows(), &interrupted);
      // (The master reports the error.)
      if (shares.Make(file->get(), &cutter).ok()) {
        messenger_.Send(0, kTagLoaded, WriteMessage(LoadedMessage{cutter.made()}, true), true);
        cutter.Release();
      }
    }
    exchange_.End();
  }

  // ---- Tablets from the master --------------------------------------------------------------------------------------

  /// The file that a rank asks for; nullptr if there is none of that kind.
  static const TabletFile* WantedFrom(const ClusterQuery& query, const WantedTablet& wanted) {
    if (wanted.table >= query.program->tables.size()) return nullptr;
    const TableInfo* const table = vm::TableOf(*query.snapshot, query.program->tables[wanted.table]);
    if (table == nullptr || wanted.tablet >= table->tablets.size()) return nullptr;
    for (const TabletFile* file : StoredFiles(*table->tablets[wanted.tablet])) {
      const TabletIdentity &has = file->identity(), &asked = wanted.identity;
      if (std::tuple(has.tablet_id, has.file(), has.offset, has.file_bytes) ==
          std::tuple(asked.tablet_id, asked.file(), asked.offset, asked.file_bytes))
        return file;
    }
    return nullptr;
  }
  static bool IsBefore(const WantedTablet& a, const WantedTablet& b) {
    return std::tuple(a.table, a.tablet, a.identity.tablet_id) < std::tuple(b.table, b.tablet, b.identity.tablet_id);
  }

  Status Scatter(const ClusterQuery& query, uint64_t* sent) {
    TabletSender sender(&messenger_);
    for (int r = 1; r < ranks(); ++r) {
      const Bytes message = messenger_.Receive(r, kTagWanted);
      WantedMessage wanted;
      // The rank would wait for other bytes than it gets.
      if (!ReadMessage(message.view(), &wanted).ok()) messenger_.Die(Messenger::Damaged(r));
      for (size_t i = 0; i < wanted.tablets.size(); ++i) {
        const WantedTablet& w = wanted.tablets[i];
        const TabletFile* const file = WantedFrom(query, w);
        if (file == nullptr || (i > 0 && !IsBefore(wanted.tablets[i - 1], w))) messenger_.Die(Messenger::Damaged(r));
        sender.Add(r, file->path(), w.identity.offset, w.identity.file_bytes);
      }
    }
    return sender.Run(sent);
  }

  /// `rooms` gets a mapping with the bytes of each tablet. Errors: there is no room. The master's errors are reported
  /// when all ranks agree.
  Status ReceiveTablets(const ClusterSettings& settings, const std::vector<WantedTablet>& wanted,
                        std::vector<uint8_t*>* rooms, uint64_t* received) {
    // Makes room first, because a tablet that cannot be kept is not requested.
    const uint64_t memory = settings.scatter_memory != 0
                                ? settings.scatter_memory
                                : UsableMemory() / static_cast<uint64_t>(transport_->local_ranks()) / 2;
    Status status;
    for (const WantedTablet& w : wanted) {
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
    WantedMessage message;
    if (status.ok()) message.tablets = wanted;
    messenger_.Send(0, kTagWanted, WriteMessage(message, true), false);
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

  Status CollectStatistics(const ClusterQuery& query, vm::RunStatistics mine, vm::RunStatistics* out) {
    const PhaseScope phase(Phase::kGather);
    std::vector<vm::RunStatistics> all;
    all.push_back(std::move(mine));
    Status status;
    for (int r = 1; r < ranks(); ++r) {
      const Bytes message = messenger_.Receive(r, kTagStatistics);
      Status read = ReadMessage(message.view(), &all.emplace_back());
      if (read.ok() && all.back().mine.rank != r) read = Messenger::Damaged(r);
      if (status.ok()) status = std::move(read);
    }
    if (out != nullptr) *out = MergeStatistics(*query.program, *query.snapshot, all);
    return status;
  }

  std::unique_ptr<Transport> transport_;
  Messenger messenger_;
  MpiExchange exchange_;
  Status ready_;
  std::vector<std::string> nodes_;  ///< of the ranks
  bool left_ = false;
  uint64_t number_ = 0;      ///< of the program that runs, the same on all ranks
  int default_threads_ = 1;  ///< of a rank that serves
  int threads_ = 0;          ///< of the latest program
  uint64_t default_memory_limit_ = UINT64_MAX;
  bool scattered_ = false;
  std::string directory_;  ///< of the database
  uint64_t least_room_ = 0;
  TableTeller teller_;            ///< of the master
  RankTablets tablets_;           ///< of the others
  MemoryAccount session_memory_;  ///< of the program that runs
  std::unique_ptr<vm::Executor> executor_;
  RankGpu gpu_;
  std::unique_ptr<RankWatch> watch_;
};

}  // namespace

Result<std::unique_ptr<Cluster>> Cluster::Join(const std::string& version) {
  TESSERA_ASSIGN(std::unique_ptr<Transport> transport, OpenTransport());
  if (transport == nullptr) return std::unique_ptr<Cluster>();
  // Messages of some MB come and go. malloc keeps their memory; the kernel would clear the pages again each time.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  return Over(std::move(transport), version);
}

std::unique_ptr<Cluster> Cluster::Over(std::unique_ptr<Transport> transport, const std::string& version) {
  return std::make_unique<RankCluster>(std::move(transport), version);
}

}  // namespace tessera
