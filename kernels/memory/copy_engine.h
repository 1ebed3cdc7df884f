// Copies columns to the device: through pinned buffers that threads fill, or straight from pinned pages. When the last part
// of some copies is on its way, the kernels that unpack what came are put after it. Private to kernels/memory/.
//
// Start at: CopyEngine::Queue, WaitUntilIssued. One owner at a time; its threads are its own.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kernels/cuda/cuda_memory.h"
#include "kernels/kernels.h"
#include "kernels/memory/copy_parts.h"
#include "kernels/memory/copy_streams.h"

namespace tessera::kernels {

class CopyEngine {
 public:
  explicit CopyEngine(const CopyStreams& streams) : streams_(streams) {}
  ~CopyEngine() { Stop(); }
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  void Open(int device) { device_ = device; }
  /// How columns come, and bytes of a part (0: kTransferPiece). Whether that has changed. REQUIRES: no copies are under
  /// way.
  bool SetTransfer(Transfer transfer, uint64_t piece_bytes);
  Transfer transfer() const { return transfer_; }
  /// Whether copies are made by up to `threads` threads, in any order.
  bool MaySpread(int threads) const {
    return threads > 1 && transfer_ != Transfer::kSync && transfer_ != Transfer::kPageable;
  }
  bool IsLinkIdle();
  /// Sets how large the parts of copies that begin now are.
  void SetPartBytes(int threads, Copies* copies);

  /// Hands the parts to up to `threads` threads, which are started if need be: all or none. false: there are no threads.
  bool Queue(int threads, std::vector<CopyPart>* parts);
  /// Copies them on this thread. Errors become those of the copies.
  void CopyHere(const std::vector<CopyPart>& parts);
  /// Whether no thread touches any of them any more.
  bool AreIssued(const CopiesList& list);
  /// Until no thread touches these copies any more: all of them are on their way or were given up.
  void WaitUntilIssued(Copies* copies);
  /// The same after those that were not begun are taken back, which makes them cancelled.
  void Withdraw(const std::shared_ptr<Copies>& copies);
  /// Ends the threads.
  void Stop();

 private:
  static constexpr size_t kMostThreads = 12, kBuffersEach = 2;
  /// Bytes of a part of pinned pages, if it was not said how large pieces shall be.
  static constexpr uint64_t kDirectPart = uint64_t{16} << 20;

  /// Pinned memory of a thread that copies, used one after the other; `free` comes when a copy has left the buffer.
  struct Staging {
    Staging() = default;
    ~Staging() {
      for (cudaEvent_t e : free) {
        if (e != nullptr) IgnoreError(cudaEventDestroy(e));
      }
    }
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    std::array<PinnedBuffer, kBuffersEach> buffers;
    std::array<cudaEvent_t, kBuffersEach> free = {};
    size_t next = 0;
  };

  static void Gather(const CopyWay& way, uint8_t* to);
  /// Starts the copies. `buffer`: in which they lie one after the other; nullptr: where they come from is pinned.
  Status CopyOut(const std::vector<CopyWay>& ways, const uint8_t* buffer);
  Status Copy(const CopyPart& part, Staging* staging);
  /// Records that the copies are there, or unpacked, once that is so on the device.
  Status RecordDone(Copies* copies);
  Status Unpack(Copies* copies);
  /// What a thread does until the end.
  void CopyParts(Staging* staging);
  void StartThreads(size_t wanted);
  /// One of the copies is on its way, or has failed. REQUIRES: `lock` holds mutex_.
  void NoteIssued(std::unique_lock<std::mutex>* lock, Copies* copies, const Status& status);

  const CopyStreams& streams_;
  int device_ = 0;
  Transfer transfer_ = Transfer::kStream;
  uint64_t piece_bytes_ = kTransferPiece;
  Staging own_;  // of the caller
  std::vector<std::thread> threads_;
  std::deque<Staging> staging_;  // of the threads
  std::mutex unpacking_;         // held while the kernels of a batch are put on the stream that unpacks
  std::mutex mutex_;             // of what follows, and of all Copies
  std::condition_variable more_, issued_;
  std::deque<CopyPart> parts_;  // to be copied
  Clock::time_point last_issued_ = {};
  bool stop_ = false;
};

}  // namespace tessera::kernels
