// SELECT -> Query. Private to compiler/.
//
// Start at: BindQuery. Pure functions; any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/types.h"

namespace tessera {

/// The query block of a SelectStmt node. `literal_types`: see QueryBlock.
Result<std::unique_ptr<Query>> BindQuery(const ParseNode& select, std::string_view sql, const Dialect& dialect,
                                         const Snapshot& snapshot, const std::vector<SqlType>* literal_types = nullptr);

}  // namespace tessera
