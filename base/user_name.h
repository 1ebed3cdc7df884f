// Who runs the program, as the system knows them.
//
// Start at: UserOfProcess. Any thread.
#pragma once

#include <string>

namespace tessera {

/// The name of the effective user; their number if they have no name.
std::string UserOfProcess();

}  // namespace tessera
