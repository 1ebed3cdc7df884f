// CREATE TABLE, DROP TABLE and COPY. Private to compiler/.
//
// Start at: BindCreateTable. Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/bound_query.h"
#include "compiler/parse_tree.h"
#include "compiler/sql_scanner.h"
#include "tablet/tablet.h"

namespace tessera {

Status BindCreateTable(const ParseNode& create, std::string_view sql, const Snapshot& snapshot, Statement* out);
/// `position` is where the statement starts: names in it have no place in the tree.
Status BindDropTable(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out);
Status BindCopy(const ParseNode& copy, std::string_view sql, const Snapshot& snapshot, int position, Statement* out);

/// A DefElem as a boolean: no argument means true. Errors: kSql "... requires a Boolean value".
Result<bool> BooleanOption(const ParseNode& option);

}  // namespace tessera
