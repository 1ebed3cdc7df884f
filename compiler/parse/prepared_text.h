// Where in PREPARE name AS statement the statement begins, which is a text of its own: it may have forms that the grammar
// does not take.
//
// Start at: PreparedTextAt. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace tessera {

/// The offset after the AS of PREPARE name [(types)] AS; 0 if `sql` is something else.
size_t PreparedTextAt(std::string_view sql);

/// The greatest number of a parameter of the statement: $n, ?n, or the nth ?.
size_t ParameterCount(std::string_view sql);

}  // namespace tessera
