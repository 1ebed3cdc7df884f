// What a script calls its statements, for those who read their statistics.
//
// Start at: NameInComment. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// `text`: what is between two statements. Sets `*name` to X if it has a comment "-- name: X", the last one counts.
void NameInComment(std::string_view text, std::string* name);
/// "q1" for "queries/q1.sql"; empty for no file.
std::string NameOfScript(std::string_view file);

}  // namespace tessera
