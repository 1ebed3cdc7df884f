// Branches of CASE that no row reaches: what drivers ask of kinds of things that the catalog has none of. Private to compiler/.
//
// Start at: IsNeverTrue. Pure functions; any thread.
#pragma once

#include <vector>

#include "compiler/query/bound_query.h"

namespace tessera {

/// Whether `condition` says that a column has a value which none of its rows has: the rows stand in the statement, as those of
/// the catalog do. `relations`: of its block.
bool IsNeverTrue(const Expr& condition, const std::vector<Relation>& relations);

/// While it lives, what is bound is not run, and is bound for its type alone: queries of WITH may refer to columns of queries
/// around them.
class UnreachedBranch {
 public:
  UnreachedBranch() { ++depth_; }
  ~UnreachedBranch() { --depth_; }
  UnreachedBranch(const UnreachedBranch&) = delete;
  UnreachedBranch& operator=(const UnreachedBranch&) = delete;
  /// Of this thread.
  static bool active() { return depth_ > 0; }

 private:
  static inline constinit thread_local int depth_ = 0;
};

}  // namespace tessera
