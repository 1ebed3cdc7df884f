// Rank 0 of a cluster whose other ranks do not exist, for tests: programs run on this rank alone.
//
// Start at: LoneCluster::Tell, which says what the others would have got.
#pragma once

#include <string>
#include <vector>

#include "mpi/cluster.h"

namespace tessera {

class LoneCluster : public Cluster {
 public:
  explicit LoneCluster(int ranks) : nodes_(static_cast<size_t>(ranks), "here") {}

  int rank() const override { return 0; }
  int ranks() const override { return static_cast<int>(nodes_.size()); }
  int local_rank() const override { return 0; }
  int local_ranks() const override { return 1; }
  bool any_thread() const override { return true; }
  const std::vector<std::string>& nodes() const override { return nodes_; }
  const Status& ready() const override { return ready_; }
  uint64_t least_room() const override { return uint64_t{1} << 30; }
  int Serve(int) override { return 0; }
  Status OpenDatabase(const std::string&, bool, bool) override { return Status::Ok(); }
  void CloseDatabase() override {}
  Status Run(const ClusterQuery& query, vm::Executor* executor, vm::RunOptions options, const vm::RowConsumer& consume,
             vm::RunStatistics* statistics) override {
    Tell(query, options);
    return executor->Run(*query.program, *query.snapshot, options, consume, statistics);
  }
  Result<bool> Load(const ClusterLoad&, SharedFile*, TableLoad*) override { return false; }
  void Leave(int) override {}

 protected:
  /// Called before each program runs.
  virtual void Tell(const ClusterQuery& query, const vm::RunOptions& options) = 0;

 private:
  std::vector<std::string> nodes_;
  Status ready_;
};

}  // namespace tessera
