// What PRAGMA asks, as functions in FROM: pragma_table_info('t') and its kin, with SQLite's columns. Private to compiler/.
//
// Start at: PragmaQuery. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// `argument`: nullptr, none was given; a table of that name, without which there are no rows. Errors: no such function; no such index; an argument too many or too few.
Result<std::unique_ptr<Query>> PragmaQuery(std::string_view function, const std::string* argument,
                                           const Snapshot& snapshot, int position);

}  // namespace tessera
