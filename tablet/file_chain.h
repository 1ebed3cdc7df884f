// Several files, one after the other, as one reader with the columns of a table.
//
// Start at: OpenFileChain.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "tablet/file_tables.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"

namespace tessera {

/// `read`: by column of the table: whether it is read; the others become NULL. `name_column`: of the file's name; -1: there is
/// none. `options`: the time zone. Errors of Next: also kIo, a file is another one than it was, or changes meanwhile.
std::unique_ptr<FileReader> OpenFileChain(std::vector<FileSource> sources, const TableSchema& schema,
                                          const std::vector<bool>& read, int name_column,
                                          const CopyFromOptions& options);

}  // namespace tessera
