// What a table's or a view's schema may be, wherever it comes from: a statement or a catalog.
//
// Start at: CheckSchema. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "tablet/catalog/macro.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/view.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {

/// kSql, naming the first thing that no table can have.
Status CheckSchema(const TableSchema& schema);

/// The rules of a view: a name, a query, and at least one column, with names that differ.
Status CheckView(const ViewSchema& view);

/// The rules of a type: a name; labels that differ, of at most 255 bytes of UTF-8 without control characters.
Status CheckType(const EnumType& type);

/// A name that a table could have; a definition of UTF-8. (The compiler checks the SQL.)
Status CheckMacro(const Macro& macro);

/// Errors: kBusy, the table is another one than the statement was compiled for: another process was faster.
Status CheckUnchanged(const TableSchema& compiled, const TableSchema& now);

/// The value of a column that a row is stored without. REQUIRES: a schema that CheckSchema passed.
Value DefaultOf(const ColumnSchema& column);

}  // namespace tessera
