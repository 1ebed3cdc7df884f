// Functions of PostgreSQL about the server, as SQL: what psql asks beside the functions of functions.def, which users call.
// Private to compiler/.
//
// Start at: ServerFunctionText. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace tessera {

/// An expression over x and y, the arguments; nullptr: there is no such function.
const char* ServerFunctionText(std::string_view name, size_t arguments);

}  // namespace tessera
