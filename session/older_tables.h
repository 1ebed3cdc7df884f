// Snapshot isolation: tables that a transaction goes on to see as they were at its first statement, because others have
// changed their rows before it changes anything itself. It may not change these, or the keys that lead to them.
//
// Start at: OlderTables, WithOlder, CheckConflict. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

using Tables = std::vector<std::shared_ptr<const TableInfo>>;

/// Tables of `before` that have other rows `now`. Errors: kSerializationFailure, more than rows of tables has changed.
Result<Tables> OlderTables(const Snapshot& before, const Snapshot& now);

/// `now` with these in place of those of the same names; `now` itself, if there are none.
std::shared_ptr<const Snapshot> WithOlder(std::shared_ptr<const Snapshot> now, const Tables& older);

/// Whether rows of `table` may be changed in the state `now`: neither it is among `older`, nor a table that foreign keys join to it,
/// also by others between. Errors: kSerializationFailure.
Status CheckConflict(const std::string& table, const Snapshot& now, const Tables& older);

/// What to do about an error that ends a transaction.
inline constexpr char kTryAgain[] = "Enter ROLLBACK, then run the transaction again from its BEGIN.";
/// The error of a transaction that meets what another session has changed: "the database", "table \"t\"".
Status CannotSerialize(const std::string& changed);

}  // namespace tessera
