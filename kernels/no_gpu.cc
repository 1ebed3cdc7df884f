// kernels.h where there is no CUDA toolkit to build the kernels with.

#include "kernels/kernels.h"

namespace tessera {

int GpuCount() { return 0; }

uint64_t GpuMemoryBytes() { return 0; }

Result<std::unique_ptr<Gpu>> Gpu::Open(int, const GpuOptions&) {
  return Unsupported("this Tessera was built without CUDA", -1,
                     "Install the CUDA toolkit, build again, or use --device host.");
}

}  // namespace tessera
