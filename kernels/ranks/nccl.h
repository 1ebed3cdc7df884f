// NCCL, loaded at run time: a machine without it needs none, and only ranks with GPUs take the time. Private to kernels/.
//
// Start at: LoadNccl. Any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace tessera::kernels {

// What NCCL's own header says of these; they have been the same since version 2.7.
struct NcclComm;
struct NcclId {
  char bytes[128];
};
enum NcclResult : int { kNcclSuccess = 0, kNcclInProgress = 7 };
inline constexpr int kNcclBytes = 0;  ///< ncclInt8

struct Nccl {
  int (*ncclGetVersion)(int* version);
  int (*ncclGetUniqueId)(NcclId* id);
  int (*ncclCommInitRank)(NcclComm** comm, int ranks, NcclId id, int rank);
  int (*ncclCommAbort)(NcclComm* comm);
  int (*ncclCommGetAsyncError)(NcclComm* comm, int* error);
  int (*ncclGroupStart)();
  int (*ncclGroupEnd)();
  int (*ncclSend)(const void* from, size_t count, int type, int to, NcclComm* comm, cudaStream_t stream);
  int (*ncclRecv)(void* to, size_t count, int type, int from, NcclComm* comm, cudaStream_t stream);
  const char* (*ncclGetErrorString)(int result);
};

/// The library, or nullptr. It is looked for as libnccl.so.2, and where Python has it (the package nvidia-nccl-cu13);
/// TESSERA_NCCL is a path to it, or "off". `why_not`: why there is none.
const Nccl* LoadNccl(std::string* why_not);

}  // namespace tessera::kernels
