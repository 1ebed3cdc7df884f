// RETURNING: the rows that a statement changes, what is computed of them before the commit, and the result after it.
//
// Start at: ReturnedRows. The thread of the session.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "session/result_writer.h"
#include "session/session_state.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/row_batch.h"
#include "vm/program/program.h"

namespace tessera {

/// The snapshot with a table of a statement's rows beside the others.
Snapshot WithTable(const Snapshot& snapshot, std::shared_ptr<const TableInfo> table);

/// Runs another query of a statement on this process alone, see CompileQuery.
Status RunQuery(SessionState* state, Query* query, const Snapshot& snapshot, const vm::RowConsumer& consume);

class ReturnedRows {
 public:
  ReturnedRows(SessionState* state, const Statement& statement) : state_(*state), statement_(statement) {}

  /// Whether there is a RETURNING. Without it the calls do nothing but to say the tag.
  bool wanted() const { return statement_.change.returning != nullptr; }
  /// Rows that were changed: the columns of RowChange::changed but the number. `order`: in which order they are returned,
  /// by number; empty: as they come.
  void Add(RowBatch&& batch, std::span<const int64_t> order = {});
  /// Computes RETURNING. Nothing has been committed yet, so that its errors change nothing.
  Status Compute(const Snapshot& snapshot);
  /// Hands over the result and the statement's tag. What fails here does not undo the change, and says so.
  Status Show(const std::string& tag, ResultWriter* out);

 private:
  SessionState& state_;
  const Statement& statement_;
  int64_t next_ = 0;
  std::vector<RowBatch> rows_;
  std::unique_ptr<vm::Program> program_;
  std::vector<RowBatch> results_;
};

}  // namespace tessera
