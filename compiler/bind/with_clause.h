// WITH and WITH RECURSIVE, whose query reads what it has made so far. Private to compiler/.
//
// Start at: BindWith. One thread.
#pragma once

#include "base/status.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parse_tree.h"

namespace tessera {

/// Binds the queries of a WITH into the block.
Status BindWith(const ParseNode& with, QueryBlock* block);

}  // namespace tessera
