// The ways between the GPUs of the ranks: NCCL where all ranks have it and a GPU each of their own, else pinned memory of
// the host and the ranks' messages. Private to kernels/.
//
// Start at: RankLinks::Move. REQUIRES, of all functions: the device's mutex is held; all ranks call them together.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/cuda_memory.h"
#include "kernels/ranks/nccl.h"
#include "vm/shares/exchange.h"

namespace tessera::kernels {

/// Bytes in device memory.
struct DeviceBytes {
  void* data = nullptr;
  uint64_t bytes = 0;
};

class RankLinks {
 public:
  RankLinks() = default;
  ~RankLinks();
  RankLinks(const RankLinks&) = delete;
  RankLinks& operator=(const RankLinks&) = delete;

  /// Whether a way was chosen. A rank may have opened its device anew, or be the only one that knows that NCCL has failed.
  bool is_connected() const { return !name_.empty(); }
  /// Decides which way is taken: to be called if some rank is not connected. `ordinal`: of the device, which is current.
  Status Connect(int ordinal, vm::Exchange* exchange);
  /// "NCCL 2.27.3", or "MPI" with the reason; empty before Connect, and once NCCL has failed.
  const std::string& name() const { return name_; }

  /// Agrees that all ranks can move bytes. `mine`: an error of this rank, which then is that of all. REQUIRES: connected,
  /// right before Move.
  Status Agree(Status mine, vm::Exchange* exchange);
  /// outgoing[r], one after the other, goes to rank r, and incoming[r] comes from there: as many pieces of as many bytes as
  /// that rank sends. Work on `stream` before the call comes before the bytes leave; when it returns, they have come. An
  /// error is this rank's; the bytes that came are worth nothing then, but no rank waits.
  Status Move(const std::vector<std::vector<DeviceBytes>>& outgoing,
              const std::vector<std::vector<DeviceBytes>>& incoming, vm::Exchange* exchange, cudaStream_t stream);

 private:
  Status MoveByNccl(const std::vector<std::vector<DeviceBytes>>& outgoing,
                    const std::vector<std::vector<DeviceBytes>>& incoming, vm::Exchange* exchange, cudaStream_t stream);
  Status Start(const std::vector<std::vector<DeviceBytes>>& outgoing,
               const std::vector<std::vector<DeviceBytes>>& incoming, int own, cudaStream_t stream);
  Status Wait(vm::Exchange* exchange, cudaStream_t stream);
  Status Failed(const char* call, int result);
  /// Leaves NCCL, until the next Connect.
  void GiveUp();

  const Nccl* nccl_ = nullptr;
  NcclComm* comm_ = nullptr;  ///< nullptr: messages are the way
  std::string name_;
  PinnedBuffer pieces_;  ///< of messages
};

}  // namespace tessera::kernels
