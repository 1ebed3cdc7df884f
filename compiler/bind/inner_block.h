// Query blocks inside others: subqueries, derived tables, queries of views and of WITH, arms of set operations. Private to
// compiler/.
//
// What stands in a block asks for its own queries here; query_binder.h, which binds the clauses of a block, is above that.
//
// Start at: BindQueryBlock. One thread.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"

namespace tessera {

struct BindContext;
struct BoundView;
struct Dialect;
struct NameScope;

/// The query block of a subquery in an expression of the block `outer`, whose names `scope` resolves (nullptr: there
/// are none). The subquery may refer to columns of `outer` and of blocks around that, as Expr::Kind::kOuter.
Result<std::unique_ptr<Query>> BindQueryBlock(const ParseNode& select, BindContext* outer, const NameScope* scope);

/// The query block of a view's query, `sql`, which a block with the context `outer` names.
Result<std::unique_ptr<Query>> BindViewBlock(const ParseNode& select, std::string_view sql, const Dialect& dialect,
                                             BindContext* outer, const BoundView* view);

/// The query block of an arm of a set operation, whose block is `outer`. Outputs that are literals may have no type.
Result<std::unique_ptr<Query>> BindArmBlock(const ParseNode& select, BindContext* outer);

}  // namespace tessera
