// Sections that run again until they make no new row: WITH RECURSIVE. Private to vm/.
//
// Start at: Recursions. Used by the thread of the run.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/status.h"
#include "vm/run/run_state.h"
#include "vm/sinks/group_table.h"

namespace tessera::vm {

class Recursions {
 public:
  explicit Recursions(RunState* state);

  /// Whether the section runs again with others; then its results must stay.
  bool IsInside(int number) const { return inside_[static_cast<size_t>(number)]; }
  /// Whether a section is left out in this turn, because nothing that it reads has changed.
  bool IsLeftOut(int number) const { return left_out_[static_cast<size_t>(number)]; }
  /// To be called when section `number`, with Section::recursion, has run and its rows are its result. Returns whether there
  /// is another turn, on all ranks alike. REQUIRES: all ranks are here, without an error. Errors: those of the ranks.
  Result<bool> EndTurn(int number);

 private:
  struct Turns {
    RowSet all;
    std::optional<GroupTable> seen;  // if it is distinct
  };

  Status TakeRows(int number, uint64_t* rows);
  /// Which sections of the loop read, directly or not, the rows that it replaces.
  std::vector<bool> Dependent(int number) const;

  RunState& state_;
  std::vector<bool> inside_, left_out_;
  std::map<int, Section> keys_;  // of Turns::seen: the columns of the rows
  std::map<int, Turns> turns_;   // of the loops that are under way, by their last section
};

}  // namespace tessera::vm
