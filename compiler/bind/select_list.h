// The select list -> outputs of a query block, and clauses that name outputs. Private to compiler/.
//
// Start at: BindTargets. Any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parse_tree.h"

namespace tessera {

/// Makes the outputs of the select list. Errors: none, too many, or one that does not bind.
Status BindTargets(const ParseNode& select, QueryBlock* block);
/// The same of a list that is not a SELECT's.
Status BindTargetList(const ParseNode& targets, QueryBlock* block);

/// Adds a condition with COLUMNS(...) to the block's, once for each of these columns. False: there is none in it.
Result<bool> BindForEachColumn(const ParseNode& condition, QueryBlock* block);

/// Makes the outputs of a row of VALUES. Those that are literals without a type keep none. Errors: as above.
Status BindRow(const ParseNode& items, QueryBlock* block);

/// A whole-number constant as the number of an output, from 0; -1 if the node is something else. `clause` names the
/// place in errors: "GROUP BY".
Result<int> OutputByPosition(const ParseNode& node, const QueryBlock& block, const char* clause);
/// A bare name as the number of the output with that name; -1 if there is none. Errors: several different ones have it.
Result<int> OutputByName(const ParseNode& node, const QueryBlock& block, const char* clause);

/// Whether the node is a name without a qualifier.
bool IsBareName(const ParseNode& node, std::string_view* name);

}  // namespace tessera
