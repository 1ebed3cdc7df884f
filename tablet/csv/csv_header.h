// The first line of a CSV file as the names of its columns: which column of a table each field is.
//
// Start at: FollowHeader. Any thread.
#pragma once

#include <string>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/load/copy_options.h"

namespace tessera {

/// Reads the first line of `file` and, where its names are those of the columns that COPY loads in another order, puts
/// `options->columns` into that order. Names are equal as they stand, else if they differ in case and in blanks around
/// them alone. Of other names, or another number of them, it says so in *warning, and the order stays; with `must_match`
/// that, and another order, is an error, as in PostgreSQL.
///
/// REQUIRES: options->header; `file` can be read twice. Errors: kIo, kUnsupported as of CsvFile, kSql.
Status FollowHeader(const std::string& file, const TableSchema& schema, bool must_match, CopyFromOptions* options,
                    std::string* warning);

}  // namespace tessera
