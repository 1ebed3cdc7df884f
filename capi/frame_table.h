// The arrays of a stream as a table that is read in place: a column becomes chunks when a statement reads it, by the threads that
// run it.
//
// Start at: MakeFrameTable.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "capi/arrow_reader.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// Takes all arrays of the stream, which stay until the table goes. `name`: for messages. nullptr: its columns are none of a
/// table, which loading says with its reason; then the stream has not been read. Errors: those of the stream.
Result<std::shared_ptr<TableInfo>> MakeFrameTable(const std::shared_ptr<ArrowSource>& source, const std::string& name);

}  // namespace tessera
