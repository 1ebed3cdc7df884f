// How the host starts the VM kernel, and the kernels that work on group tables between its launches. No device code:
// g++ compiles what includes this. Private to kernels/. A Start function puts its work into the stream and returns; any
// thread may call it.
//
// Start at: VmKernelFor.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/launch/dp_kernel.h"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

/// The instantiations of the VM kernel, for cudaLaunchKernel. Each is compiled on its own: device/vm_kernel.cu,
/// device/vm_kernel_lean.cu and so on.
const void* FullVmKernel();
const void* LeanVmKernel();
const void* StarVmKernel();
const void* PairsVmKernel();
const void* QueueVmKernel();
const void* SelectVmKernel();
const void* SelectFullVmKernel();
const void* StatesVmKernel();

inline const void* VmKernelFor(Variant variant) {
  switch (variant) {
    case Variant::kLean:
      return LeanVmKernel();
    case Variant::kStar:
      return StarVmKernel();
    case Variant::kPairs:
      return PairsVmKernel();
    case Variant::kQueue:
      return QueueVmKernel();
    case Variant::kSelect:
      return SelectVmKernel();
    case Variant::kSelectFull:
      return SelectFullVmKernel();
    case Variant::kStates:
      return StatesVmKernel();
    case Variant::kDpPairs:
    case Variant::kDp:
      return DpVmKernel(variant);
    case Variant::kFull:
      break;
  }
  return FullVmKernel();
}

/// For launches whose direct groups are in device memory, where `launch.groups.states` and `touched` are theirs: clears
/// them before the launch, and enters them into the table after it.
cudaError_t StartClearDirectGroups(const Launch& launch, cudaStream_t stream);
cudaError_t StartEnterDirectGroups(const Launch& launch, const DeviceGroups& table, cudaStream_t stream);
/// The latter for a table without groups, which needs no slots: writes those with numbers from `begin` to `end` after
/// each other, about in their order.
cudaError_t StartListDirectGroups(const Launch& launch, const DeviceGroups& table, uint32_t begin, uint32_t end,
                                  cudaStream_t stream);
/// Adds how many have a row to *count.
cudaError_t StartCountDirectGroups(const Launch& launch, uint32_t* count, cudaStream_t stream);

/// Enters the first `groups` groups of a table, whose records are in place, into its cleared slots.
cudaError_t StartRehash(const DeviceGroups& table, uint32_t groups, cudaStream_t stream);

/// Carries what the low halves of integer sums have collected over to the high halves. Needed once in 2^32 rows.
/// `sums`: state words of SumI (two each) and, from `first_wide` on, of SumW (four each).
cudaError_t StartNormalise(const DeviceGroups& table, uint32_t groups, const uint32_t* sums, uint32_t count,
                           uint32_t first_wide, cudaStream_t stream);

/// Writes the numbers of those of the first `groups` groups that no test leaves out to `list`, in any order, and adds
/// how many they are to *count. REQUIRES: `list` has room for all.
cudaError_t StartListGroups(const DeviceGroups& table, uint32_t groups, const GroupTests& tests, uint32_t* list,
                            uint32_t* count, cudaStream_t stream);
/// Copies the records and the states of the `listed` groups of a list.
cudaError_t StartGatherGroups(const DeviceGroups& table, const uint32_t* list, uint32_t listed, uint64_t* records,
                              uint64_t* states, cudaStream_t stream);
/// Writes values of the first `groups` groups to columns, a row for each group. *overflow, 0 before, becomes 1 if a sum
/// does not fit 128 bits.
cudaError_t StartWriteGroups(const DeviceGroups& table, uint32_t groups, const GroupColumns& columns,
                             uint32_t* overflow, cudaStream_t stream);

}  // namespace tessera::kernels
