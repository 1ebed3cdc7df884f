// An error as people read it: with the line of the statement and a caret under the position.
//
// Start at: FormatError. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera {

/// The error as psql prints it:
///   ERROR:  column "lo_revenu" does not exist
///   LINE 1: SELECT lo_revenu FROM lineorder
///                  ^
///   HINT:  Perhaps you meant column "lo_revenue".
/// `first_line` is the line of the script on which `sql` starts. Long lines are cut around the caret; the caret counts
/// columns of a terminal, not bytes. No newline at the end.
/// `with_sqlstate`: `ERROR:  42703: column ...`.
std::string FormatError(const Status& error, std::string_view sql, int first_line = 1, bool with_sqlstate = false);

}  // namespace tessera
