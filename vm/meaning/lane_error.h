// The message that a user reads when a row fails. It is the same for the host interpreter and the GPU.
#pragma once

#include "base/status.h"
#include "vm/meaning/meaning.h"
#include "vm/program/program.h"

namespace tessera::vm {

/// REQUIRES: error != LaneError::kNone. `in` is the instruction that failed; its P4 names the type for kRange.
Status LaneErrorStatus(LaneError error, const Instruction& in);

}  // namespace tessera::vm
