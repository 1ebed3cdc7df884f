#include "kernels/memory/cached_pieces.h"

#include <iterator>
#include <utility>

namespace tessera::kernels {

Result<TabletPieces*> CachedPieces::Find(const std::shared_ptr<const Tablet>& tablet) {
  auto [found, is_new] = tablets_.try_emplace(tablet.get());
  TabletPieces* of = &found->second;
  if (!is_new && of->tablet.expired()) {
    TESSERA_TRY(DropAll(of));
    of->was_here.assign(of->pieces.size(), false);
    of->was_in_place.clear();
    is_new = true;
  }
  if (is_new) of->tablet = tablet;
  return of;
}

Result<bool> CachedPieces::Add(TabletPieces* of, size_t place, uint64_t bytes, bool on_host) {
  if (place >= of->pieces.size()) {
    of->was_here.resize(place + 1);
    of->pieces.resize(place + 1);
  }
  if (CachedPiece* const piece = of->pieces[place]; piece != nullptr) {
    if (piece->pins == 0) piece->was_used = true;  // (not by another slot of the launch for which it came)
    ++piece->hits;
    ++hits_;
    return false;
  }
  const uint64_t padded = (bytes + 127) / 128 * 128;
  TESSERA_TRY(MakeRoom(padded));
  std::list<CachedPiece> made;
  made.push_front({of, place, nullptr, padded, on_host});
  TESSERA_ASSIGN(made.front().data, on_host ? AllocateOnHost(padded) : Allocate(padded));
  ++misses_;
  pieces_.splice(pieces_.begin(), made);
  CachedPiece* const piece = of->pieces[place] = &pieces_.front();
  piece->self = pieces_.begin();
  budget_.AddColumn(padded);
  return true;
}

Status CachedPieces::Drop(PieceIterator piece) {
  if (piece->on_host) {
    spare_on_host_.emplace(piece->bytes, piece->data);
  } else {
    IgnoreError(cudaFreeAsync(piece->data, streams_.copy));
  }
  budget_.DropColumn(piece->bytes);
  if (piece->of != nullptr) {
    piece->of->pieces[piece->place] = nullptr;
    if (piece->place < piece->of->was_in_place.size()) piece->of->was_in_place[piece->place] = false;
  }
  pieces_.erase(piece);
  return Status::Ok();
}

Status CachedPieces::DropAll(TabletPieces* of) {
  for (CachedPiece* p : of->pieces) {
    if (p != nullptr) TESSERA_TRY(Drop(p->self));
  }
  return Status::Ok();
}

Status CachedPieces::DropExpired() {
  // (A tablet that a launch reads has not expired.)
  for (auto t = tablets_.begin(); t != tablets_.end();) {
    if (!t->second.tablet.expired()) {
      ++t;
      continue;
    }
    TESSERA_TRY(DropAll(&t->second));
    t = tablets_.erase(t);
  }
  return Status::Ok();
}

void CachedPieces::Forget(std::vector<PieceIterator>* pieces) {
  for (const auto& p : *pieces) {
    p->of->pieces[p->place] = nullptr;
    p->of = nullptr;
  }
  pieces->clear();
}

Status CachedPieces::MakeRoom(uint64_t bytes) {
  budget_.MakeSpareRoom(bytes);
  if (budget_.Fits(bytes)) return Status::Ok();
  TESSERA_TRY(DropExpired());
  // Those that are passed over come again, at the front of the list: once each.
  for (size_t left = 2 * pieces_.size(); left > 0 && !pieces_.empty() && !budget_.Fits(bytes); --left) {
    const auto last = std::prev(pieces_.end());
    if (std::exchange(last->was_used, false) || last->pins != 0) {
      pieces_.splice(pieces_.begin(), pieces_, last);
    } else {
      TESSERA_TRY(Drop(last));
      ++evictions_;
    }
  }
  return Status::Ok();
}

Result<uint8_t*> CachedPieces::Allocate(uint64_t bytes) {
  void* memory = nullptr;
  cudaError_t error = cudaMallocFromPoolAsync(&memory, bytes, budget_.pool(), streams_.copy);
  if (error == cudaErrorMemoryAllocation && budget_.has_free_spare()) {
    cudaGetLastError();
    CUDA_TRY(budget_.FreeSpareAndWait());
    CUDA_TRY(cudaMemPoolTrimTo(budget_.pool(), 0));
    error = cudaMallocFromPoolAsync(&memory, bytes, budget_.pool(), streams_.copy);
  }
  if (error == cudaErrorMemoryAllocation) {  // others use the device as well
    cudaGetLastError();
    budget_.LiveWithFewerColumns(bytes);
    TESSERA_TRY(MakeRoom(bytes));
    CUDA_TRY(cudaStreamSynchronize(streams_.copy));
    CUDA_TRY(cudaMemPoolTrimTo(budget_.pool(), 0));
    error = cudaMallocFromPoolAsync(&memory, bytes, budget_.pool(), streams_.copy);
  }
  if (error != cudaSuccess) return CudaStatus(error, "cudaMallocFromPoolAsync", __FILE__, __LINE__);
  return static_cast<uint8_t*>(memory);
}

Result<uint8_t*> CachedPieces::AllocateOnHost(uint64_t bytes) {
  const auto spare = spare_on_host_.lower_bound(bytes);
  if (spare != spare_on_host_.end() && spare->first == bytes) {
    uint8_t* const memory = spare->second;
    spare_on_host_.erase(spare);
    return memory;
  }
  FreeSpareOnHost();
  void* memory = nullptr;
  CUDA_TRY(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  return static_cast<uint8_t*>(memory);
}

void CachedPieces::FreeSpareOnHost() {
  for (const auto& [bytes, memory] : spare_on_host_) IgnoreError(cudaFreeHost(memory));
  spare_on_host_.clear();
}

Status CachedPieces::Clear() {
  for (auto p = pieces_.begin(); p != pieces_.end();) {
    auto next = std::next(p);
    if (p->pins == 0) TESSERA_TRY(Drop(p));
    p = next;
  }
  for (auto& [address, of] : tablets_) of.was_in_place.clear();
  return Status::Ok();
}

void CachedPieces::FreeAll() {
  for (const auto& [address, of] : tablets_) {
    if (const std::shared_ptr<PinnedPages> pages = of.pages.lock(); pages != nullptr) pages->Unpin();
  }
  for (CachedPiece& p : pieces_) IgnoreError(p.on_host ? cudaFreeHost(p.data) : cudaFreeAsync(p.data, streams_.copy));
  FreeSpareOnHost();
}

CacheReport CachedPieces::Report(uint64_t bytes_in, uint64_t pinned) const {
  CacheReport report{"gpu", budget_.columns(), budget_.bytes(), hits_, misses_, evictions_, bytes_in, pinned, {}};
  for (const auto& [address, of] : tablets_) {
    const std::shared_ptr<const Tablet> tablet = of.tablet.lock();
    for (size_t place = 0; tablet != nullptr && place < of.pieces.size(); ++place) {
      const CachedPiece* const piece = of.pieces[place];
      if (piece == nullptr) continue;
      const int column = static_cast<int>(place / kPieceStreams);
      std::vector<CachedColumn>& columns = report.columns;
      const bool another_stream =
          !columns.empty() && columns.back().tablet == tablet && columns.back().column == column;
      if (!another_stream) columns.push_back({tablet, column, 0, 0});
      columns.back().bytes += piece->bytes;
      columns.back().hits += piece->hits;
    }
  }
  return report;
}

}  // namespace tessera::kernels
