// The numbers of the rows of a rank's share.

#include "kernels/ranks/share_rows.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;

__global__ void ListShare(const __grid_constant__ vm::SourceShare share, uint32_t* order) {
  const uint64_t i = uint64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < share.rows) order[i] = static_cast<uint32_t>(share.At(i));
}

}  // namespace

cudaError_t StartListShare(const vm::SourceShare& share, uint32_t* order, cudaStream_t stream) {
  if (share.rows == 0) return cudaSuccess;
  ListShare<<<static_cast<uint32_t>((share.rows + kBlock - 1) / kBlock), kBlock, 0, stream>>>(share, order);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
