#include "kernels/memory/column_cache.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "base/background_thread.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "base/size_text.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/files/file_mapping.h"

namespace tessera::kernels {
ColumnCache::~ColumnCache() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  more_.notify_all();
  more_to_pin_.notify_all();
  for (std::thread& t : threads_) t.join();
  if (pin_thread_.joinable()) pin_thread_.join();
  for (const auto& [address, of] : tablets_) {
    if (const std::shared_ptr<PinnedPages> pages = of.pages.lock(); pages != nullptr) pages->Unpin();
  }
  scratch_.reset();
  for (Piece& p : pieces_) IgnoreError(p.on_host ? cudaFreeHost(p.data) : cudaFreeAsync(p.data, stream_));
  FreeSpareOnHost();
  for (cudaStream_t s : {stream_, unpack_stream_}) {
    if (s != nullptr) IgnoreError(cudaStreamSynchronize(s));
  }
  if (pool_ != nullptr) IgnoreError(cudaMemPoolDestroy(pool_));
  for (cudaStream_t s : {stream_, unpack_stream_}) {
    if (s != nullptr) IgnoreError(cudaStreamDestroy(s));
  }
}

Status ColumnCache::Open(uint64_t budget_bytes) {
  whole_budget_ = budget_ = budget_bytes;
  CUDA_TRY(cudaGetDevice(&device_));
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = device_;
  if (pool_ == nullptr) CUDA_TRY(cudaMemPoolCreate(&pool_, &props));  // an earlier call may have come so far
  if (PinnedPages::AreSupported(device_)) usable_memory_ = UsableMemory();
  uint64_t keep = UINT64_MAX;  // what is freed stays with the pool
  CUDA_TRY(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
  for (cudaStream_t* s : {&stream_, &unpack_stream_}) {
    if (*s == nullptr) CUDA_TRY(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
  }
  return Status::Ok();
}

bool ColumnCache::SetTransfer(Transfer transfer, uint64_t piece_bytes) {
  if (piece_bytes == 0) piece_bytes = kTransferPiece;
  piece_bytes = std::clamp(piece_bytes, kLeastTransferPiece, kGreatestTransferPiece) / 4096 * 4096;
  if (transfer == transfer_ && piece_bytes == piece_bytes_) return false;
  {
    // No page is pinned between the cutting of copies and their start.
    std::unique_lock<std::mutex> lock(mutex_);
    to_pin_.clear();
    pinned_.wait(lock, [&] { return !is_pinning_; });
  }
  transfer_ = transfer;
  piece_bytes_ = piece_bytes;
  return true;
}

CacheReport ColumnCache::Report() const {
  CacheReport report{"gpu", bytes_, budget_, hits_, misses_, evictions_, bytes_in_, *pinned_pages_, {}};
  for (const auto& [address, of] : tablets_) {
    const std::shared_ptr<const Tablet> tablet = of.tablet.lock();
    for (size_t place = 0; tablet != nullptr && place < of.pieces.size(); ++place) {
      const Piece* const piece = of.pieces[place];
      if (piece == nullptr) continue;
      const int column = static_cast<int>(place / kStreams);
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

Status ColumnCache::Drop(std::list<Piece>::iterator piece) {
  if (piece->on_host) {
    spare_on_host_.emplace(piece->bytes, piece->data);
  } else {
    IgnoreError(cudaFreeAsync(piece->data, stream_));
  }
  bytes_ -= piece->bytes;
  if (piece->of != nullptr) {
    piece->of->pieces[piece->place] = nullptr;
    if (piece->place < piece->of->was_in_place.size()) piece->of->was_in_place[piece->place] = false;
  }
  pieces_.erase(piece);
  return Status::Ok();
}

Status ColumnCache::DropAll(TabletPieces* of) {
  for (Piece* p : of->pieces) {
    if (p != nullptr) TESSERA_TRY(Drop(p->self));
  }
  return Status::Ok();
}

void ColumnCache::MakeSpareRoom(uint64_t bytes) {
  if (!Fits(bytes)) spare_.Free(taken() + spare_.bytes() + bytes - budget_);
}

Status ColumnCache::MakeRoom(uint64_t bytes) {
  MakeSpareRoom(bytes);
  if (Fits(bytes)) return Status::Ok();
  // (A tablet that a launch reads has not expired.)
  for (auto t = tablets_.begin(); t != tablets_.end();) {
    if (!t->second.tablet.expired()) {
      ++t;
      continue;
    }
    TESSERA_TRY(DropAll(&t->second));
    t = tablets_.erase(t);
  }
  // Those that are passed over come again, at the front of the list: once each.
  for (size_t left = 2 * pieces_.size(); left > 0 && !pieces_.empty() && !Fits(bytes); --left) {
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

// ---- Copies

void ColumnCache::Gather(const Way& way, uint8_t* to) {
  memcpy(to, way.from, way.bytes);
  memset(to + way.bytes, 0, way.padded - way.bytes);
}

Status ColumnCache::CopyOut(const std::vector<Way>& ways, const uint8_t* buffer) {
  std::vector<void*> to;
  std::vector<const void*> from;
  std::vector<size_t> bytes;
  for (const Way& way : ways) {
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
    CUDA_TRY(cudaMemcpyAsync(to[0], from[0], bytes[0], cudaMemcpyHostToDevice, stream_));
    return Status::Ok();
  }
  // One call: each copy of its own would leave the link idle for a moment (pieces of 1 MiB: 47 GB/s, of a batch 53).
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
  CUDA_TRY(cudaMemcpyBatchAsync(to.data(), from.data(), bytes.data(), to.size(), &attributes, &first, 1, stream_));
  return Status::Ok();
}

Status ColumnCache::Copy(const Part& part, Staging* staging) {
  if (part.route == Route::kToHost) {
    for (const Way& way : part.ways) Gather(way, way.to);
    return Status::Ok();
  }
  if (part.route == Route::kDirect) return CopyOut(part.ways, nullptr);
  if (transfer_ == Transfer::kPageable) {
    for (const Way& way : part.ways) {
      CUDA_TRY(cudaMemcpyAsync(way.to, way.from, way.bytes, cudaMemcpyHostToDevice, stream_));
      CUDA_TRY(cudaMemsetAsync(way.to + way.bytes, 0, way.padded - way.bytes, stream_));
    }
    return Status::Ok();
  }
  const size_t i = staging->next++ % kBuffersEach;
  PinnedBuffer& buffer = staging->buffers[i];
  TESSERA_TRY(buffer.Reserve(piece_bytes_));
  if (staging->free[i] == nullptr) CUDA_TRY(cudaEventCreateWithFlags(&staging->free[i], cudaEventDisableTiming));
  CUDA_TRY(cudaEventSynchronize(staging->free[i]));
  uint8_t* at = buffer.As<uint8_t>();
  for (const Way& way : part.ways) {
    Gather(way, at);
    at += way.padded;
  }
  TESSERA_TRY(CopyOut(part.ways, buffer.As<uint8_t>()));
  CUDA_TRY(cudaEventRecord(staging->free[i], stream_));
  if (transfer_ == Transfer::kSync) CUDA_TRY(cudaStreamSynchronize(stream_));
  return Status::Ok();
}

Status ColumnCache::Unpack(Copies* copies) {
  // Zeros in the place of a file's bytes may be numbers behind the end of a dictionary. (The host has not read what was
  // copied from pinned pages.)
  for (const std::span<const uint8_t> mapping : copies->mappings) TouchLast(mapping);
  if (FileMapping::any_lost()) {
    return {ErrorCode::kCorrupt, "a tablet file became shorter while it was read, or the disk cannot read it",
            "Restore the file from a copy, or load the table anew from its source."};
  }
  CUDA_TRY(copies->batch.Start(copies->steps, unpack_stream_));
  Free(&copies->slabs, unpack_stream_);
  return Status::Ok();
}

void ColumnCache::Free(std::vector<Slab>* slabs, cudaStream_t behind) {
  for (const Slab& s : *slabs) IgnoreError(cudaFreeAsync(s.memory, behind));
  slabs->clear();
}

Status ColumnCache::PrepareChecks(Copies* copies) {
  size_t unchecked = 0;
  for (const auto& unpacking : copies->unpackings) unchecked += !unpacking->unchecked.expired();
  if (unchecked == 0) return Status::Ok();
  const uint64_t bytes = unchecked * sizeof(FoundCodes);
  TESSERA_ASSIGN(uint8_t* const memory, Allocate(bytes));
  copies->found = reinterpret_cast<FoundCodes*>(memory);
  CUDA_TRY(cudaMemsetAsync(copies->found, 0, bytes, stream_));
  FoundCodes* next = copies->found;
  for (const auto& unpacking : copies->unpackings) {
    if (!unpacking->unchecked.expired()) unpacking->found = next++;
  }
  return Status::Ok();
}

Status ColumnCache::PrepareSteps(Copies* copies) {
  if (copies->unpackings.empty()) return Status::Ok();
  for (const auto& unpacking : copies->unpackings) {
    copies->batch.Add(unpacking->plan, unpacking->packed, unpacking->out, copies->scratch.get() + unpacking->scratch_at,
                      unpacking->found);
  }
  const std::vector<UnpackStep>& steps = copies->batch.Finish();
  TESSERA_ASSIGN(uint8_t* const memory, Allocate(steps.size() * sizeof(UnpackStep)));
  copies->steps = reinterpret_cast<UnpackStep*>(memory);
  return Status::Ok();
}

Status ColumnCache::Check(const Copies& copies, cudaStream_t stream) {
  if (copies.found == nullptr) return Status::Ok();
  std::vector<const Unpacking*> checked;
  for (const auto& unpacking : copies.unpackings) {
    if (unpacking->found != nullptr) checked.push_back(unpacking.get());
  }
  std::vector<FoundCodes> found(checked.size());
  CUDA_TRY(cudaStreamWaitEvent(stream, copies.done, 0));
  CUDA_TRY(
      cudaMemcpyAsync(found.data(), copies.found, found.size() * sizeof(FoundCodes), cudaMemcpyDeviceToHost, stream));
  CUDA_TRY(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < checked.size(); ++i) {
    const std::shared_ptr<const Tablet> tablet = checked[i]->unchecked.lock();
    if (tablet == nullptr) continue;
    if (!AreRight(checked[i]->plan, found[i])) {
      // The host says what it is.
      TESSERA_TRY(tablet->Chunk(checked[i]->column).status());
      return {ErrorCode::kInternal, "the GPU does not unpack \"" + tablet->path() + "\" to what the host does"};
    }
    tablet->NoteCodesChecked(checked[i]->column);
  }
  return Status::Ok();
}

void ColumnCache::WaitForCopies() {
  for (cudaStream_t s : {stream_, unpack_stream_}) IgnoreError(cudaStreamSynchronize(s));
}

void ColumnCache::GiveBack(Copies* copies) {
  Free(&copies->slabs, stream_);
  copies->unpackings.clear();
  if (copies->found != nullptr) IgnoreError(cudaFreeAsync(std::exchange(copies->found, nullptr), unpack_stream_));
  if (copies->steps != nullptr) IgnoreError(cudaFreeAsync(std::exchange(copies->steps, nullptr), unpack_stream_));
  arriving_bytes_ -= std::exchange(copies->arriving_bytes, 0);
  copies->scratch.reset();
  FreeUnusedScratch();
}

void ColumnCache::NoteIssued(std::unique_lock<std::mutex>* lock, Copies* copies, const Status& status) {
  if (copies->error.ok()) copies->error = status;
  if (copies->left > 1) {
    --copies->left;
    return;
  }
  // The last one: nobody else touches these copies until `left` is 0, so others may copy while kernels are started.
  const auto unpack = [&]() -> Status {
    CUDA_TRY(cudaEventRecord(copies->done, stream_));
    if (copies->unpackings.empty()) return Status::Ok();
    // On a stream of its own, so that the next copies do not wait. One batch behind the other: they share scratch memory.
    std::lock_guard<std::mutex> one(unpacking_);
    CUDA_TRY(cudaStreamWaitEvent(unpack_stream_, copies->done, 0));
    TESSERA_TRY(Unpack(copies));
    CUDA_TRY(cudaEventRecord(copies->done, unpack_stream_));
    return Status::Ok();
  };
  if (copies->error.ok()) {
    lock->unlock();
    const Status unpacked = Caught(unpack);
    lock->lock();
    copies->error = unpacked;
  }
  copies->left = 0;
  const auto now = std::chrono::steady_clock::now();
  copies->milliseconds =
      std::chrono::duration<double, std::milli>(now - std::max(copies->started, last_issued_)).count();
  last_issued_ = now;
  issued_.notify_all();
}

void ColumnCache::CopyParts(Staging* staging) {
  const auto set_device = [&]() -> Status {
    CUDA_TRY(cudaSetDevice(device_));
    return Status::Ok();
  };
  const Status device = set_device();
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    more_.wait(lock, [&] { return stop_ || !parts_.empty(); });
    if (stop_) return;
    const Part part = std::move(parts_.front());
    parts_.pop_front();
    Status status = device;
    if (status.ok() && part.copies->error.ok()) {
      lock.unlock();
      try {
        status = Copy(part, staging);
      } catch (...) {  // whoever waits for the part must learn of it
        status = StatusOfException();
      }
      lock.lock();
    }
    NoteIssued(&lock, part.copies.get(), status);
  }
}

void ColumnCache::StartThreads(size_t wanted) {
  threads_.reserve(wanted);
  while (threads_.size() < wanted) {
    Staging* staging = &staging_.emplace_back();
    std::thread thread;
    // If the system refuses, those that there are copy, or the caller.
    if (!StartThread(&thread, &ColumnCache::CopyParts, this, staging).ok()) return;
    threads_.push_back(std::move(thread));
  }
}

bool ColumnCache::IsLinkIdle() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!parts_.empty()) return false;
  }
  const cudaError_t state = cudaStreamQuery(stream_);
  if (state != cudaErrorNotReady) IgnoreError(state);
  return state != cudaErrorNotReady;
}

bool ColumnCache::HasEnoughToStart(int threads) {
  if (pending_scratch_ > MostScratch()) return true;
  if (!MaySpread(threads) || pending_bytes_ < kSharedCopy) return false;
  return pending_bytes_ >= kCopiedTogether || IsLinkIdle();
}

uint64_t ColumnCache::PartBytes(int threads) {
  if (!MaySpread(threads) || piece_bytes_ < 4 * kLeastTransferPiece) return piece_bytes_;
  return IsLinkIdle() ? piece_bytes_ / 4 : piece_bytes_;
}

void ColumnCache::AddParts(Way way, Route route, const std::shared_ptr<Copies>& copies, std::vector<Part>* parts) {
  const uint64_t most = route == Route::kDirect ? copies->direct_part_bytes : copies->part_bytes;
  while (way.padded > 0) {
    if (parts->empty() || parts->back().route != route || parts->back().bytes >= most)
      parts->push_back({{}, 0, route, copies});
    Part& part = parts->back();
    const uint64_t padded = std::min(way.padded, most - part.bytes), bytes = std::min(padded, way.bytes);
    part.ways.push_back({way.from, way.to, bytes, padded, way.joins});
    part.bytes += padded;
    way = {way.from + bytes, way.to + padded, way.bytes - bytes, way.padded - padded};
  }
}

void ColumnCache::AddParts(const Pending& pending, uint8_t* to, uint64_t padded, const std::shared_ptr<Copies>& copies,
                           std::vector<Part>* parts) {
  const bool joins = pending.unpacking != nullptr && !pending.unpacking->begins_slab;
  if (pending.pages == nullptr)
    return AddParts({pending.from, to, pending.bytes, padded, joins}, pending.route, copies, parts);
  // (Behind a stream of a file there are zeros in the file.)
  const bool direct = pending.route == Route::kDirect;
  const uint64_t bytes = direct ? AlignToStream(pending.bytes) : pending.bytes, behind = direct ? 0 : padded - bytes;
  uint64_t left = bytes;
  pending.pages->ForEachPart(pending.from, bytes, [&](const uint8_t* from, uint64_t part) {
    left -= part;
    AddParts({from, to, part, part + (left == 0 ? behind : 0)}, pending.route, copies, parts);
    to += part;
  });
}

std::vector<ColumnCache::Pending> ColumnCache::TakePending(Copies* copies) {
  copies->pieces.reserve(pending_.size());
  for (const Pending& p : pending_) {  // nothing fails from here on
    copies->pieces.push_back(p.piece);
    bytes_in_ += p.bytes;
  }
  pending_bytes_ = 0;
  copies->slabs = std::exchange(pending_slabs_, {});
  for (const Slab& slab : copies->slabs) copies->arriving_bytes += slab.bytes;
  if (std::exchange(pending_scratch_, 0) > 0) copies->scratch = scratch_;
  return std::exchange(pending_, {});
}

Status ColumnCache::MakeParts(std::vector<Pending> taken, const std::shared_ptr<Copies>& copies,
                              std::vector<Part>* parts) {
  for (Pending& p : taken) {
    if (p.unpacking == nullptr) continue;
    AddParts(p, p.unpacking->packed, AlignedForUnpack(p.bytes), copies, parts);
    if (p.route == Route::kDirect) copies->mappings.push_back(p.mapping);
    copies->unpackings.push_back(std::move(p.unpacking));
    p.bytes = 0;
  }
  TESSERA_TRY(PrepareChecks(copies.get()));
  TESSERA_TRY(PrepareSteps(copies.get()));
  if (copies->steps != nullptr) {
    const std::vector<UnpackStep>& steps = copies->batch.steps();
    const uint64_t bytes = steps.size() * sizeof(UnpackStep);
    AddParts({reinterpret_cast<const uint8_t*>(steps.data()), reinterpret_cast<uint8_t*>(copies->steps), bytes, bytes},
             Route::kStaged, copies, parts);
  }
  for (const Pending& p : taken) {
    if (p.bytes != 0) AddParts(p, p.piece->data, p.piece->bytes, copies, parts);
  }
  return Status::Ok();
}

Status ColumnCache::StartCopies(int threads, CopiesList* started) {
  if (pending_.empty()) return Status::Ok();
  if (transfer_ == Transfer::kSync) TESSERA_TRY(WaitForReaders());
  started->reserve(started->size() + 1);
  auto copies = std::make_shared<Copies>();
  CUDA_TRY(cudaEventCreateWithFlags(&copies->done, cudaEventDisableTiming));
  copies->part_bytes = PartBytes(threads);
  copies->direct_part_bytes = piece_bytes_ == kTransferPiece ? kDirectPart : piece_bytes_;
  // The rest of a batch goes the way of what was started before, so that the caller is free.
  bool shared = MaySpread(threads) && (pending_bytes_ >= kSharedCopy || !started->empty());
  std::vector<Pending> taken = TakePending(copies.get());
  std::vector<Part> parts;
  Status status = Caught([&] {
    TESSERA_TRY(MakeParts(std::move(taken), copies, &parts));
    copies->left = parts.size();
    copies->started = std::chrono::steady_clock::now();
    if (shared) StartThreads(std::min(kMostThreads, static_cast<size_t>(threads)));
    shared = shared && !threads_.empty();
    if (!shared) return Status::Ok();
    std::lock_guard<std::mutex> lock(mutex_);
    parts_.insert(parts_.end(), std::move_iterator(parts.begin()), std::move_iterator(parts.end()));  // all or none
    return Status::Ok();
  });
  if (!status.ok()) {
    WaitForCopies();
    GiveBack(copies.get());
    Forget(&copies->pieces);
    return status;
  }
  started->push_back(copies);
  if (shared) {
    more_.notify_all();
    return Status::Ok();
  }
  for (const Part& part : parts) {
    if (status.ok()) status = Caught([&] { return Copy(part, &own_); });  // whoever waits for it must learn of it
    std::unique_lock<std::mutex> lock(mutex_);
    NoteIssued(&lock, copies.get(), status);
  }
  return Status::Ok();
}

Status ColumnCache::WaitForReaders() {
  if (readers_ != nullptr) CUDA_TRY(cudaStreamSynchronize(readers_));
  return Status::Ok();
}

bool ColumnCache::AreIssued(const CopiesList& copies) {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::all_of(copies.begin(), copies.end(), [](const auto& c) { return c->left == 0; });
}

Status ColumnCache::Finish(CopiesList* copies, cudaStream_t stream, double* milliseconds) {
  Status status;
  for (const std::shared_ptr<Copies>& c : *copies) {
    const Status one = FinishOne(c.get(), stream, milliseconds);
    if (status.ok()) status = one;
  }
  copies->clear();
  return status;
}

Status ColumnCache::FinishOne(Copies* copies, cudaStream_t stream, double* milliseconds) {
  {
    const PhaseScope phase(Phase::kTransfer);
    std::unique_lock<std::mutex> lock(mutex_);
    issued_.wait(lock, [&] { return copies->left == 0; });
    lock.unlock();
    if (copies->error.ok()) copies->error = Check(*copies, stream);
  }
  if (!copies->error.ok()) WaitForCopies();
  GiveBack(copies);
  if (!copies->error.ok()) {
    Forget(&copies->pieces);
    return copies->error;
  }
  *milliseconds += copies->milliseconds;
  readers_ = stream;
  if (const cudaError_t error = cudaStreamWaitEvent(stream, copies->done, 0); error != cudaSuccess) {
    WaitForCopies();  // the pieces stay, and nobody else waits for them
    return CudaStatus(error, "cudaStreamWaitEvent", __FILE__, __LINE__);
  }
  return Status::Ok();
}

void ColumnCache::Forget(std::vector<std::list<Piece>::iterator>* pieces) {
  for (const auto& p : *pieces) {
    p->of->pieces[p->place] = nullptr;
    p->of = nullptr;
  }
  pieces->clear();
}

void ColumnCache::Abandon(CopiesList* copies) {
  std::vector<std::list<Piece>::iterator> gone;
  for (const Pending& p : pending_) gone.push_back(p.piece);
  pending_.clear();
  for (const Slab& slab : pending_slabs_) arriving_bytes_ -= slab.bytes;
  Free(&pending_slabs_, stream_);
  pending_scratch_ = 0;
  pending_bytes_ = 0;
  for (const std::shared_ptr<Copies>& abandoned : *copies) {
    std::unique_lock<std::mutex> lock(mutex_);
    const size_t left = std::erase_if(parts_, [&](const Part& part) { return part.copies == abandoned; });
    if (left > 0) abandoned->error = Cancelled();
    abandoned->left -= left;
    issued_.wait(lock, [&] { return abandoned->left == 0; });
    lock.unlock();
    WaitForCopies();
    const bool unchecked = abandoned->found != nullptr;
    GiveBack(abandoned.get());
    if (!abandoned->error.ok() || unchecked)
      gone.insert(gone.end(), abandoned->pieces.begin(), abandoned->pieces.end());
  }
  copies->clear();
  Forget(&gone);
  FreeUnusedScratch();
}

Status ColumnCache::Claim(uint64_t bytes) {
  TESSERA_TRY(MakeRoom(bytes));
  if (!Fits(bytes)) {
    return {ErrorCode::kResource,
            "the GPU's memory budget of " + SizeText(budget_) + " has no room for " + SizeText(bytes) + " more, and " +
                SizeText(std::min(budget_, taken())) + " are in use",
            "Give --gpu-memory more, or use --device host."};
  }
  claimed_ += bytes;
  return Status::Ok();
}

bool ColumnCache::ClaimFree(uint64_t bytes) {
  if (bytes_ + claimed() + bytes > budget_) return false;
  MakeSpareRoom(bytes);
  claimed_ += bytes;
  return true;
}

Result<ColumnCache::TabletPieces*> ColumnCache::Find(const std::shared_ptr<const Tablet>& tablet) {
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

Result<uint8_t*> ColumnCache::Allocate(uint64_t bytes) {
  void* memory = nullptr;
  cudaError_t error = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream_);
  if (error == cudaErrorMemoryAllocation && spare_.bytes() > spare_.held_bytes()) {
    cudaGetLastError();
    CUDA_TRY(spare_.FreeAndWait());
    CUDA_TRY(cudaMemPoolTrimTo(pool_, 0));
    error = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream_);
  }
  if (error == cudaErrorMemoryAllocation) {  // others use the device as well: live with less
    cudaGetLastError();
    budget_ = std::min(budget_, claimed() + std::max<uint64_t>(bytes_ / 2, bytes));
    TESSERA_TRY(MakeRoom(bytes));
    CUDA_TRY(cudaStreamSynchronize(stream_));
    CUDA_TRY(cudaMemPoolTrimTo(pool_, 0));
    error = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream_);
  }
  if (error != cudaSuccess) return CudaStatus(error, "cudaMallocFromPoolAsync", __FILE__, __LINE__);
  return static_cast<uint8_t*>(memory);
}

Result<uint8_t*> ColumnCache::AllocateArrival(uint64_t bytes) {
  bytes = AlignedForUnpack(bytes);
  if (pending_slabs_.empty() || pending_slabs_.back().bytes - pending_slabs_.back().used < bytes) {
    const uint64_t all = std::max(bytes, std::min(kSlab, budget_ / 64));
    TESSERA_ASSIGN(uint8_t* const memory, Allocate(all));
    pending_slabs_.push_back({memory, all, 0});
    arriving_bytes_ += all;
  }
  Slab& slab = pending_slabs_.back();
  return slab.memory + std::exchange(slab.used, slab.used + bytes);
}

Status ColumnCache::ReserveScratch(uint64_t bytes) {
  const uint64_t needed = pending_scratch_ + bytes;
  if (scratch_ == nullptr || scratch_bytes_ < needed) {
    const uint64_t all = std::max({needed, MostScratch(), scratch_bytes_ + scratch_bytes_ / 2});
    TESSERA_ASSIGN(uint8_t* const memory, Allocate(all));
    // Freed behind all kernels that use it: a batch gives its reference back only after its kernels were started.
    scratch_ = {memory, [stream = unpack_stream_](uint8_t* p) { IgnoreError(cudaFreeAsync(p, stream)); }};
    scratch_bytes_ = all;
  }
  pending_scratch_ = needed;
  return Status::Ok();
}

void ColumnCache::FreeUnusedScratch() {
  if (scratch_.use_count() != 1 || pending_scratch_ != 0) return;
  scratch_.reset();
  scratch_bytes_ = 0;
}

Result<uint8_t*> ColumnCache::AllocateOnHost(uint64_t bytes) {
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

void ColumnCache::FreeSpareOnHost() {
  for (const auto& [bytes, memory] : spare_on_host_) IgnoreError(cudaFreeHost(memory));
  spare_on_host_.clear();
}

void ColumnCache::ReservePending() {
  if (pending_.size() == pending_.capacity()) pending_.reserve(std::max<size_t>(64, 2 * pending_.size()));
}

Result<bool> ColumnCache::AddPiece(TabletPieces* of, size_t place, uint64_t bytes, bool on_host) {
  if (place >= of->pieces.size()) {
    of->was_here.resize(place + 1);
    of->pieces.resize(place + 1);
  }
  if (Piece* const piece = of->pieces[place]; piece != nullptr) {
    if (piece->pins == 0) piece->was_used = true;  // (not by another slot of the launch for which it came)
    ++piece->hits;
    ++hits_;
    return false;
  }
  const uint64_t padded = (bytes + 127) / 128 * 128;
  TESSERA_TRY(MakeRoom(padded));
  ReservePending();
  std::list<Piece> made;
  made.push_front({of, place, nullptr, padded, on_host});
  TESSERA_ASSIGN(made.front().data, on_host ? AllocateOnHost(padded) : Allocate(padded));
  ++misses_;
  pieces_.splice(pieces_.begin(), made);
  Piece* const piece = of->pieces[place] = &pieces_.front();
  piece->self = pieces_.begin();
  bytes_ += padded;
  return true;
}

ColumnCache::Pending ColumnCache::MakePending(TabletPieces* of, size_t place, const uint8_t* at, uint64_t bytes) {
  Piece* const piece = of->pieces[place];
  Pending pending{piece->self, at, bytes, piece->on_host ? Route::kToHost : Route::kStaged, nullptr, {}};
  if (transfer_ == Transfer::kPageable) pending.pages = of->pages.lock();
  if (transfer_ != Transfer::kStream || usable_memory_ == 0) return pending;
  const std::shared_ptr<const PinnedPages> pages = of->pages.lock();
  if (pages != nullptr && pages->Hold(at, AlignToStream(bytes))) {
    if (const std::shared_ptr<const Tablet> tablet = of->tablet.lock(); tablet != nullptr && IsWhole(*tablet)) {
      pending.route = Route::kDirect;
      pending.pages = pages;
      pending.mapping = tablet->Mapping();
    }
    return pending;
  }
  // Whatever goes wrong, it can be copied without.
  if (of->was_here[place] && bytes >= kLeastPinned)
    (void)Caught([&]() -> Status {
      PinSoon(of, at, bytes);
      return Status::Ok();
    });
  of->was_here[place] = true;
  return pending;
}

bool ColumnCache::IsWhole(const Tablet& tablet) {
  TouchLast(tablet.Mapping());
  return !FileMapping::any_lost();
}

uint64_t ColumnCache::MostPinned() const {
  return (MemoryLimit() == UINT64_MAX ? usable_memory_ : MemoryLimit()) / kPinnedShare;
}

void ColumnCache::PinSoon(TabletPieces* of, const uint8_t* at, uint64_t bytes) {
  bytes = AlignToStream(bytes);
  const std::shared_ptr<const Tablet> tablet = of->tablet.lock();
  if (tablet == nullptr || *pinned_pages_ + bytes > MostPinned()) return;
  const std::span<const uint8_t> mapping = tablet->Mapping();
  if (at < mapping.data() || at + bytes > mapping.data() + mapping.size()) return;
  std::shared_ptr<PinnedPages> pages = of->pages.lock();
  if (pages == nullptr) {
    pages = std::make_shared<PinnedPages>(device_, pinned_pages_);
    tablet->HoldWhileMapped(pages);
    of->pages = pages;
  }
  // Without the thread nothing is pinned, and everything goes on as before.
  if (!pin_thread_.joinable() && !StartThread(&pin_thread_, &ColumnCache::PinPages, this).ok()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // (What finds no room is asked for again when it comes again.)
    for (uint64_t done = 0; done < bytes && to_pin_.size() < kMostRequests; done += kPinnedTogether)
      to_pin_.push_back({tablet, pages, at + done, std::min(bytes - done, kPinnedTogether)});
  }
  more_to_pin_.notify_one();
}

void ColumnCache::PinPages() {
  using Clock = std::chrono::steady_clock;
  IgnoreError(cudaSetDevice(device_));
  Clock::time_point next = Clock::now() + kPinningWait;  // during a run not before
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    while (!stop_ && (to_pin_.empty() || (runs_ > 0 && Clock::now() < next))) {
      if (to_pin_.empty()) {
        more_to_pin_.wait(lock);
        next = Clock::now() + kPinningWait;
      } else {
        more_to_pin_.wait_until(lock, next);
      }
    }
    if (stop_) return;
    const PinRequest request = to_pin_.front();
    to_pin_.pop_front();
    is_pinning_ = true;
    lock.unlock();
    const Clock::time_point start = Clock::now();
    (void)Caught([&] { return Pin(request); });
    next = Clock::now() + kPinningShare * (Clock::now() - start);
    lock.lock();
    is_pinning_ = false;
    pinned_.notify_all();
  }
}

Status ColumnCache::Pin(const PinRequest& request) {
  // The tablet first: the pages have to go before the mapping does.
  const std::shared_ptr<const Tablet> tablet = request.tablet.lock();
  if (tablet == nullptr) return Status::Ok();
  const std::shared_ptr<PinnedPages> pages = request.pages.lock();
  if (pages != nullptr && IsWhole(*tablet) && *pinned_pages_ + request.bytes <= MostPinned())
    pages->Pin(request.at, request.bytes);
  return Status::Ok();
}

void ColumnCache::BeginRun() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++runs_;
}

void ColumnCache::EndRun() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --runs_;
  }
  more_to_pin_.notify_one();
}

bool ColumnCache::ReadInPlace(TabletPieces* of, int column, const uint8_t* codes, uint64_t bytes, bool may_stay) {
  const size_t place = kStreams * static_cast<size_t>(column) + static_cast<size_t>(Stream::kCodes);
  if (HasCodes(*of, column) || transfer_ != Transfer::kStream) return false;
  const std::shared_ptr<const PinnedPages> pages = of->pages.lock();
  if (pages == nullptr || !pages->Hold(codes, bytes)) return false;
  const std::shared_ptr<const Tablet> tablet = of->tablet.lock();
  if (tablet == nullptr || !IsWhole(*tablet)) return false;
  if (place >= of->was_in_place.size()) of->was_in_place.resize(place + 1);
  if (may_stay && of->was_in_place[place]) return false;
  of->was_in_place[place] = true;
  return true;
}

Result<const uint8_t*> ColumnCache::Fetch(TabletPieces* of, int column, Stream stream, const uint8_t* data,
                                          uint64_t bytes, std::vector<Piece*>* pinned, uint64_t* copied) {
  const size_t place = kStreams * static_cast<size_t>(column) + static_cast<size_t>(stream);
  TESSERA_ASSIGN(const bool is_new, AddPiece(of, place, bytes, transfer_ == Transfer::kZeroCopy));
  Piece* const piece = of->pieces[place];
  if (is_new) {
    pending_.push_back(MakePending(of, place, data, bytes));
    pending_bytes_ += piece->bytes;
    *copied += bytes;
  }
  pinned->push_back(piece);
  ++piece->pins;
  return static_cast<const uint8_t*>(piece->data);
}

Result<const uint8_t*> ColumnCache::FetchPacked(TabletPieces* of, int column, const Chunk& chunk,
                                                std::vector<Piece*>* pinned, uint64_t* copied) {
  const size_t place = kStreams * static_cast<size_t>(column) + static_cast<size_t>(Stream::kCodes);
  if (place >= of->pieces.size() || of->pieces[place] == nullptr) {
    auto unpacking = std::make_unique<Unpacking>();
    TESSERA_ASSIGN(unpacking->plan, PlanUnpack(chunk));
    unpacking->column = column;
    if (const auto tablet = of->tablet.lock(); tablet != nullptr && !tablet->AreCodesChecked(column)) {
      unpacking->unchecked = tablet;
    }
    TESSERA_TRY(AddPiece(of, place, chunk.codes_bytes, false).status());
    const auto piece = of->pieces[place]->self;
    unpacking->out = piece->data;
    ++piece->pins;  // to find memory may drop pieces
    const auto reserve = [&]() -> Status {
      unpacking->scratch_at = pending_scratch_;
      TESSERA_TRY(ReserveScratch(unpacking->plan.scratch_bytes));
      TESSERA_ASSIGN(unpacking->packed, AllocateArrival(chunk.packed_bytes));
      unpacking->begins_slab = unpacking->packed == pending_slabs_.back().memory;
      return Status::Ok();
    };
    const Status reserved = Caught(reserve);
    --piece->pins;
    if (!reserved.ok()) {
      pending_scratch_ = unpacking->scratch_at;
      FreeUnusedScratch();
      TESSERA_TRY(Drop(piece));
      return reserved;
    }
    pending_.push_back(MakePending(of, place, chunk.packed_codes, chunk.packed_bytes));
    pending_.back().unpacking = std::move(unpacking);
    pending_bytes_ += chunk.packed_bytes;
    *copied += chunk.packed_bytes;
  } else {
    TESSERA_TRY(AddPiece(of, place, chunk.codes_bytes, false).status());
  }
  Piece* const piece = of->pieces[place];
  pinned->push_back(piece);
  ++piece->pins;
  return static_cast<const uint8_t*>(piece->data);
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
  for (auto& [address, of] : tablets_) of.was_in_place.clear();
  CUDA_TRY(cudaStreamSynchronize(stream_));
  CUDA_TRY(cudaStreamSynchronize(unpack_stream_));
  return Status::Ok();
}

Status ColumnCache::Trim() {
  CUDA_TRY(spare_.FreeAndWait());
  TESSERA_TRY(Clear());
  CUDA_TRY(cudaMemPoolTrimTo(pool_, 0));
  FreeSpareOnHost();
  return Status::Ok();
}

}  // namespace tessera::kernels
