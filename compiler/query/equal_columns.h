// Which columns of a block are equal in every row that passes its conditions. Private to compiler/.
//
// Start at: EqualColumns::Of. Pure functions; any thread.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "compiler/query/bound_query.h"

namespace tessera {

/// (relation, column).
using ColumnNumber = std::pair<int, int>;
inline ColumnNumber NumberOf(const Expr& column) { return {column.relation, column.column}; }

/// Columns of inner joins that equalities relate, directly or by way of others. Points into the query.
class EqualColumns {
 public:
  explicit EqualColumns(const Query& q);
  /// The columns that equal this one, itself among them; nullptr if there are no others.
  const std::vector<const Expr*>* Of(const Expr& column) const;

 private:
  void Relate(const Expr& a, const Expr& b);
  size_t ClassOf(const Expr& e);

  std::map<ColumnNumber, size_t> class_of_;
  std::vector<std::vector<const Expr*>> classes_;
};

}  // namespace tessera
