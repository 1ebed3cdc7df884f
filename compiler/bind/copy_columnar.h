// COPY of Parquet and Arrow files, and COPY FROM of JSON lines. Private to compiler/.
//
// Start at: FormatOfCopy, BindColumnarFrom. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"
#include "tablet/load/columnar_options.h"

namespace tessera {

/// What FORMAT says, else the name of the file, else CSV. An unknown format is CSV here.
FileFormat FormatOfCopy(const ParseNode* options, const std::string& file);

/// The options of COPY TO, which has a format already and which `setting` of the statement gets as text; COPY FROM takes none but FORMAT. Errors: an unknown one, a bad value.
Status BindColumnarOptions(const ParseNode* options, bool is_from, ColumnarOptions* out);

/// COPY FROM: the statement becomes an INSERT with the query that reads the file, and `file` is not empty. The columns of the
/// file are found by their names if all of `columns` (of `out->target`) are there, else by position. `position`: of COPY.
Status BindColumnarFrom(FileFormat format, const std::vector<int>& columns, const Dialect& dialect,
                        const Snapshot& snapshot, int position, Statement* out);

}  // namespace tessera
