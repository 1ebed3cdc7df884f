// The lean and the full instantiation of the VM kernel twice: as they are, and with kMoreOpcodes more cases in their
// switch, which no program uses. Linked into gpu_opcode_bench alone, in place of the library's two kernels.
//
// Start at: UseMoreOpcodes.
#pragma once

#include "base/status.h"

namespace tessera::bench {

inline constexpr int kMoreOpcodes = 20;

/// Chooses the kernels of the GPU's next launches. REQUIRES: no launch is under way.
Status UseMoreOpcodes(bool more);

struct KernelSize {
  int registers = 0;
  size_t local_bytes = 0;  ///< stack frame and spills of a thread; 0 if everything is in registers
};
Result<KernelSize> SizeOfKernel(bool full, bool more);

}  // namespace tessera::bench
