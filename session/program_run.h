// Running a statement's program: on this process or on all ranks, with or without a GPU.
//
// Start at: RunProgram. The thread of the session.
#pragma once

#include "base/status.h"
#include "compiler/compiler.h"
#include "mpi/cluster_settings.h"
#include "session/session_state.h"
#include "tablet/catalog/table_info.h"
#include "vm/program/program.h"
#include "vm/vm.h"

namespace tessera {

/// What the settings, and the ranks if there are any, mean for the compiler.
PlanOptions PlanOptionsOf(const SessionState& state);
/// Runs the program and hands its rows to `consume`. Fills the state's timing and statistics; with `profile` also those of
/// single joins. `alone`: without other ranks. `marks`: takes the rows instead, see vm::RowMarks.
Status RunProgram(SessionState* state, const vm::Program& program, const Snapshot& snapshot,
                  const vm::RowConsumer& consume, bool profile = false, bool alone = false,
                  vm::RowMarks* marks = nullptr);

/// The same of a statement's query, with what the host computes of its rows.
Status RunQuery(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, const vm::RowConsumer& consume,
                bool profile = false, bool alone = false, vm::RowMarks* marks = nullptr);

/// What a statement's query returns.
std::vector<vm::ResultColumn> ResultColumns(const Compiled& compiled);

/// The settings that ranks get with each query.
ClusterSettings ClusterSettingsOf(const Settings& settings);

}  // namespace tessera
