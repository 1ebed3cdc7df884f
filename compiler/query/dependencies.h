// What a compiled statement depends on besides its text, the types of the catalog and the PlanOptions: for those who keep
// its program until the text comes again.
//
// Whatever reads something of that kind while a statement is compiled says so to the innermost scope of its thread, so that
// texts which are bound on the way (a DEFAULT, a function that is defined in SQL) need not pass anything on.
//
// Start at: Dependencies, DependencyScope, NoteTable, NoteMoment. A scope belongs to its thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tablet/catalog/table_info.h"

namespace tessera {

struct Dependencies {
  struct Table {
    std::string name;
    uint64_t number = 0;  ///< TableInfo::number
  };
  std::vector<Table> tables;  ///< those that were looked up, each once
  /// What names without a schema meant, where a table of another schema could come before it.
  struct Name {
    std::string written, qualified;
    int position = -1;  ///< in its text

    bool operator==(const Name&) const = default;
  };
  std::vector<Name> names;
  /// The program is good for one run: it has the time, a seed of random numbers, a variable's value or what the catalog
  /// holds at this moment.
  bool moment = false;

  /// Whether all tables are in the snapshot as they were. Numbers tell them apart, so that nothing of an old snapshot,
  /// nor a file of a table that was dropped, is held for this.
  bool HoldIn(const Snapshot& snapshot) const;
};

/// While it lives, what is noted on this thread goes to `*out`.
class DependencyScope {
 public:
  explicit DependencyScope(Dependencies* out);
  ~DependencyScope();
  DependencyScope(const DependencyScope&) = delete;
  DependencyScope& operator=(const DependencyScope&) = delete;

 private:
  Dependencies* outer_;
};

/// No effect outside of a scope.
void NoteTable(const TableInfo& table);
void NoteName(std::string_view written, std::string_view qualified, int position);
/// The tables and the names noted so far; nullptr outside of a scope.
const std::vector<Dependencies::Table>* NotedTables();
const std::vector<Dependencies::Name>* NotedNames();
void NoteMoment();

}  // namespace tessera
