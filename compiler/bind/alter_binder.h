// ALTER TABLE, TRUNCATE and indexes -> what is to be changed of tables. Private to compiler/.
//
// Start at: BindAlterTable. Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// `out->definition.schema` is what `out->target` becomes. If `out->definition.rewrites`, `out->query` gives the rows of the
/// new table, to which the rules apply. Else it gives, if there is one, the rows that a new CHECK is false for, as they are,
/// and after their values their numbers: the rules applied to one of them say what is wrong with it. `position`: where the
/// statement starts.
Status BindAlterTable(const ParseNode& alter, int position, std::string_view sql, const Dialect& dialect,
                      const Snapshot& snapshot, Statement* out);
/// ALTER TABLE ... RENAME of the table, a column or a constraint.
Status BindRename(const ParseNode& rename, int position, const Snapshot& snapshot, Statement* out);
Status BindTruncate(const ParseNode& truncate, const Snapshot& snapshot, Statement* out);

/// CREATE INDEX, which has no effect, or with UNIQUE is a constraint. Errors: an unknown table or column.
Status BindCreateIndex(const ParseNode& create, int position, std::string_view sql, const Dialect& dialect,
                       const Snapshot& snapshot, Statement* out);
/// DROP INDEX: of a UNIQUE constraint, or without effect.
Status BindDropIndex(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out);

}  // namespace tessera
