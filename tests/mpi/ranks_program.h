// Programs for three ranks, as a session on rank 0 makes them.
//
// Start at: RanksProgram::Run.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "session/session.h"
#include "tests/mpi/lone_cluster.h"
#include "tests/session/session_answer.h"
#include "vm/program/program.h"

namespace tessera {

/// Keeps the last program and the tables that it reads.
class ProgramCluster final : public LoneCluster {
 public:
  ProgramCluster() : LoneCluster(3) {}

  vm::Program last;
  Snapshot snapshot;

 protected:
  void Tell(const ClusterQuery& query, const vm::RunOptions&) override {
    last = *query.program;
    snapshot = *query.snapshot;
  }
};

/// A session whose statements leave their programs in cluster_.
class RanksProgram : public ::testing::Test {
 protected:
  /// With an empty database, in which these statements have run.
  explicit RanksProgram(std::initializer_list<const char*> statements) {
    SessionOptions options;
    options.device = DeviceChoice::kHost;
    options.cluster = &cluster_;
    session_ = std::move(*Session::Open(options));
    for (const char* sql : statements) Run(sql);
  }

  void Run(const std::string& sql) {
    const std::string answer = Answer(session_.get(), sql);
    EXPECT_EQ(answer.find("ERROR"), std::string::npos) << answer;
  }

  /// "join", "groups" or "rows".
  static std::string SinkOf(const vm::Section& s) {
    return s.sink == vm::Section::Sink::kJoin ? "join" : s.sink == vm::Section::Sink::kGroups ? "groups" : "rows";
  }

  ProgramCluster cluster_;
  std::unique_ptr<Session> session_;
};

}  // namespace tessera
