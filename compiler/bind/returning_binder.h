// RETURNING -> a query over the rows that a statement has changed. Private to compiler/.
//
// Start at: BindReturning. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// A table for rows of a statement: the columns of `target`, to which others may be added, and last FinishRows().
std::shared_ptr<TableInfo> MakeRowsTable(const TableInfo& target, const char* name, int64_t id);
/// Adds the column of the rows' numbers.
void FinishRows(TableInfo* rows);

/// What the table that `relation` names is called, with its columns as those of relation 0.
NameScope ScopeOf(const ParseNode& relation, const TableInfo& table);
/// A relation over all columns of a table for rows.
Relation RelationOf(std::shared_ptr<const TableInfo> rows, std::string alias);

/// RowChange::returning and RowChange::changed of the statement `node`, which has RETURNING. `scope`: what names mean in the
/// block of `rows` and `around`, where the target is relation 0. Columns of its other relations become outputs of `rows`,
/// which is nullptr if there are none.
Status BindReturning(const ParseNode& node, const NameScope& scope, const BindContext& around, Query* rows,
                     Statement* out);

}  // namespace tessera
