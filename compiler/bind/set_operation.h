// UNION, INTERSECT, EXCEPT and VALUES -> Query. Private to compiler/.
//
// The rows of all arms follow one another in a derived table: its block is the first arm, and Query::union_all has the
// others. The block that reads it is all there is of UNION ALL. UNION groups by all columns, for which NULLs are equal.
// For INTERSECT and EXCEPT each arm has one more column that tells the arms apart, and the groups are chosen by the
// arms that they have rows of. VALUES is a UNION ALL of its rows.
//
// Start at: BindSetOperation. One thread.
#pragma once

#include "base/status.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parse_tree.h"

namespace tessera {

/// The word for a SelectStmt that is no SELECT: "UNION", "INTERSECT", "EXCEPT", "VALUES"; nullptr if it is one.
const char* SetOperationName(const ParseNode& select);

/// Binds the arms of a set operation, or the rows of VALUES, into `block`, which has bound its WITH. Not its ORDER BY
/// and LIMIT.
Status BindSetOperation(const ParseNode& select, QueryBlock* block);

}  // namespace tessera
