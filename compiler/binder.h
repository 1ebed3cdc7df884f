// SQL text -> bound statements: libpg_query's parser, name resolution, types, constant folding. Private to compiler/.
//
// Start at: SplitStatements, Bind.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/bound_query.h"

namespace tessera {

/// Parses and binds one SQL statement. The text holds exactly one statement (a trailing semicolon is fine); an empty
/// one is kSql "no statement". Errors carry the byte offset in `sql`. Unknown names hint at the nearest one
/// (`Perhaps you meant column "lo_revenue".`). Whatever the text, however long or deep, the result is an error, never a
/// crash.
Result<Statement> Bind(std::string_view sql, const Snapshot& snapshot);

}  // namespace tessera
