// Tables: CREATE and DROP, and rows that are to be stored in one. Private to compiler/.
//
// Start at: BindCreateTable, FitToTable. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/row_batch.h"

namespace tessera {

class ExpressionBinder;

Status BindCreateTable(const ParseNode& create, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                       Statement* out);
/// The table is made of the outputs of Statement::query, which there is none of if nothing is to be stored.
Status BindCreateTableAs(const ParseNode& create, std::string_view sql, const Dialect& dialect,
                         const Snapshot& snapshot, Statement* out);
/// `position` is where the statement starts, because the tree has no positions of the names.
Status BindDropTable(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out);

/// An expression of VALUES or DEFAULT as a value of the column's type. Errors: it is not a constant, or not of that type.
Result<Value> InsertValue(ExpressionBinder* binder, const ParseNode& node, const ColumnSchema& column);

/// The visible outputs of `query` are for the columns `columns` of `target`, in this order. Replaces them by one output
/// for each column of the target, in its order and of its types; missing ones are their defaults. Outputs that ORDER BY needs
/// stay. Errors: a type that cannot be stored.
Status FitToTable(Query* query, const TableInfo& target, const std::vector<int>& columns, const Dialect& dialect);

/// VACUUM of some tables, or of all. Errors: an unknown table or option.
Status BindVacuum(const ParseNode& vacuum, int position, const Snapshot& snapshot, Statement* out);
/// ANALYZE [(options)] [t [(columns)], ...]: a notice, because each change keeps the statistics. Errors: an unknown table,
/// column or option.
Status BindAnalyze(const ParseNode& analyze, const Snapshot& snapshot, Statement* out);

// Parts of CREATE TABLE that a table may get later.
/// A column with its constraints. Its sequence, if it has one, is added to `sequences`. Errors: one of the name is there.
Status AddColumn(const ParseNode& definition, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                 TableSchema* schema, Sequences* sequences);
/// PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY.
Status AddConstraint(const ParseNode& constraint, std::string_view sql, const Dialect& dialect,
                     const Snapshot& snapshot, TableSchema* schema);
/// The column's DEFAULT, which it has none of. `text`: the expression as it is written.
Status SetColumnDefault(const ParseNode& expression, std::string_view text, std::string_view sql,
                        const Dialect& dialect, ColumnSchema* column);
/// The type in a column's definition.
Result<SqlType> BindColumnType(const ParseNode& definition, std::string_view sql, const Dialect& dialect);

}  // namespace tessera
