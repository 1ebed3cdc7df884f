// Snapshot isolation: tables that a transaction goes on to see as they were at its first statement, because others have
// changed their rows before it changes anything itself. Of these it may change the rows that others have left as they were,
// and add rows. Tables that foreign keys join to others it may not change, as keys would have to be looked for in two states.
//
// Start at: TablesOfBefore, WithOlder, CheckConflict, WriteOlder. The thread of the session.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/older_rows.h"
#include "tablet/catalog/table_info.h"
#include "tablet/load/table_writer.h"

namespace tessera {

struct OlderTable {
  std::shared_ptr<const TableInfo> before;  ///< at the first statement
  std::shared_ptr<const TableInfo> first;   ///< when the transaction began to change the database
  std::shared_ptr<const OlderRows> rows;    ///< for what it changes itself; nullptr: nothing yet
};

struct OlderTables {
  std::string directory;  ///< of the database, as Database::real_path
  std::vector<OlderTable> tables;

  bool empty() const { return tables.empty(); }
  const OlderTable* Find(std::string_view table) const;
};

/// Tables of `before` that have other rows `now`. Errors: kSerializationFailure, more than rows of tables has changed.
Result<OlderTables> TablesOfBefore(const std::string& directory, const Snapshot& before, const Snapshot& now);

/// `now` with what is seen in place of the tables of those names; `now` itself, if there are none. Errors: those of
/// OlderRows::See.
Result<std::shared_ptr<const Snapshot>> WithOlder(std::shared_ptr<const Snapshot> now, OlderTables* older);

/// Whether rows of `table` may be changed in the state `now`. Errors: kSerializationFailure: it is among `older` and has other columns
/// or keys since, or foreign keys join it to other tables, also by others between, of which one is among `older`.
Status CheckConflict(const std::string& table, const Snapshot& now, const OlderTables& older);

/// For changes of rows that are seen: `writer`, which is one of the table as it is, or if the table is none of `older` that itself.
/// Rows that others have changed are kSerializationFailure, and if `on_conflict` so are keys that exist: the statement has not seen
/// them. `now`: the latest state. Errors: those of OlderRows::See.
Result<std::unique_ptr<TableWriter>> WriteOlder(const std::string& table, const Snapshot& now,
                                                std::unique_ptr<TableWriter> writer, bool on_conflict,
                                                OlderTables* older);

/// After rows were added, and WithOlder has seen them: keys of them that others have taken away, which the transaction still sees,
/// would be there twice for it. Errors: kSerializationFailure.
Status CheckOlderKeys(const std::string& table, const OlderTables& older);

/// What to do about an error that ends a transaction.
inline constexpr char kTryAgain[] = "Enter ROLLBACK, then run the transaction again from its BEGIN.";
/// The error of a transaction that meets what another session has changed: "the database", "table \"t\"".
Status CannotSerialize(const std::string& changed);

}  // namespace tessera
