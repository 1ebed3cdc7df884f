// The kernels of opcode_kernels.h with more opcodes. They are in another namespace; otherwise the linker would take
// them for the kernels as they are.

#include <cuda_runtime.h>

#include <type_traits>

#include "bench/opcode_kernels.h"
#include "vm/meaning/meaning.h"

namespace tessera::bench {

/// Operations on two integers that no opcode has. All differ, so that the compiler cannot merge two cases.
template <int N>
struct More {
  using Type = int64_t;
  static TESSERA_HD int64_t Apply(int64_t a, int64_t b, vm::Lane&) {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    const uint32_t shift = static_cast<uint32_t>(y) & 63;
    uint64_t r = 0;
    if constexpr (N == 0) r = x & y;
    if constexpr (N == 1) r = x | y;
    if constexpr (N == 2) r = x ^ y;
    if constexpr (N == 3) r = x & ~y;
    if constexpr (N == 4) r = x | ~y;
    if constexpr (N == 5) r = ~(x ^ y);
    if constexpr (N == 6) r = x << shift;
    if constexpr (N == 7) r = x >> shift;
    if constexpr (N == 8) r = static_cast<uint64_t>(a >> shift);
    if constexpr (N == 9) r = x << shift | x >> (64 - shift & 63);
    if constexpr (N == 10) r = a < b ? x : y;
    if constexpr (N == 11) r = a > b ? x : y;
    if constexpr (N == 12) r = a > b ? x - y : y - x;
    if constexpr (N == 13) r = (x & y) + ((x ^ y) >> 1);
    if constexpr (N == 14) r = x * y + x;
    if constexpr (N == 15) r = x * y - y;
    if constexpr (N == 16) r = x + (y << 1);
    if constexpr (N == 17) r = x - (y << 2);
    if constexpr (N == 18) r = a < 0 ? x - y : x + y;
    if constexpr (N == 19) r = b < 0 ? 0 - x : x;
    static_assert(N < kMoreOpcodes);
    return static_cast<int64_t>(r);
  }
};

}  // namespace tessera::bench

#define MORE_CASE(N)                                           \
  case static_cast<Op>(static_cast<uint16_t>(Op::kCount) + N): \
    DoBinary<bench::More<N>>(in, b);                           \
    break;
// clang-format off
#define TESSERA_MORE_CASES                                                                   \
  MORE_CASE(0) MORE_CASE(1) MORE_CASE(2) MORE_CASE(3) MORE_CASE(4) MORE_CASE(5) MORE_CASE(6) \
  MORE_CASE(7) MORE_CASE(8) MORE_CASE(9) MORE_CASE(10) MORE_CASE(11) MORE_CASE(12)           \
  MORE_CASE(13) MORE_CASE(14) MORE_CASE(15) MORE_CASE(16) MORE_CASE(17) MORE_CASE(18)        \
  MORE_CASE(19)
// clang-format on
#define kernels kernels_with_more_opcodes

#include "kernels/device/vm_kernel.cuh"

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kLean>(const __grid_constant__ Launch launch);
template __global__ void VmKernel<Variant::kFull>(const __grid_constant__ Launch launch);

}  // namespace tessera::kernels

namespace tessera::bench {

const void* LeanVmKernelWithMoreOpcodes() {
  return reinterpret_cast<const void*>(&kernels::VmKernel<kernels::Variant::kLean>);
}
const void* FullVmKernelWithMoreOpcodes() {
  return reinterpret_cast<const void*>(&kernels::VmKernel<kernels::Variant::kFull>);
}

}  // namespace tessera::bench
