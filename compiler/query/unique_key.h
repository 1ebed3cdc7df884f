// Which columns tell the rows of a relation, or of joins, apart. Private to compiler/.
//
// Start at: HasUniqueKey, DetermineRows. Pure functions; any thread.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "compiler/query/bound_query.h"
#include "compiler/query/equal_columns.h"

namespace tessera {

/// How deep derived tables are looked into for keys of their own tables. (Each level is looked into several times.)
inline constexpr int kKeyLevels = 2;

/// Whether rows of the relation that agree in all columns of which `is_known` is true are one row.
bool HasUniqueKey(const Relation& relation, const std::function<bool(int column)>& is_known, int levels = kKeyLevels);

/// A relation that has at most one row for given values of `columns`. -1: none.
struct UniqueColumns {
  int relation = -1;
  std::vector<int> columns;
};

/// Whether rows of the block's joins that agree in `columns` are one row. `assumed`: taken for granted.
bool DetermineRows(const Query& q, std::set<ColumnNumber> columns, const UniqueColumns& assumed = {},
                   int levels = kKeyLevels);

/// Whether a relation that is joined in that way adds rows and columns.
inline bool GivesRows(JoinKind kind) { return kind == JoinKind::kInner || kind == JoinKind::kLeft; }

}  // namespace tessera
