// Statements and settings of other engines that have no effect here: what a dump of PostgreSQL says of owners, rights,
// comments and the client. Private to compiler/.
//
// Start at: StatementNotice. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// Why the statement has no effect, by the tag of its node and its first word; nullopt if it is none of these.
std::optional<std::string> StatementNotice(std::string_view tag, std::string_view first_word);
/// The same of SET name = value. nullopt also where the value would mean something else than what holds here.
std::optional<std::string> SettingNotice(std::string_view name, std::string_view value);

}  // namespace tessera
