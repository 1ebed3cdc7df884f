// What a row of a table gets: SET of UPDATE, the column list and the values of INSERT. Private to compiler/.
//
// Start at: BindSetList. One thread.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// The numbers of the columns that a list names; `list` is nullptr for all of them. Errors: an unknown column, one twice.
Result<std::vector<int>> ListedColumns(const ParseNode* list, const TableInfo& table);

/// The value of each column after SET; nullptr: it stays as it is, or is computed of others. `statement` names it in errors.
Status BindSetList(const ParseNode& targets, const TableInfo& table, const NameScope& scope, const char* statement,
                   QueryBlock* block, std::vector<ExprPtr>* values);

/// `e` in the type of the column, as it is stored. Errors: it has another type.
Result<ExprPtr> AsColumn(ExprPtr e, const ColumnSchema& column, ExpressionBinder* binder);

/// Outputs of the target's columns in `values`, which are for all that are not generated: those without a value keep
/// theirs. `rules`: what is to be computed and checked of such rows.
Status AddNewValues(std::vector<ExprPtr> values, const TableInfo& target, const Dialect& dialect, Query* query,
                    RowRules* rules);

/// An output of the number of the target's row.
void AddRowNumber(const TableInfo& target, Query* query);

Status GivenToGenerated(const ColumnSchema& column, int position);

}  // namespace tessera
