// The tokens of SQL text: only where they begin and end. Used to cut scripts into statements and to name result columns
// after their text. Quotes, dollar quotes and nested comments are PostgreSQL's.
//
// Start at: NextToken. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kSpace,  ///< blanks and comments, as many as there are
    kWord,   ///< unquoted name or keyword
    kNumber,
    kQuoted,  ///< '...', "...", E'...', $tag$...$tag$
    kSymbol,  ///< one other byte: ; , ( ) + ...
  };
  Kind kind = Kind::kEnd;
  size_t begin = 0, end = 0;
  bool closed = true;  ///< false if the text ends inside a quote or a comment
  int depth = 0;       ///< of the comments that it ends in
};

/// The token of `sql` that starts at `at`. `open`: what this call gave when `sql` was shorter and ended in a line feed,
/// if the token was not closed; then only what is new is looked at.
Token NextToken(std::string_view sql, size_t at, const Token* open = nullptr);

/// The offset of the first keyword `word` (in lower case) at or after `from`, outside quotes and comments; -1 if there
/// is none. The parse tree has no position of most keywords.
int FindKeyword(std::string_view sql, int from, std::string_view word);

/// The text of the select list's expression that starts at `begin`, up to the comma or keyword that ends it. Blanks and
/// comments inside become one blank. At most some 100 bytes, then "...".
std::string ExpressionText(std::string_view sql, size_t begin);

/// Whether the number is one of the grammar's: it has no prefix and no underscore.
bool IsPlainNumber(std::string_view number);
/// 1_000, 0x1F, 0b101 or 0o17 as the grammar takes it, 1000, 31, 5 and 15; "" if it is no number, or has more than 38
/// digits.
std::string PlainNumber(std::string_view number);

}  // namespace tessera
