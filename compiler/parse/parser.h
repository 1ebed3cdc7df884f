// SQL text -> parse tree of one statement, by libpg_query (PostgreSQL's own grammar). Private to compiler/.
//
// Start at: Parse. Thread-safe; long statements take turns on one thread, see parser.cc.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect_text.h"
#include "compiler/parse/parse_tree.h"

namespace tessera {

/// The longest statement, in bytes. It bounds the stack of the parser's thread, see parser.cc.
inline constexpr size_t kMaxStatementBytes = size_t{4} << 20;

/// Levels of nesting of a statement. The binder takes at most 0.8 KiB of stack for a level, and makes at most three
/// levels of Expr from one level of text. So the binder, and all that recurses over Expr, stay well below a stack of 8
/// MiB.
inline constexpr int kMaxNesting = 1000;

/// The statement in `sql`: the tagged node (Tag::kSelectStmt, ...) and the tree that owns it. Its positions are offsets
/// in the user's text.
struct ParsedStatement {
  ParseTree tree;
  const ParseNode* statement = nullptr;
  Dialect dialect;
};

/// Reads the forms of other engines first, see dialect_text.h. Errors: kSql with a position, in PostgreSQL's words ("syntax
/// error at or near "form""); "no statement".
/// `run`: see DialectText::Read.
Result<ParsedStatement> Parse(std::string_view sql, const QueryRunner& run = {});

/// The error of a statement with more than kMaxNesting levels.
Status NestedTooDeeply(int position);

}  // namespace tessera
