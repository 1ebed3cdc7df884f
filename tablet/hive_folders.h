// Folders that are named after values, as Hive and COPY TO with PARTITION_BY have them: year=2024/month=7/data_0.parquet.
//
// Start at: AddFolderColumns. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/file_chain.h"

namespace tessera {

/// Names, in lower case, and values of the folders in a path, from the outermost on; nothing is NULL.
std::vector<std::pair<std::string, std::optional<std::string>>> FoldersOf(std::string_view path);

/// Makes the values of the folders of each file a column, of a type that they have in all files. Errors: kSql, the files have
/// other folders than the first one, or a column of such a name.
Status AddFolderColumns(std::vector<FileSource>* sources, TableSchema* schema);

}  // namespace tessera
