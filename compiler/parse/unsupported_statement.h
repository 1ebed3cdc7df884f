// Statements that other engines have and Tessera does not: what they are called and what to write instead. Private to
// compiler/.
//
// Start at: UnsupportedStatement. Pure functions; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"

namespace tessera {

/// The error of a statement that the grammar knows, by the tag of its node.
Status UnsupportedStatement(std::string_view tag, int position);

/// The error of a statement that the grammar does not know, by its first two words in lower case; nullopt if it is
/// nothing that is known.
std::optional<Status> ForeignStatement(std::string_view first, std::string_view second, int position);

/// The error of a form inside of a statement that the grammar does not know, by its first word and the next token: a
/// word in lower case, "1" for a number, "'" for a quoted text, or a symbol. `behind_operand`: a name, a closing
/// parenthesis or a constant stands before it. nullopt if it is nothing that is known.
std::optional<Status> ForeignForm(std::string_view word, std::string_view next, bool behind_operand, int position);

}  // namespace tessera
