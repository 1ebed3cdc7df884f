// Materialised views: tables with the text of their query. Private to compiler/.
//
// Start at: BindCreateMaterialized. Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

Status BindCreateMaterialized(const ParseNode& create, std::string_view sql, const Dialect& dialect,
                              const Snapshot& snapshot, Statement* out);
Status BindRefresh(const ParseNode& refresh, int position, const Snapshot& snapshot, Statement* out);
Status BindDropMaterialized(const ParseNode& drop, const Snapshot& snapshot, Statement* out);

}  // namespace tessera
