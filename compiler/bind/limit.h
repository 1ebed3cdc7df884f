// LIMIT and OFFSET. Private to compiler/.
//
// Start at: BindLimit. One thread.
#pragma once

#include "base/status.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parse_tree.h"

namespace tessera {

/// LIMIT and OFFSET of a query, into QueryBlock::query, limit, offset and limit_percent.
Status BindLimit(const ParseNode& select, QueryBlock* block);

/// The number is that of LIMIT n %.
bool IsPercentage(const ParseNode& number, const BindContext& context);

}  // namespace tessera
