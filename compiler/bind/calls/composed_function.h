// Functions that the binder makes of others: the entries of the SYNTAX rows of functions.def. Private to compiler/.
//
// Start at: ExpressionBinder::BindComposed.
#pragma once

#include <cstddef>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/bind/expression_binder.h"

namespace tessera {

/// A member of ExpressionBinder that makes a call of its bound arguments; nullptr: it takes none of these. The name is
/// that of the call.
template <class... Arguments>
using ComposedMember = Result<ExprPtr> (ExpressionBinder::*)(Arguments...);
using ComposedBinder =
    std::variant<std::monostate, ComposedMember<int>, ComposedMember<ExprPtr, int>,
                 ComposedMember<ExprPtr, ExprPtr, int>, ComposedMember<std::string_view, ExprPtr, ExprPtr, int>,
                 ComposedMember<std::vector<ExprPtr>, int>,
                 ComposedMember<std::string_view, std::vector<ExprPtr>*, int>>;

/// One way to bind a call of a name: TEXT, BOUND or CALLED.
struct ComposedEntry {
  const char* parameters = nullptr;  ///< nullptr: CALLED, or there is no entry
  const char* text = nullptr;        ///< TEXT
  ComposedBinder bound = {};         ///< BOUND
  ComposedMember<const ParseNode&> called = nullptr;
  size_t least = 0, most = 0;  ///< arguments of CALLED
};

struct ComposedFunction {
  std::string_view name;
  ComposedEntry entries[3];
};

}  // namespace tessera
