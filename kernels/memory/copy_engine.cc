#include "kernels/memory/copy_engine.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "base/background_thread.h"
#include "base/exception_status.h"
#include "tablet/files/file_mapping.h"

namespace tessera::kernels {

void CopyEngine::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  more_.notify_all();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

bool CopyEngine::SetTransfer(Transfer transfer, uint64_t piece_bytes) {
  if (piece_bytes == 0) piece_bytes = kTransferPiece;
  piece_bytes = std::clamp(piece_bytes, kLeastTransferPiece, kGreatestTransferPiece) / 4096 * 4096;
  if (transfer == transfer_ && piece_bytes == piece_bytes_) return false;
  transfer_ = transfer;
  piece_bytes_ = piece_bytes;
  return true;
}

bool CopyEngine::IsLinkIdle() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!parts_.empty()) return false;
  }
  const cudaError_t state = cudaStreamQuery(streams_.copy);
  if (state != cudaErrorNotReady) IgnoreError(state);
  return state != cudaErrorNotReady;
}

void CopyEngine::SetPartBytes(int threads, Copies* copies) {
  // Less while nothing waits to be copied: the link idles until the first part is in pinned memory, which takes a thread a
  // millisecond for 4 MiB.
  const bool smaller = MaySpread(threads) && piece_bytes_ >= 4 * kLeastTransferPiece && IsLinkIdle();
  copies->part_bytes = smaller ? piece_bytes_ / 4 : piece_bytes_;
  copies->direct_part_bytes = piece_bytes_ == kTransferPiece ? kDirectPart : piece_bytes_;
}

// ---- One part

void CopyEngine::Gather(const CopyWay& way, uint8_t* to) {
  memcpy(to, way.from, way.bytes);
  memset(to + way.bytes, 0, way.padded - way.bytes);
}

Status CopyEngine::CopyOut(const std::vector<CopyWay>& ways, const uint8_t* buffer) {
  std::vector<void*> to;
  std::vector<const void*> from;
  std::vector<size_t> bytes;
  for (const CopyWay& way : ways) {
    if (buffer != nullptr && way.joins && !bytes.empty()) {
      bytes.back() += way.padded;
    } else {
      to.push_back(way.to);
      from.push_back(buffer != nullptr ? buffer : way.from);
      bytes.push_back(way.padded);
    }
    if (buffer != nullptr) buffer += way.padded;
  }
  if (to.size() == 1) {
    CUDA_TRY(cudaMemcpyAsync(to[0], from[0], bytes[0], cudaMemcpyHostToDevice, streams_.copy));
    return Status::Ok();
  }
  // One call: each copy of its own would leave the link idle for a moment (pieces of 1 MiB: 47 GB/s, of a batch 53).
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
  CUDA_TRY(
      cudaMemcpyBatchAsync(to.data(), from.data(), bytes.data(), to.size(), &attributes, &first, 1, streams_.copy));
  return Status::Ok();
}

Status CopyEngine::Copy(const CopyPart& part, Staging* staging) {
  if (part.route == CopyRoute::kToHost) {
    for (const CopyWay& way : part.ways) Gather(way, way.to);
    return Status::Ok();
  }
  if (part.route == CopyRoute::kDirect) return CopyOut(part.ways, nullptr);
  if (transfer_ == Transfer::kPageable) {
    for (const CopyWay& way : part.ways) {
      CUDA_TRY(cudaMemcpyAsync(way.to, way.from, way.bytes, cudaMemcpyHostToDevice, streams_.copy));
      CUDA_TRY(cudaMemsetAsync(way.to + way.bytes, 0, way.padded - way.bytes, streams_.copy));
    }
    return Status::Ok();
  }
  const size_t i = staging->next++ % kBuffersEach;
  PinnedBuffer& buffer = staging->buffers[i];
  TESSERA_TRY(buffer.Reserve(piece_bytes_));
  if (staging->free[i] == nullptr) CUDA_TRY(cudaEventCreateWithFlags(&staging->free[i], cudaEventDisableTiming));
  CUDA_TRY(cudaEventSynchronize(staging->free[i]));
  uint8_t* at = buffer.As<uint8_t>();
  for (const CopyWay& way : part.ways) {
    Gather(way, at);
    at += way.padded;
  }
  TESSERA_TRY(CopyOut(part.ways, buffer.As<uint8_t>()));
  CUDA_TRY(cudaEventRecord(staging->free[i], streams_.copy));
  if (transfer_ == Transfer::kSync) CUDA_TRY(cudaStreamSynchronize(streams_.copy));
  return Status::Ok();
}

// ---- The last part of some copies

Status CopyEngine::RecordDone(Copies* copies) {
  CUDA_TRY(cudaEventRecord(copies->done, streams_.copy));
  if (copies->arriving.unpackings.empty()) return Status::Ok();
  // On a stream of its own, so that the next copies do not wait. One batch after the other: they share scratch memory.
  std::lock_guard<std::mutex> one(unpacking_);
  CUDA_TRY(cudaStreamWaitEvent(streams_.unpack, copies->done, 0));
  TESSERA_TRY(Unpack(copies));
  CUDA_TRY(cudaEventRecord(copies->done, streams_.unpack));
  return Status::Ok();
}

Status CopyEngine::Unpack(Copies* copies) {
  // Zeros in the place of a file's bytes may be numbers after the end of a dictionary. (The host has not read what was
  // copied from pinned pages.)
  for (const std::span<const uint8_t> mapping : copies->mappings) TouchLast(mapping);
  if (FileMapping::any_lost()) {
    return {ErrorCode::kCorrupt, "a tablet file became shorter while it was read, or the disk cannot read it",
            "Restore the file from a copy, or load the table anew from its source."};
  }
  return Arrivals::Start(streams_.unpack, &copies->arriving);
}

void CopyEngine::NoteIssued(std::unique_lock<std::mutex>* lock, Copies* copies, const Status& status) {
  if (copies->error.ok()) copies->error = status;
  if (copies->left > 1) {
    --copies->left;
    return;
  }
  // The last one: no other thread touches these copies until `left` is 0, so others may copy while kernels are started.
  if (copies->error.ok()) {
    lock->unlock();
    const Status done = Caught([&] { return RecordDone(copies); });
    lock->lock();
    copies->error = done;
  }
  copies->left = 0;
  const auto now = Clock::now();
  copies->milliseconds =
      std::chrono::duration<double, std::milli>(now - std::max(copies->started, last_issued_)).count();
  last_issued_ = now;
  issued_.notify_all();
}

// ---- Threads

void CopyEngine::CopyParts(Staging* staging) {
  const auto set_device = [&]() -> Status {
    CUDA_TRY(cudaSetDevice(device_));
    return Status::Ok();
  };
  const Status device = set_device();
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    more_.wait(lock, [&] { return stop_ || !parts_.empty(); });
    if (stop_) return;
    const CopyPart part = std::move(parts_.front());
    parts_.pop_front();
    Status status = device;
    if (status.ok() && part.copies->error.ok()) {
      lock.unlock();
      try {
        status = Copy(part, staging);
      } catch (...) {  // what waits for the part must learn of it
        status = StatusOfException();
      }
      lock.lock();
    }
    NoteIssued(&lock, part.copies.get(), status);
  }
}

void CopyEngine::StartThreads(size_t wanted) {
  threads_.reserve(wanted);
  while (threads_.size() < wanted) {
    Staging* staging = &staging_.emplace_back();
    std::thread thread;
    // If the system refuses, those that there are copy, or the caller.
    if (!StartThread(&thread, &CopyEngine::CopyParts, this, staging).ok()) return;
    threads_.push_back(std::move(thread));
  }
}

bool CopyEngine::Queue(int threads, std::vector<CopyPart>* parts) {
  StartThreads(std::min(kMostThreads, static_cast<size_t>(threads)));
  if (threads_.empty()) return false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    parts_.insert(parts_.end(), std::move_iterator(parts->begin()), std::move_iterator(parts->end()));  // all or none
  }
  more_.notify_all();
  return true;
}

void CopyEngine::CopyHere(const std::vector<CopyPart>& parts) {
  Status status;
  for (const CopyPart& part : parts) {
    if (status.ok()) status = Caught([&] { return Copy(part, &own_); });  // what waits for it must learn of it
    std::unique_lock<std::mutex> lock(mutex_);
    NoteIssued(&lock, part.copies.get(), status);
  }
}

bool CopyEngine::AreIssued(const CopiesList& list) {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::all_of(list.begin(), list.end(), [](const auto& c) { return c->left == 0; });
}

void CopyEngine::WaitUntilIssued(Copies* copies) {
  std::unique_lock<std::mutex> lock(mutex_);
  issued_.wait(lock, [&] { return copies->left == 0; });
}

void CopyEngine::Withdraw(const std::shared_ptr<Copies>& copies) {
  std::unique_lock<std::mutex> lock(mutex_);
  const size_t left = std::erase_if(parts_, [&](const CopyPart& part) { return part.copies == copies; });
  if (left > 0) copies->error = Cancelled();
  copies->left -= left;
  issued_.wait(lock, [&] { return copies->left == 0; });
}

}  // namespace tessera::kernels
