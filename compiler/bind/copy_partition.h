// COPY ... TO 'directory' (PARTITION_BY (a, b)): a folder for each value of a, in it one for each of b. Private to compiler/.
//
// Start at: BindPartitionBy. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"

namespace tessera {

/// Where `options` have PARTITION_BY, sorts the rows of the statement's query by these columns, and notes which they are.
/// Errors: kSql, there is no such column, or no other; the rows go to no file.
Status BindPartitionBy(const ParseNode* options, Statement* out);

}  // namespace tessera
