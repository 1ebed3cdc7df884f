// What Tab completes at a server: its tables and their columns.
//
// Start at: NamesOfServer. The thread of the session.
#pragma once

#include <memory>

#include "shell/shell_session.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// Tables and views with the names of their columns, and nothing else of them, as the server has them now; nullptr: it does not
/// say, or the transaction has failed.
std::shared_ptr<const Snapshot> NamesOfServer(ShellSession* session);

}  // namespace tessera
