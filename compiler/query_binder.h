// SELECT -> Query. Private to compiler/.
//
// Start at: BindQuery. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/bound_query.h"
#include "compiler/parse_tree.h"
#include "tablet/tablet.h"

namespace tessera {

struct BindContext;
struct NameScope;

/// The query block of a SelectStmt node.
Result<std::unique_ptr<Query>> BindQuery(const ParseNode& select, std::string_view sql, const Snapshot& snapshot);

/// The query block of a subquery in an expression of the block `outer`, where names mean what `scope` (which may be
/// nullptr) says. It may refer to columns of `outer` and of blocks around that: Expr::Kind::kOuter.
Result<std::unique_ptr<Query>> BindQueryBlock(const ParseNode& select, const BindContext& outer,
                                              const NameScope* scope);

/// SELECT of these columns of a table: what COPY table TO writes.
std::unique_ptr<Query> ScanQuery(std::shared_ptr<const TableInfo> table, const std::vector<int>& columns);

/// The table that a RangeVar node names. Errors: it does not exist (with a hint), it has a schema.
Result<std::shared_ptr<const TableInfo>> FindTable(const ParseNode& range_var, const Snapshot& snapshot);
Status TableNotFound(std::string_view name, int position, const Snapshot& snapshot);
/// The column `name` of the table, or an error with a hint.
Result<int> FindTableColumn(const TableInfo& table, std::string_view name, int position);

/// Makes the visible outputs of `query`, which are the columns `columns` of `target` in this order, all of the target's
/// columns in its order and of its types; the others are NULL. What ORDER BY refers to stays. Errors: a type that
/// cannot be stored.
Status FitToTable(Query* query, const TableInfo& target, const std::vector<int>& columns);

}  // namespace tessera
