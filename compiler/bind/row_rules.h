// CHECK constraints, generated columns and DEFAULTs of each row: expressions over one row of a table, which the schema has as text. They are
// bound once for a statement and computed row by row on the host, as constants are folded, before rows are stored.
//
// Start at: MakeRowRules. Private to compiler/. Pure functions; any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"

namespace tessera {

class ExpressionBinder;

/// The value of a call of nextval or currval in the row that is being computed, by its number.
using RowSequences = std::function<Result<int64_t>(size_t call)>;
/// The value of `e` for one row of a batch, whose columns are those of relation 0. `sequences`: nullptr, it has no such call.
Result<Value> ComputeRow(const Expr& e, const RowBatch& batch, size_t row, const RowSequences* sequences = nullptr);

/// The expression of a CHECK in CREATE TABLE, as BOOLEAN, or that of a generated column in its type. Errors: subqueries,
/// aggregates, random() and now(); a generated column that refers to another.
Status CheckRowExpression(const ParseNode& node, std::string_view sql, const Dialect& dialect,
                          const TableSchema& schema, const ColumnSchema* generated);

/// The expression that a schema has as the text of a CHECK, of BOOLEAN, or of a generated column of that type: its columns
/// are those of relation 0.
Result<ExprPtr> ReadRowExpression(const std::string& text, const TableSchema& schema, const SqlType& type);

/// The columns that the expression names.
Result<std::vector<int>> ColumnsOfRowExpression(const ParseNode& node, std::string_view sql, const Dialect& dialect,
                                                const TableSchema& schema);

/// Whether a DEFAULT depends on time or chance, so that each row computes it; else it is a constant. Errors: a column, a
/// subquery, another type.
Result<bool> CheckDefault(ExpressionBinder* binder, const ParseNode& node, const ColumnSchema& column,
                          std::string_view sql, const Dialect& dialect);
/// The value of DEFAULT for one row.
Result<Value> DefaultValue(const ColumnSchema& column, const Dialect& dialect);

/// The rules of a table for rows with values for the columns `given`; empty if it has none. Errors: a text that is no
/// expression, which another version stored.
Result<RowRules> MakeRowRules(const TableSchema& schema, std::span<const int> given, const Dialect& dialect);

}  // namespace tessera
