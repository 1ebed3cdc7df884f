#include "kernels/memory/arrivals.h"

#include <string>

#include "base/background_thread.h"
#include "base/exception_status.h"
#include "kernels/cuda/cuda_memory.h"

namespace tessera::kernels {

// ---- Room for what comes

Status Arrivals::Reserve(uint64_t packed_bytes, Unpacking* unpacking) {
  const auto reserve = [&]() -> Status {
    unpacking->scratch_at = reserved_scratch_;
    TESSERA_TRY(ReserveScratch(unpacking->plan.scratch_bytes));
    TESSERA_ASSIGN(unpacking->packed, ReserveArrival(packed_bytes));
    unpacking->begins_slab = unpacking->packed == reserved_.back().memory;
    return Status::Ok();
  };
  const Status status = Caught(reserve);
  if (status.ok()) return status;
  reserved_scratch_ = unpacking->scratch_at;
  FreeUnusedScratch();
  return status;
}

Result<uint8_t*> Arrivals::ReserveArrival(uint64_t bytes) {
  bytes = AlignedForUnpack(bytes);
  if (reserved_.empty() || reserved_.back().bytes - reserved_.back().used < bytes) {
    const uint64_t all = std::max(bytes, std::min(kSlab, budget_.bytes() / 64));
    TESSERA_ASSIGN(uint8_t* const memory, pieces_.Allocate(all));
    reserved_.push_back({memory, all, 0});
    bytes_ += all;
  }
  Slab& slab = reserved_.back();
  return slab.memory + std::exchange(slab.used, slab.used + bytes);
}

Status Arrivals::ReserveScratch(uint64_t bytes) {
  const uint64_t needed = reserved_scratch_ + bytes;
  if (scratch_ == nullptr || scratch_bytes_ < needed) {
    const uint64_t all = std::max({needed, MostScratch(), scratch_bytes_ + scratch_bytes_ / 2});
    TESSERA_ASSIGN(uint8_t* const memory, pieces_.Allocate(all));
    // Freed after all kernels that use it: a batch gives its reference back only after its kernels were started.
    scratch_ = {memory, [stream = streams_.unpack](uint8_t* p) { IgnoreError(cudaFreeAsync(p, stream)); }};
    scratch_bytes_ = all;
  }
  reserved_scratch_ = needed;
  return Status::Ok();
}

void Arrivals::FreeUnusedScratch() {
  if (scratch_.use_count() != 1 || reserved_scratch_ != 0) return;
  scratch_.reset();
  scratch_bytes_ = 0;
}

void Arrivals::Abandon() {
  for (const Slab& slab : reserved_) bytes_ -= slab.bytes;
  Free(&reserved_, streams_.copy);
  reserved_scratch_ = 0;
  FreeUnusedScratch();
}

void Arrivals::Free(std::vector<Slab>* slabs, cudaStream_t stream) {
  for (const Slab& s : *slabs) IgnoreError(cudaFreeAsync(s.memory, stream));
  slabs->clear();
}

// ---- Batches

void Arrivals::Take(ArrivingBatch* batch) {
  batch->slabs = std::exchange(reserved_, {});
  for (const Slab& slab : batch->slabs) batch->bytes += slab.bytes;
  if (std::exchange(reserved_scratch_, 0) > 0) batch->scratch = scratch_;
}

Status Arrivals::Prepare(ArrivingBatch* batch) {
  TESSERA_TRY(PrepareChecks(batch));
  return PrepareSteps(batch);
}

Status Arrivals::PrepareChecks(ArrivingBatch* batch) {
  size_t unchecked = 0;
  for (const auto& unpacking : batch->unpackings) unchecked += !unpacking->unchecked.expired();
  if (unchecked == 0) return Status::Ok();
  const uint64_t bytes = unchecked * sizeof(FoundCodes);
  TESSERA_ASSIGN(uint8_t* const memory, pieces_.Allocate(bytes));
  batch->found = reinterpret_cast<FoundCodes*>(memory);
  CUDA_TRY(cudaMemsetAsync(batch->found, 0, bytes, streams_.copy));
  FoundCodes* next = batch->found;
  for (const auto& unpacking : batch->unpackings) {
    if (!unpacking->unchecked.expired()) unpacking->found = next++;
  }
  return Status::Ok();
}

Status Arrivals::PrepareSteps(ArrivingBatch* batch) {
  if (batch->unpackings.empty()) return Status::Ok();
  for (const auto& unpacking : batch->unpackings) {
    batch->kernels.Add(unpacking->plan, unpacking->packed, unpacking->out, batch->scratch.get() + unpacking->scratch_at,
                       unpacking->found);
  }
  const std::vector<UnpackStep>& steps = batch->kernels.Finish();
  TESSERA_ASSIGN(uint8_t* const memory, pieces_.Allocate(steps.size() * sizeof(UnpackStep)));
  batch->steps = reinterpret_cast<UnpackStep*>(memory);
  return Status::Ok();
}

Status Arrivals::Start(cudaStream_t stream, ArrivingBatch* batch) {
  CUDA_TRY(batch->kernels.Start(batch->steps, stream));
  Free(&batch->slabs, stream);
  return Status::Ok();
}

Status Arrivals::Check(const ArrivingBatch& batch, cudaEvent_t done, cudaStream_t stream) {
  if (batch.found == nullptr) return Status::Ok();
  std::vector<const Unpacking*> checked;
  for (const auto& unpacking : batch.unpackings) {
    if (unpacking->found != nullptr) checked.push_back(unpacking.get());
  }
  std::vector<FoundCodes> found(checked.size());
  CUDA_TRY(cudaStreamWaitEvent(stream, done, 0));
  CUDA_TRY(
      cudaMemcpyAsync(found.data(), batch.found, found.size() * sizeof(FoundCodes), cudaMemcpyDeviceToHost, stream));
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

void Arrivals::GiveBack(ArrivingBatch* batch) {
  Free(&batch->slabs, streams_.copy);
  batch->unpackings.clear();
  if (batch->found != nullptr) IgnoreError(cudaFreeAsync(std::exchange(batch->found, nullptr), streams_.unpack));
  if (batch->steps != nullptr) IgnoreError(cudaFreeAsync(std::exchange(batch->steps, nullptr), streams_.unpack));
  bytes_ -= std::exchange(batch->bytes, 0);
  batch->scratch.reset();
  FreeUnusedScratch();
}

}  // namespace tessera::kernels
