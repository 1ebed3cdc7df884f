// Schemas and comments: CREATE, DROP and SET SCHEMA, COMMENT ON, and new names of sequences. Private to compiler/.
//
// Start at: BindCreateSchema, BindComment. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// The new schema is `out->value`.
Status BindCreateSchema(const ParseNode& create, int position, const Snapshot& snapshot, Statement* out);
/// The schemas are `out->definition.dropped_schemas`, what is in them goes, too, and others become
/// `out->definition.dependents`.
Status BindDropSchema(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out);
/// ALTER TABLE or SEQUENCE ... SET SCHEMA.
Status BindSetSchema(const ParseNode& alter, int position, const Snapshot& snapshot, Statement* out);
/// ALTER SEQUENCE ... RENAME.
Status BindRenameSequence(const ParseNode& rename, int position, const Snapshot& snapshot, Statement* out);
Status BindComment(const ParseNode& comment, int position, const Snapshot& snapshot, Statement* out);

}  // namespace tessera
