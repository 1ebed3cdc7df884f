// Roles: CREATE, ALTER and DROP ROLE, GRANT and REVOKE. Private to compiler/.
//
// Start at: BindCreateRole, BindGrant. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// CREATE ROLE and CREATE USER, which may log in. Errors: there is a role of that name; an option that is not supported.
Status BindCreateRole(const ParseNode& create, int position, const Snapshot& snapshot, Statement* out);
Status BindAlterRole(const ParseNode& alter, int position, const Snapshot& snapshot, Statement* out);
Status BindRenameRole(const ParseNode& rename, int position, const Snapshot& snapshot, Statement* out);
/// Errors: also a role that has rights on a table.
Status BindDropRole(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out);
/// GRANT and REVOKE of rights on tables. A notice where none of the roles is there, as in a dump of another database, and for
/// what is open to all. Errors: one of several roles, or a table, is not there; rights that are not supported.
Status BindGrant(const ParseNode& grant, int position, const Snapshot& snapshot, Statement* out);

}  // namespace tessera
