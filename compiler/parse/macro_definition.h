// The definition of a macro as CREATE MACRO has it and the catalog keeps it: (a, b := 2) AS a + b. Private to compiler/.
//
// Start at: ReadMacroDefinition. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera {

struct MacroParameter {
  std::string name;
  std::string default_text;  ///< SQL; "": there is none
};

struct MacroDefinition {
  std::vector<MacroParameter> parameters;
  bool of_rows = false;  ///< AS TABLE
  size_t body = 0;       ///< where its expression or its query begins
};

/// `text` begins with the parenthesis; what is after AS is not looked at. Errors: kSql with a position in it.
Result<MacroDefinition> ReadMacroDefinition(std::string_view text);

}  // namespace tessera
