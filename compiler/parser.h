// SQL text -> parse tree of one statement, by libpg_query (PostgreSQL's own grammar). Private to compiler/.
//
// Start at: Parse. Thread-safe; long statements take turns on one thread, see parser.cc.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/parse_tree.h"

namespace tessera {

/// Longest statement in bytes. It bounds what the stack of the parser's thread must hold, see parser.cc.
inline constexpr size_t kMaxStatementBytes = size_t{4} << 20;

/// Levels of nesting of a statement. The binder takes 0.8 KiB of stack a level at most, and what it makes is at most
/// three levels of Expr for one of the text, so that it and all that recurses over Expr stay well below a stack of 8
/// MiB.
inline constexpr int kMaxNesting = 1000;

/// The statement in `sql`: the tagged node (Tag::kSelectStmt, ...) and the tree that owns it.
struct ParsedStatement {
  ParseTree tree;
  const ParseNode* statement = nullptr;
};

/// Errors: kSql with a place, as PostgreSQL words them ("syntax error at or near "form""); "no statement".
Result<ParsedStatement> Parse(std::string_view sql);

/// What is said about a statement of more than kMaxNesting levels.
Status NestedTooDeeply(int position);

}  // namespace tessera
