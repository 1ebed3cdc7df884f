// GROUP BY and HAVING of a query block. Private to compiler/.
//
// Start at: BindGroupBy. Any thread.
#pragma once

#include "base/status.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parse_tree.h"

namespace tessera {

/// Makes Query::group_by. The select list is bound before, because a key may be the number or the name of an output.
Status BindGroupBy(const ParseNode& list, QueryBlock* block);

/// Whether the list is that of GROUP BY ALL, all outputs without aggregates. There may be none.
bool IsGroupByAll(const ParseNode& list, const QueryBlock& block);

/// A key of GROUP BY: an expression, or the number or the name of an output.
Result<ExprPtr> BindGroupKey(const ParseNode& node, QueryBlock* block);

/// Makes Query::having.
Status BindHaving(const ParseNode& having, QueryBlock* block);

/// Makes what stands above the grouping of a grouped block (outputs, HAVING, QUALIFY, window calls) expressions over
/// kGroup and kAggregate. Errors: a column that is neither grouped by nor aggregated.
Status ReplaceGrouped(QueryBlock* block);

}  // namespace tessera
