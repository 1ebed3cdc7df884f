#include "kernels/ranks/rank_links.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/phase_clock.h"
#include "vm/shares/tell_ranks.h"

namespace tessera::kernels {
namespace {

/// What ranks tell each other before they choose a way. Ranks that share a device have no use for NCCL, which refuses that.
struct Introduction {
  cudaUUID_t device = {};
  uint32_t has_nccl = 0;
  NcclId id = {};  ///< rank 0's counts
};

/// How long a rank waits for NCCL once another one has stopped the program: it may have failed before it took part.
constexpr std::chrono::seconds kPatience(2);

uint64_t Total(const std::vector<DeviceBytes>& pieces) {
  uint64_t bytes = 0;
  for (const DeviceBytes& p : pieces) bytes += p.bytes;
  return bytes;
}

/// Bytes between device memory and pieces in pinned memory that travel as messages.
class PinnedPieces final : public vm::ByteMover {
 public:
  PinnedPieces(const std::vector<std::vector<DeviceBytes>>& outgoing,
               const std::vector<std::vector<DeviceBytes>>& incoming, uint8_t* pinned, cudaStream_t stream)
      : outgoing_(outgoing), incoming_(incoming), pinned_(pinned), stream_(stream) {}
  /// Bytes of pinned memory for that many ranks.
  static size_t Bytes(size_t ranks) { return 2 * ranks * kUnderWay * kPieceBytes; }

  const void* Outgoing(int to, uint64_t at, size_t bytes) override {
    uint8_t* const piece = PieceOf(static_cast<size_t>(to), at);
    Copy(outgoing_[static_cast<size_t>(to)], at, bytes, piece, cudaMemcpyDeviceToHost);
    return piece;
  }
  void* Room(int from, uint64_t at, size_t) override {
    return PieceOf(outgoing_.size() + static_cast<size_t>(from), at);
  }
  void Arrived(int from, uint64_t at, size_t bytes) override {
    uint8_t* const piece = PieceOf(outgoing_.size() + static_cast<size_t>(from), at);
    Copy(incoming_[static_cast<size_t>(from)], at, bytes, piece, cudaMemcpyHostToDevice);
  }
  const Status& status() const { return status_; }

 private:
  uint8_t* PieceOf(size_t stream, uint64_t at) const {
    return pinned_ + (stream * kUnderWay + at / kPieceBytes % kUnderWay) * kPieceBytes;
  }
  /// Between a piece and the bytes [at, at + bytes) of those in device memory.
  void Copy(const std::vector<DeviceBytes>& device, uint64_t at, size_t bytes, uint8_t* piece, cudaMemcpyKind kind) {
    if (!status_.ok()) return;
    status_ = CopyAll(device, at, bytes, piece, kind);
  }
  Status CopyAll(const std::vector<DeviceBytes>& device, uint64_t at, size_t bytes, uint8_t* piece,
                 cudaMemcpyKind kind) {
    for (const DeviceBytes& part : device) {
      if (bytes == 0) break;
      if (at >= part.bytes) {
        at -= part.bytes;
        continue;
      }
      const uint64_t count = std::min<uint64_t>(bytes, part.bytes - at);
      uint8_t* const there = static_cast<uint8_t*>(part.data) + at;
      const bool leaves = kind == cudaMemcpyDeviceToHost;
      CUDA_TRY(cudaMemcpyAsync(leaves ? piece : there, leaves ? there : piece, count, kind, stream_));
      piece += count;
      bytes -= count;
      at = 0;
    }
    CUDA_TRY(cudaStreamSynchronize(stream_));
    return Status::Ok();
  }

  const std::vector<std::vector<DeviceBytes>>& outgoing_;
  const std::vector<std::vector<DeviceBytes>>& incoming_;
  uint8_t* const pinned_;
  const cudaStream_t stream_;
  Status status_;
};

}  // namespace

RankLinks::~RankLinks() { GiveUp(); }

void RankLinks::GiveUp() {
  // (ncclCommDestroy waits for the other ranks, which may be gone.)
  if (comm_ != nullptr) (void)nccl_->ncclCommAbort(comm_);
  comm_ = nullptr;
  name_.clear();
}

Status RankLinks::Connect(int ordinal, vm::Exchange* exchange) {
  const PhaseScope phase(Phase::kExchange);
  GiveUp();
  Introduction own;
  cudaDeviceProp properties;
  std::string why_not;
  nccl_ = LoadNccl(&why_not);
  if (cudaGetDeviceProperties(&properties, ordinal) == cudaSuccess) {
    own.device = properties.uuid;
  } else {
    nccl_ = nullptr;
  }
  if (nccl_ != nullptr && exchange->rank() == 0 && nccl_->ncclGetUniqueId(&own.id) != kNcclSuccess) nccl_ = nullptr;
  own.has_nccl = nccl_ != nullptr ? 1 : 0;
  TESSERA_ASSIGN(const std::vector<Introduction> ranks, vm::TellRanks(exchange, Status::Ok(), own));
  bool all_have = true, apart = true;
  for (size_t r = 0; r < ranks.size(); ++r) {
    all_have = all_have && ranks[r].has_nccl != 0;
    for (size_t other = 0; other < r; ++other) {
      apart = apart && memcmp(&ranks[r].device, &ranks[other].device, sizeof own.device) != 0;
    }
  }
  if (all_have && apart) {
    const int result = nccl_->ncclCommInitRank(&comm_, exchange->ranks(), ranks[0].id, exchange->rank());
    if (result != kNcclSuccess) {
      comm_ = nullptr;
      why_not = nccl_->ncclGetErrorString(result);
    }
    TESSERA_ASSIGN(const uint64_t connected, exchange->Sum(comm_ != nullptr ? 1 : 0));
    if (connected != static_cast<uint64_t>(exchange->ranks())) GiveUp();
    if (comm_ == nullptr && why_not.empty()) why_not = "another rank could not connect";
  } else {
    why_not = !apart ? "ranks share a GPU" : why_not.empty() ? "a rank has no NCCL" : why_not;
  }
  int version = 0;
  if (comm_ != nullptr && nccl_->ncclGetVersion(&version) == kNcclSuccess) {
    name_ = "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
            std::to_string(version % 100);
  } else {
    name_ = comm_ != nullptr ? "NCCL" : "MPI (" + why_not + ")";
  }
  return Status::Ok();
}

Status RankLinks::Move(const std::vector<std::vector<DeviceBytes>>& outgoing,
                       const std::vector<std::vector<DeviceBytes>>& incoming, vm::Exchange* exchange,
                       cudaStream_t stream) {
  if (comm_ != nullptr) return MoveByNccl(outgoing, incoming, exchange, stream);
  std::vector<uint64_t> sent, received;
  for (const auto& pieces : outgoing) sent.push_back(Total(pieces));
  for (const auto& pieces : incoming) received.push_back(Total(pieces));
  PinnedPieces pieces(outgoing, incoming, pieces_.As<uint8_t>(), stream);
  exchange->MoveBytes(sent, received, &pieces);
  return pieces.status();
}

Status RankLinks::Agree(Status mine, vm::Exchange* exchange) {
  if (comm_ == nullptr && mine.ok())
    mine = pieces_.Reserve(PinnedPieces::Bytes(static_cast<size_t>(exchange->ranks())));
  return exchange->Agree(mine);
}

Status RankLinks::Failed(const char* call, int result) {
  return {ErrorCode::kDevice, std::string(call) + " failed: " + nccl_->ncclGetErrorString(result),
          "TESSERA_NCCL=off exchanges over MPI instead."};
}

#define NCCL_TRY(call)                                                                           \
  do {                                                                                           \
    if (const int result_ = nccl_->call; result_ != kNcclSuccess) return Failed(#call, result_); \
  } while (0)

Status RankLinks::MoveByNccl(const std::vector<std::vector<DeviceBytes>>& outgoing,
                             const std::vector<std::vector<DeviceBytes>>& incoming, vm::Exchange* exchange,
                             cudaStream_t stream) {
  const PhaseScope phase(Phase::kExchange);
  Status status = Start(outgoing, incoming, exchange->rank(), stream);
  if (status.ok()) status = Wait(exchange, stream);
  if (status.ok()) return status;
  // The other ranks may wait for what this one has not sent.
  exchange->Stop();
  GiveUp();
  return status;
}

Status RankLinks::Start(const std::vector<std::vector<DeviceBytes>>& outgoing,
                        const std::vector<std::vector<DeviceBytes>>& incoming, int own, cudaStream_t stream) {
  NCCL_TRY(ncclGroupStart());
  for (int r = 0; r < static_cast<int>(outgoing.size()); ++r) {
    if (r == own) continue;
    const auto& to = outgoing[static_cast<size_t>(r)];
    const auto& from = incoming[static_cast<size_t>(r)];
    for (const DeviceBytes& p : to) {
      if (p.bytes > 0) NCCL_TRY(ncclSend(p.data, p.bytes, kNcclBytes, r, comm_, stream));
    }
    for (const DeviceBytes& p : from) {
      if (p.bytes > 0) NCCL_TRY(ncclRecv(p.data, p.bytes, kNcclBytes, r, comm_, stream));
    }
    CountSent(r, Total(to));
    CountReceived(r, Total(from));
  }
  NCCL_TRY(ncclGroupEnd());
  return Status::Ok();
}

#undef NCCL_TRY

Status RankLinks::Wait(vm::Exchange* exchange, cudaStream_t stream) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point stopped = Clock::time_point::max();
  for (auto pause = std::chrono::microseconds(0);;
       pause = std::min(pause + std::chrono::microseconds(1), std::chrono::microseconds(50))) {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state == cudaSuccess) return Status::Ok();
    if (state != cudaErrorNotReady) return CudaStatus(state, "cudaStreamQuery", __FILE__, __LINE__);
    int error = kNcclSuccess;
    if (nccl_->ncclCommGetAsyncError(comm_, &error) != kNcclSuccess ||
        (error != kNcclSuccess && error != kNcclInProgress))
      return Failed("an exchange between GPUs", error);
    if (stopped == Clock::time_point::max() && exchange->Stopped()) stopped = Clock::now();
    if (stopped != Clock::time_point::max() && Clock::now() - stopped > kPatience)
      return {ErrorCode::kCancelled, "another rank failed"};
    if (pause.count() > 20) std::this_thread::sleep_for(pause);
  }
}

}  // namespace tessera::kernels
