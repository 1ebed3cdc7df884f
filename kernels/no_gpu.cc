// Stands in for the kernels in a build without the CUDA toolkit.

#include "kernels/kernels.h"

namespace tessera {

class Gpu::Impl {};

namespace {
Status NoCuda() { return {ErrorCode::kDevice, "this build has no CUDA kernels", "Install the CUDA toolkit and build again with `make`."}; }
}  // namespace

int GpuCount() { return 0; }
Result<std::unique_ptr<Gpu>> Gpu::Open(int, const GpuOptions&) { return NoCuda(); }
Gpu::Gpu() = default;
Gpu::~Gpu() = default;
std::string Gpu::Description() const { return "no GPU"; }
std::string Gpu::MemoryDescription() const { return "no GPU"; }
Status Gpu::CanRun(const vm::Program&, int) const { return NoCuda(); }
Result<vm::RowSet> Gpu::RunSection(const vm::SectionContext&) { return NoCuda(); }

}  // namespace tessera
