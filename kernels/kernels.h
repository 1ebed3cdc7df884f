// A GPU as a backend of the VM: the public header of kernels/, plain C++. README.md beside this describes the machine.
//
// In a build without the CUDA toolkit no_gpu.cc stands in: there are no GPUs and Open says why. Start at: Gpu::Open.
// Threads: one at a time per Gpu; the cancel flag of a context may be set from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "vm/vm.h"

namespace tessera {

struct GpuOptions {
  uint64_t memory_bytes = 0;  ///< for cached chunks, group tables and output; 0: most of what the device has free
};

/// GPUs that this process can use. 0 if there is no driver; no CUDA context is made.
int GpuCount();

class Gpu final : public vm::SectionBackend {
 public:
  /// Makes a CUDA context on device `ordinal`, which takes some hundred milliseconds. Errors: kDevice.
  static Result<std::unique_ptr<Gpu>> Open(int ordinal, const GpuOptions& options);
  ~Gpu() override;

  /// "NVIDIA H100 80GB HBM3 (0), 79.1 GiB"
  std::string Description() const;
  /// One line on the memory: budget, cached chunks, free on the device.
  std::string MemoryDescription() const;

  Status CanRun(const vm::Program& program, int section) const override;
  Result<vm::RowSet> RunSection(const vm::SectionContext& context) override;

 private:
  Gpu();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
