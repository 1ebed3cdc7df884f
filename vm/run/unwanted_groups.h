// Groups that are not read: HAVING is a filter of the section that reads the groups. A device that knows it leaves most
// of them where they are. Private to vm/.
//
// Start at: FindUnwanted. Any thread.
#pragma once

#include <vector>

#include "vm/program/program.h"
#include "vm/run/device.h"

namespace tessera::vm {

/// What the only reader of a section of groups drops before anything else. Empty: nothing is known, or there are
/// several readers. REQUIRES: the sink of section `number` is kGroups.
std::vector<UnwantedGroups> FindUnwanted(const Program& program, int number);

}  // namespace tessera::vm
