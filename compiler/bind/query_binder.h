// SELECT -> Query. Private to compiler/.
//
// Start at: BindQuery. Pure functions; any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/types.h"

namespace tessera {

struct BindContext;
struct BoundView;
struct NameScope;
struct QueryBlock;

/// The query block of a SelectStmt node. `literal_types`: see QueryBlock.
Result<std::unique_ptr<Query>> BindQuery(const ParseNode& select, std::string_view sql, const Dialect& dialect,
                                         const Snapshot& snapshot, const std::vector<SqlType>* literal_types = nullptr);

/// The query block of a subquery in an expression of the block `outer`, whose names `scope` resolves (nullptr: there
/// are none). The subquery may refer to columns of `outer` and of blocks around that, as Expr::Kind::kOuter.
Result<std::unique_ptr<Query>> BindQueryBlock(const ParseNode& select, BindContext* outer, const NameScope* scope);

/// The query block of a view's query, `sql`, which a block with the context `outer` names.
Result<std::unique_ptr<Query>> BindViewBlock(const ParseNode& select, std::string_view sql, const Dialect& dialect,
                                             BindContext* outer, const BoundView* view);

/// Binds the queries of a WITH into the block.
Status BindWith(const ParseNode& with, QueryBlock* block);
/// LIMIT and OFFSET of a query, into QueryBlock::query and limit_percent.
Status BindLimit(const ParseNode& select, QueryBlock* block);

/// The query block of an arm of a set operation, whose block is `outer`. Outputs that are literals may have no type.
Result<std::unique_ptr<Query>> BindArmBlock(const ParseNode& select, BindContext* outer);
/// The same of a row of VALUES, a list of expressions.
Result<std::unique_ptr<Query>> BindRowBlock(const ParseNode& items, BindContext* outer);

}  // namespace tessera
