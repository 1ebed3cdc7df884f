// The name of a function in a call. Private to compiler/.
//
// Start at: CalledName. Pure function; any thread.
#pragma once

#include <string_view>

#include "compiler/parse/parse_tree.h"

namespace tessera {

/// Without its schema. REQUIRES: Tag::kFuncCall, whose tree outlives the name.
inline std::string_view CalledName(const ParseNode& call) {
  std::string_view name;
  for (const ParseNode& part : *call.Get(Field::k_funcname)) name = part.Text(Field::k_sval);
  return name;
}

}  // namespace tessera
