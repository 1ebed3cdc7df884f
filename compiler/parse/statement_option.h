// Options of statements: COPY ... (FORMAT csv), EXPLAIN (ANALYZE). Private to compiler/.
//
// Start at: OptionText. Pure functions; any thread.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/parse/parse_tree.h"

namespace tessera {

/// The text of a DefElem's argument: a string, a number or a word; empty if there is none.
std::string OptionText(const ParseNode& option);
/// A DefElem as a boolean: no argument means true. Errors: kSql "... requires a Boolean value".
Result<bool> BooleanOption(const ParseNode& option);

}  // namespace tessera
