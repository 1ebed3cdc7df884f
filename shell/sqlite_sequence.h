// What .dump of sqlite3 says of AUTOINCREMENT: statements that fill the table sqlite_sequence, which is not here.
//
// Start at: SequenceStatement. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tablet/catalog/table_info.h"

namespace tessera {

/// Whether the statement may be one.
inline bool NamesSqliteSequence(std::string_view sql) { return sql.find("sqlite_sequence") != std::string_view::npos; }

/// For `INSERT INTO sqlite_sequence VALUES('t',3)` the statement that sets the sequence of t's column so, for `DELETE FROM
/// sqlite_sequence` one that does nothing; "" where t has no sequence. nullopt: it is neither, or there is a table of that
/// name.
std::optional<std::string> SequenceStatement(std::string_view sql, const Snapshot& snapshot);

}  // namespace tessera
