// A plan as EXPLAIN shows it: a tree of steps, each with the sections of the program that do it. So it says what runs,
// and what a run has measured can be put beside it.
//
// Start at: PlanNode. Plain data.
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// "Join Type": "Inner"; "Group Key": ["a", "b"].
struct PlanAttribute {
  std::string name;
  std::vector<std::string> values;
  bool is_list = false;
};

/// One step.
struct PlanNode {
  /// Which number that was measured of the first of `sections` is that of its rows.
  enum class Counted {
    kNothing,
    kOut,   ///< the rows that the section made
    kIn,    ///< those that it read
    kJoin,  ///< those after the join with the table that section `side` has built
  };

  std::string text;  ///< one line: "Hash join on a.x = b.y"
  std::string type;  ///< PostgreSQL's name of it: "Hash Join"
  std::vector<PlanAttribute> attributes;
  double rows = -1;           ///< expected; -1: no estimate
  std::vector<int> sections;  ///< by number; none: nothing of it runs by itself
  Counted counted = Counted::kNothing;
  int side = -1;         ///< kJoin
  bool reads = false;    ///< its section reads its rows: of a table, or of an earlier section
  bool is_side = false;  ///< the build side of the step around it
  std::vector<PlanNode> children;
};

}  // namespace tessera
