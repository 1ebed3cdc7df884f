// Tessera on many ranks: one process per rank, started by mpirun or srun, that run programs together. The public header
// of mpi/; plain C++, no MPI in it. PROTOCOL.md beside this file lists every message.
//
// Rank 0 is the master: it has the session, the catalog and the terminal, works on its own portion and merges. The
// others serve: they receive programs, run their portion, and report, until the master leaves.
//
// Start at: Cluster::Join, then Serve (other ranks) or OpenDatabase and Run (master). The thread that joined; with any_thread() the
// master's calls may come from any, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/kernels.h"
#include "mpi/cluster_settings.h"
#include "tablet/catalog/table_info.h"
#include "tablet/load/shared_load.h"
#include "vm/program/program.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace tessera {

/// What the other ranks need to know of a query besides its program.
struct ClusterQuery {
  const vm::Program* program = nullptr;
  const Snapshot* snapshot = nullptr;
  QueryChoices choices;
  ClusterSettings settings;
};

/// What the other ranks need to know of a COPY besides the load.
struct ClusterLoad {
  const SharedLoad* load = nullptr;
  ClusterSettings settings;
};

class Transport;

class Cluster {
 public:
  /// Under a launcher: joins the other ranks. Without one: nullptr, and MPI is not touched. Errors: kUnsupported, MPI
  /// cannot be loaded. Ranks compare `version` and the program file.
  static Result<std::unique_ptr<Cluster>> Join(const std::string& version);
  /// The same over messages of another kind: a test's ranks are threads of one process.
  static std::unique_ptr<Cluster> Over(std::unique_ptr<Transport> transport, const std::string& version);
  /// If the master has not left yet, it leaves with status 2. Returns when all ranks are here.
  virtual ~Cluster() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual int local_rank() const = 0;  ///< among the ranks of this node; its GPU is local_rank() modulo the devices
  virtual int local_ranks() const = 0;
  /// Whether the master's threads may call what is below, one at a time. If not, only the one that joined may.
  virtual bool any_thread() const = 0;
  /// The name of each rank's node.
  virtual const std::vector<std::string>& nodes() const = 0;
  /// OK if all ranks run the same build; otherwise the reason, the same on all ranks, and then nothing below may be
  /// called.
  virtual const Status& ready() const = 0;

  /// REQUIRES: rank() != 0. Runs what the master sends until the master leaves, with this many threads unless the
  /// master says how many. Returns the exit status with which the master left.
  virtual int Serve(int threads) = 0;

  // REQUIRES, for all below: rank() == 0.

  /// Bytes that every rank has for a join's build side, unless a setting says otherwise.
  virtual uint64_t least_room() const = 0;

  /// Tells all ranks the directory of the tablets. Tablets are sent to all ranks if `scatter`, and to ranks that do not
  /// see the directory if it is `temporary`. Errors: kIo, naming a rank that does not see it.
  virtual Status OpenDatabase(const std::string& directory, bool temporary, bool scatter) = 0;
  virtual void CloseDatabase() = 0;
  /// Runs the program on all ranks; as Executor::Run. `statistics` gets those of all ranks.
  virtual Status Run(const ClusterQuery& query, vm::Executor* executor, vm::RunOptions options,
                     const vm::RowConsumer& consume, vm::RunStatistics* statistics) = 0;
  /// As LoadRanks::Load. REQUIRES: the database of OpenDatabase.
  virtual Result<bool> Load(const ClusterLoad& load, SharedFile* file, TableLoad* own) = 0;
  /// All ranks end with this exit status.
  virtual void Leave(int status) = 0;
};

/// Whether the program reads a stored table; only then it is worth running on many ranks.
bool ReadsTables(const vm::Program& program);

/// For EXPLAIN: where the ranks are, and how each section runs on them. `nodes`: as Cluster::nodes().
std::string RanksText(const vm::Program& program, const Snapshot& snapshot, const std::vector<std::string>& nodes,
                      const ClusterSettings& settings);

}  // namespace tessera
