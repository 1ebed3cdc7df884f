// A query block while it is bound. Private to compiler/.
//
// Start at: QueryBlock. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/query/bound_query.h"
#include "compiler/query/window_call.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/types.h"

namespace tessera {

/// The queries of a WITH, and those of the blocks around it.
struct CteScope {
  struct Cte {
    std::shared_ptr<Query> query;
    std::vector<std::string> columns;
  };
  const CteScope* outer = nullptr;
  std::map<std::string, Cte, std::less<>> queries;
};

/// `query` is named or stands in a block: its levels come below those around it. A query of WITH may be named without
/// a recursion of the binder, but what comes after the binder recurses into it. Errors: too deep.
Status Enclose(const Query& query, BindContext* context, int position);

struct QueryBlock {
  /// The outermost block of a statement.
  QueryBlock(std::string_view sql, const Dialect* dialect, const Snapshot& snapshot);
  /// A block inside `outer`. `outer_scope`: what names of `outer` mean in it, or nullptr if it sees none.
  QueryBlock(const BindContext& outer, const NameScope* outer_scope);
  /// The block of a view's query, which is named in `outer` and sees nothing of it.
  QueryBlock(const BindContext& outer, std::string_view sql, const Dialect* dialect, const BoundView* view);
  QueryBlock(const QueryBlock&) = delete;
  QueryBlock& operator=(const QueryBlock&) = delete;

  /// Binds the clauses of a SELECT, a set operation or VALUES, in which are blocks again (query_binder.cc).
  Status BindClauses(const ParseNode& select);
  /// The bound query, with its height.
  std::unique_ptr<Query> Take();

  std::unique_ptr<Query> query = std::make_unique<Query>();
  BindContext context;  ///< points into `query` and `ctes`
  NameScope scope;      ///< what names mean in its clauses
  CteScope ctes;
  GroupingSets grouping;
  std::vector<WindowCall> windows;
  ExprPtr qualify;  ///< the condition of QUALIFY, over what the outputs are over; or nullptr
  /// Types for outputs that are literals without one, by number: of the columns that INSERT puts them into. nullptr: TEXT.
  const std::vector<SqlType>* literal_types = nullptr;
  const ParseNode* rows_of = nullptr;  ///< a function in the select list that makes rows, or nullptr
  double limit_percent = -1;           ///< LIMIT n %; -1: there is none
  ExprPtr limit, offset;  ///< of type BIGINT, if they are known only when the query runs; nullptr: as in `query`
  /// It is an arm of a set operation: outputs that are literals without a type keep none. See ExpressionBinder.
  bool keeps_literals = false;

 private:
  void Enter(const BindContext& outer);

  int base_ = 0;   ///< BindContext::nesting at its start
  int views_ = 0;  ///< BindContext::views of the outermost block
};

/// The type of output `number` if it is a literal that has none.
SqlType LiteralType(const QueryBlock& block, size_t number);

/// Refuses a query that refers to a column of a block around it and cannot be decorrelated. `what` names it in the
/// error: "a derived table".
Status RefuseOuterColumns(const Query& query, const char* what, int position);

}  // namespace tessera
