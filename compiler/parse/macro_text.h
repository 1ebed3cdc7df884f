// The body of a macro, parsed. Private to compiler/.
//
// Start at: ParseMacroText. Any thread; what it gives is immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/parse/parser.h"

namespace tessera {

struct MacroText {
  std::string sql;  ///< positions of the tree are offsets in it
  ParsedStatement parsed;
  const ParseNode* body = nullptr;  ///< the expression, or the SelectStmt
};

/// What stands in `sql` before an expression.
inline constexpr std::string_view kBeforeExpression = "SELECT ";

/// Errors: kSql with a position in `text`; it is other than one expression, or one query.
Result<std::shared_ptr<const MacroText>> ParseMacroText(std::string_view text, bool is_query);

}  // namespace tessera
