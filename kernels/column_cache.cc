#include "kernels/column_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

namespace tessera::kernels {

ColumnCache::~ColumnCache() {
  for (Piece& p : pieces_) cudaFreeAsync(p.data, stream_);
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  for (cudaEvent_t e : staging_free_) {
    if (e != nullptr) cudaEventDestroy(e);
  }
  if (done_ != nullptr) cudaEventDestroy(done_);
  if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

Status ColumnCache::Open(uint64_t budget_bytes) {
  whole_budget_ = budget_ = budget_bytes;
  CUDA_TRY(cudaGetDevice(&device_));
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = device_;
  CUDA_TRY(cudaMemPoolCreate(&pool_, &props));
  uint64_t keep = UINT64_MAX;  // what is freed stays with the pool
  CUDA_TRY(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
  CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  CUDA_TRY(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
  for (cudaEvent_t& e : staging_free_) CUDA_TRY(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  return Status::Ok();
}

Status ColumnCache::Drop(std::list<Piece>::iterator piece) {
  CUDA_TRY(cudaFreeAsync(piece->data, stream_));
  bytes_ -= piece->bytes;
  if (piece->of != nullptr) piece->of->pieces[piece->place] = nullptr;
  pieces_.erase(piece);
  return Status::Ok();
}

Status ColumnCache::DropAll(TabletPieces* of) {
  for (Piece* p : of->pieces) {
    if (p != nullptr) TESSERA_TRY(Drop(p->self));
  }
  return Status::Ok();
}

Status ColumnCache::MakeRoom(uint64_t bytes) {
  if (bytes_ + claimed_ + bytes <= budget_) return Status::Ok();
  // (A tablet that a launch reads has not expired.)
  for (auto t = tablets_.begin(); t != tablets_.end();) {
    if (!t->second.tablet.expired()) {
      ++t;
      continue;
    }
    TESSERA_TRY(DropAll(&t->second));
    t = tablets_.erase(t);
  }
  for (auto p = pieces_.end(); p != pieces_.begin() && bytes_ + claimed_ + bytes > budget_;) {
    --p;
    if (p->pins != 0) continue;
    auto after = std::next(p);
    TESSERA_TRY(Drop(p));
    p = after;
  }
  return Status::Ok();
}

Status ColumnCache::Copy(size_t s, uint8_t* to, const uint8_t* from, uint64_t bytes, uint64_t padded) {
  TESSERA_TRY(staging_[s].Reserve(kStagingBytes));
  CUDA_TRY(cudaEventSynchronize(staging_free_[s]));
  memcpy(staging_[s].As<uint8_t>(), from, bytes);
  memset(staging_[s].As<uint8_t>() + bytes, 0, padded - bytes);
  CUDA_TRY(cudaMemcpyAsync(to, staging_[s].As<uint8_t>(), padded, cudaMemcpyHostToDevice, stream_));
  CUDA_TRY(cudaEventRecord(staging_free_[s], stream_));
  return Status::Ok();
}

Status ColumnCache::CopyPending(vm::ThreadPool* pool) {
  if (pending_.empty()) return Status::Ok();
  struct Part {
    uint8_t* to;
    const uint8_t* from;
    uint64_t bytes, padded;
  };
  std::vector<Part> parts;
  uint64_t total = 0;
  for (const Pending& p : pending_) {
    for (uint64_t at = 0; at < p.piece->bytes; at += kStagingBytes) {
      const uint64_t padded = std::min(kStagingBytes, p.piece->bytes - at);
      parts.push_back({p.piece->data + at, p.from + at, std::min(padded, p.bytes - std::min(at, p.bytes)), padded});
    }
    total += p.piece->bytes;
  }
  size_t workers = 1;
  if (pool != nullptr && total >= kSharedCopy) workers = std::min(kCopiers, static_cast<size_t>(pool->threads()));
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status error;
  auto copy = [&](int worker) {
    Status status;
    if (cudaError_t e = cudaSetDevice(device_); e != cudaSuccess)
      status = CudaStatus(e, "cudaSetDevice", __FILE__, __LINE__);
    const size_t own = static_cast<size_t>(worker) * kBuffersEach;
    for (size_t turn = 0; status.ok(); ++turn) {
      const size_t i = next.fetch_add(1);
      if (i >= parts.size()) return;
      status = Copy(own + turn % kBuffersEach, parts[i].to, parts[i].from, parts[i].bytes, parts[i].padded);
    }
    next = parts.size();
    std::lock_guard<std::mutex> lock(mutex);
    error = status;
  };
  if (workers == 1) {
    copy(0);
  } else {
    pool->Run(static_cast<int>(workers), copy);
  }
  copying_ = true;
  if (!error.ok()) {
    AbandonPending();
    return error;
  }
  pending_.clear();
  return Status::Ok();
}

void ColumnCache::AbandonPending() {
  for (Pending& p : pending_) {
    p.piece->of->pieces[p.piece->place] = nullptr;
    p.piece->of = nullptr;
  }
  pending_.clear();
}

Status ColumnCache::Claim(uint64_t bytes) {
  TESSERA_TRY(MakeRoom(bytes));
  if (bytes_ + claimed_ + bytes > budget_) {
    return {ErrorCode::kResource,
            "the GPU's memory budget of " + std::to_string(budget_) + " bytes has no room for " +
                std::to_string(bytes) + " more",
            "Give --gpu-memory more, or use --device host."};
  }
  claimed_ += bytes;
  return Status::Ok();
}

Result<ColumnCache::TabletPieces*> ColumnCache::Find(const std::shared_ptr<const Tablet>& tablet) {
  auto [found, is_new] = tablets_.try_emplace(tablet.get());
  TabletPieces* of = &found->second;
  if (!is_new && of->tablet.expired()) {
    TESSERA_TRY(DropAll(of));
    is_new = true;
  }
  if (is_new) of->tablet = tablet;
  return of;
}

Result<const uint8_t*> ColumnCache::Fetch(TabletPieces* of, int column, Stream stream, const uint8_t* data,
                                          uint64_t bytes, std::vector<Piece*>* pinned, uint64_t* copied) {
  const size_t place = 2 * static_cast<size_t>(column) + static_cast<size_t>(stream);
  if (place >= of->pieces.size()) of->pieces.resize(place + 1);
  Piece* piece = of->pieces[place];
  if (piece == nullptr) {
    const uint64_t padded = (bytes + 127) / 128 * 128;
    TESSERA_TRY(MakeRoom(padded));
    void* memory = nullptr;
    cudaError_t error = cudaMallocFromPoolAsync(&memory, padded, pool_, stream_);
    if (error == cudaErrorMemoryAllocation) {  // others use the device as well: live with less
      cudaGetLastError();
      budget_ = claimed_ + std::max<uint64_t>(bytes_ / 2, padded);
      TESSERA_TRY(MakeRoom(padded));
      CUDA_TRY(cudaStreamSynchronize(stream_));
      CUDA_TRY(cudaMemPoolTrimTo(pool_, 0));
      error = cudaMallocFromPoolAsync(&memory, padded, pool_, stream_);
    }
    if (error != cudaSuccess) return CudaStatus(error, "cudaMallocFromPoolAsync", __FILE__, __LINE__);
    pieces_.push_front({of, place, static_cast<uint8_t*>(memory), padded});
    piece = of->pieces[place] = &pieces_.front();
    piece->self = pieces_.begin();
    bytes_ += padded;
    pending_.push_back({piece->self, data, bytes});
    *copied += bytes;
  } else {
    pieces_.splice(pieces_.begin(), pieces_, piece->self);
  }
  ++piece->pins;
  pinned->push_back(piece);
  return static_cast<const uint8_t*>(piece->data);
}

Status ColumnCache::Finish(cudaStream_t stream) {
  if (!copying_) return Status::Ok();
  copying_ = false;
  CUDA_TRY(cudaEventRecord(done_, stream_));
  CUDA_TRY(cudaStreamWaitEvent(stream, done_, 0));
  return Status::Ok();
}

void ColumnCache::Unpin(std::vector<Piece*>* pinned) {
  for (Piece* p : *pinned) --p->pins;
  pinned->clear();
}

Status ColumnCache::Clear() {
  for (auto p = pieces_.begin(); p != pieces_.end();) {
    auto next = std::next(p);
    if (p->pins == 0) TESSERA_TRY(Drop(p));
    p = next;
  }
  CUDA_TRY(cudaStreamSynchronize(stream_));
  CUDA_TRY(cudaMemPoolTrimTo(pool_, 0));
  return Status::Ok();
}

}  // namespace tessera::kernels
