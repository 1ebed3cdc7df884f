// FOREIGN KEY: what the constraint of a statement says, and which of them refer to a table that is changed or dropped.
// Private to compiler/.
//
// Start at: BindForeignKey, KeepForeignKeys. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// The constraint FOREIGN KEY or REFERENCES of a table of that schema, whose columns and keys are all known, without its
/// name. `column`: that has it in its definition; -1: the columns are listed. `referenced`: the table that it refers to, which
/// may be `schema`. Errors: that has no such key; the types cannot be compared; a form that is not supported.
Result<ForeignKey> BindForeignKey(const ParseNode& constraint, int column, const TableSchema& schema,
                                  const TableSchema& referenced);

/// Whether the node is DEFERRABLE, INITIALLY DEFERRED or the like, which follows the constraint that it belongs to.
bool IsConstraintAttribute(const ParseNode& constraint);

/// After `out->schema` has been settled as what `table` becomes: foreign keys of other tables that refer to a key of it which
/// is not there any more go with it if `cascade`, into `out->dependents`, and so do its own. Errors: they do not go;
/// types that cannot be compared any more.
Status KeepForeignKeys(const TableInfo& table, bool cascade, int position, const Snapshot& snapshot, Definition* out);

/// The same where the table, or one of its columns, gets another name.
void RenameInForeignKeys(const TableInfo& table, const Snapshot& snapshot, Definition* out);

/// The other tables with foreign keys that refer to `table`, without these.
std::vector<TableSchema> WithoutReferencesTo(const std::string& table, const Snapshot& snapshot);

}  // namespace tessera
