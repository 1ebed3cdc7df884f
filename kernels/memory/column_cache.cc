#include "kernels/memory/column_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/exception_status.h"
#include "base/phase_clock.h"
#include "base/size_text.h"
#include "kernels/cuda/cuda_memory.h"
#include "tablet/chunk/tablet_format.h"

namespace tessera::kernels {
namespace {

/// Several threads copy from this many bytes on. That many take a thread a millisecond, and the link a tenth of that.
constexpr uint64_t kSharedCopy = uint64_t{4} << 20;
/// Copies after others that still wait: enough chunks to be unpacked in few kernels.
constexpr uint64_t kCopiedTogether = uint64_t{32} << 20;
/// Bytes of a stream for which to pin it is worth a call of CUDA.
constexpr uint64_t kLeastPinned = 64 << 10;

}  // namespace

ColumnCache::~ColumnCache() {
  copier_.Stop();
  pinner_.Stop();
  arrivals_.FreeAll();
  pieces_.FreeAll();
  streams_.Wait();
}

Status ColumnCache::Open(uint64_t budget_bytes) {
  int device = 0;
  CUDA_TRY(cudaGetDevice(&device));
  TESSERA_TRY(budget_.Open(budget_bytes, device));
  TESSERA_TRY(streams_.Open());
  copier_.Open(device);
  pinner_.Open(device);
  return Status::Ok();
}

bool ColumnCache::SetTransfer(Transfer transfer, uint64_t piece_bytes) {
  if (!copier_.SetTransfer(transfer, piece_bytes)) return false;
  pinner_.ForgetRequests();  // no page is pinned between the cutting of copies and their start
  return true;
}

// ---- What a launch reads

void ColumnCache::ReservePending() {
  if (pending_.size() == pending_.capacity()) pending_.reserve(std::max<size_t>(64, 2 * pending_.size()));
}

ColumnCache::Pending ColumnCache::MakePending(TabletPieces* of, size_t place, const uint8_t* at, uint64_t bytes) {
  CachedPiece* const piece = of->pieces[place];
  Pending pending{piece->self, at, bytes, piece->on_host ? CopyRoute::kToHost : CopyRoute::kStaged, nullptr, {}};
  if (copier_.transfer() == Transfer::kPageable) pending.pages = of->pages.lock();
  if (copier_.transfer() != Transfer::kStream || !pinner_.is_supported()) return pending;
  const std::shared_ptr<const PinnedPages> pages = of->pages.lock();
  const std::shared_ptr<const Tablet> tablet = of->tablet.lock();
  if (pages != nullptr && pages->Hold(at, AlignToStream(bytes))) {
    if (tablet != nullptr && PagePinner::IsWhole(*tablet)) {
      pending.route = CopyRoute::kDirect;
      pending.pages = pages;
      pending.mapping = tablet->Mapping();
    }
    return pending;
  }
  // Whatever goes wrong, it can be copied without.
  if (of->was_here[place] && bytes >= kLeastPinned && tablet != nullptr)
    (void)Caught([&]() -> Status {
      pinner_.PinSoon(tablet, at, bytes, &of->pages);
      return Status::Ok();
    });
  of->was_here[place] = true;
  return pending;
}

const uint8_t* ColumnCache::Pin(CachedPiece* piece, std::vector<CachedPiece*>* pinned) {
  pinned->push_back(piece);
  ++piece->pins;
  return static_cast<const uint8_t*>(piece->data);
}

Result<const uint8_t*> ColumnCache::Fetch(TabletPieces* of, int column, PieceStream stream, const uint8_t* data,
                                          uint64_t bytes, std::vector<CachedPiece*>* pinned, uint64_t* copied) {
  const size_t place = PlaceOf(column, stream);
  if (!of->Has(place)) ReservePending();
  TESSERA_ASSIGN(const bool is_new, pieces_.Add(of, place, bytes, copier_.transfer() == Transfer::kZeroCopy));
  CachedPiece* const piece = of->pieces[place];
  if (is_new) {
    pending_.push_back(MakePending(of, place, data, bytes));
    pending_bytes_ += piece->bytes;
    *copied += bytes;
  }
  return Pin(piece, pinned);
}

Result<const uint8_t*> ColumnCache::FetchPacked(TabletPieces* of, int column, const Chunk& chunk,
                                                std::vector<CachedPiece*>* pinned, uint64_t* copied) {
  const size_t place = PlaceOf(column, PieceStream::kCodes);
  if (of->HasCodes(column)) {
    TESSERA_TRY(pieces_.Add(of, place, chunk.codes_bytes, false).status());
  } else {
    TESSERA_TRY(BringPacked(of, column, chunk));
    *copied += chunk.packed_bytes;
  }
  return Pin(of->pieces[place], pinned);
}

Status ColumnCache::BringPacked(TabletPieces* of, int column, const Chunk& chunk) {
  const size_t place = PlaceOf(column, PieceStream::kCodes);
  auto unpacking = std::make_unique<Unpacking>();
  TESSERA_ASSIGN(unpacking->plan, PlanUnpack(chunk));
  unpacking->column = column;
  if (const auto tablet = of->tablet.lock(); tablet != nullptr && !tablet->AreCodesChecked(column)) {
    unpacking->unchecked = tablet;
  }
  ReservePending();
  TESSERA_TRY(pieces_.Add(of, place, chunk.codes_bytes, false).status());
  const PieceIterator piece = of->pieces[place]->self;
  unpacking->out = piece->data;
  ++piece->pins;  // to find memory may drop pieces
  const Status reserved = arrivals_.Reserve(chunk.packed_bytes, unpacking.get());
  --piece->pins;
  if (!reserved.ok()) {
    TESSERA_TRY(pieces_.Drop(piece));
    return reserved;
  }
  pending_.push_back(MakePending(of, place, chunk.packed_codes, chunk.packed_bytes));
  pending_.back().unpacking = std::move(unpacking);
  pending_bytes_ += chunk.packed_bytes;
  return Status::Ok();
}

bool ColumnCache::ReadInPlace(TabletPieces* of, int column, const uint8_t* codes, uint64_t bytes, bool may_stay) {
  const size_t place = PlaceOf(column, PieceStream::kCodes);
  if (of->HasCodes(column) || copier_.transfer() != Transfer::kStream) return false;
  const std::shared_ptr<const PinnedPages> pages = of->pages.lock();
  if (pages == nullptr || !pages->Hold(codes, bytes)) return false;
  const std::shared_ptr<const Tablet> tablet = of->tablet.lock();
  if (tablet == nullptr || !PagePinner::IsWhole(*tablet)) return false;
  if (place >= of->was_in_place.size()) of->was_in_place.resize(place + 1);
  if (may_stay && of->was_in_place[place]) return false;
  of->was_in_place[place] = true;
  return true;
}

void ColumnCache::Unpin(std::vector<CachedPiece*>* pinned) {
  for (CachedPiece* p : *pinned) --p->pins;
  pinned->clear();
}

// ---- Copies

bool ColumnCache::HasEnoughToStart(int threads) {
  if (arrivals_.HasMuchReserved()) return true;
  if (!copier_.MaySpread(threads) || pending_bytes_ < kSharedCopy) return false;
  return pending_bytes_ >= kCopiedTogether || copier_.IsLinkIdle();
}

std::vector<ColumnCache::Pending> ColumnCache::TakePending(Copies* copies) {
  copies->pieces.reserve(pending_.size());
  for (const Pending& p : pending_) {  // nothing fails from here on
    copies->pieces.push_back(p.piece);
    bytes_in_ += p.bytes;
  }
  pending_bytes_ = 0;
  arrivals_.Take(&copies->arriving);
  return std::exchange(pending_, {});
}

void ColumnCache::AddPartsOf(const Pending& pending, uint8_t* to, uint64_t padded,
                             const std::shared_ptr<Copies>& copies, std::vector<CopyPart>* parts) {
  const bool joins = pending.unpacking != nullptr && !pending.unpacking->begins_slab;
  const CopyWay way{pending.from, to, pending.bytes, padded, joins};
  if (pending.pages == nullptr) return AddParts(way, pending.route, copies, parts);
  AddPinnedParts(*pending.pages, way, pending.route, copies, parts);
}

Status ColumnCache::MakeParts(std::vector<Pending> taken, const std::shared_ptr<Copies>& copies,
                              std::vector<CopyPart>* parts) {
  ArrivingBatch& arriving = copies->arriving;
  for (Pending& p : taken) {
    if (p.unpacking == nullptr) continue;
    AddPartsOf(p, p.unpacking->packed, AlignedForUnpack(p.bytes), copies, parts);
    if (p.route == CopyRoute::kDirect) copies->mappings.push_back(p.mapping);
    arriving.unpackings.push_back(std::move(p.unpacking));
    p.bytes = 0;
  }
  TESSERA_TRY(arrivals_.Prepare(&arriving));
  if (arriving.steps != nullptr) {
    const std::vector<UnpackStep>& steps = arriving.kernels.steps();
    const uint64_t bytes = steps.size() * sizeof(UnpackStep);
    AddParts({reinterpret_cast<const uint8_t*>(steps.data()), reinterpret_cast<uint8_t*>(arriving.steps), bytes, bytes},
             CopyRoute::kStaged, copies, parts);
  }
  for (const Pending& p : taken) {
    if (p.bytes != 0) AddPartsOf(p, p.piece->data, p.piece->bytes, copies, parts);
  }
  return Status::Ok();
}

Status ColumnCache::StartCopies(int threads, CopiesList* started) {
  if (pending_.empty()) return Status::Ok();
  if (copier_.transfer() == Transfer::kSync) TESSERA_TRY(WaitForReaders());
  started->reserve(started->size() + 1);
  auto copies = std::make_shared<Copies>();
  CUDA_TRY(cudaEventCreateWithFlags(&copies->done, cudaEventDisableTiming));
  copier_.SetPartBytes(threads, copies.get());
  // The rest of a batch goes the way of what was started before, so that the caller is free.
  bool shared = copier_.MaySpread(threads) && (pending_bytes_ >= kSharedCopy || !started->empty());
  std::vector<Pending> taken = TakePending(copies.get());
  std::vector<CopyPart> parts;
  const Status status = Caught([&] {
    TESSERA_TRY(MakeParts(std::move(taken), copies, &parts));
    copies->left = parts.size();
    copies->started = Clock::now();
    shared = shared && copier_.Queue(threads, &parts);
    return Status::Ok();
  });
  if (!status.ok()) {
    streams_.Wait();
    arrivals_.GiveBack(&copies->arriving);
    CachedPieces::Forget(&copies->pieces);
    return status;
  }
  started->push_back(copies);
  if (!shared) copier_.CopyHere(parts);
  return Status::Ok();
}

Status ColumnCache::WaitForReaders() {
  if (readers_ != nullptr) CUDA_TRY(cudaStreamSynchronize(readers_));
  return Status::Ok();
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
    copier_.WaitUntilIssued(copies);
    if (copies->error.ok()) copies->error = Arrivals::Check(copies->arriving, copies->done, stream);
  }
  if (!copies->error.ok()) streams_.Wait();
  arrivals_.GiveBack(&copies->arriving);
  if (!copies->error.ok()) {
    CachedPieces::Forget(&copies->pieces);
    return copies->error;
  }
  *milliseconds += copies->milliseconds;
  readers_ = stream;
  if (const cudaError_t error = cudaStreamWaitEvent(stream, copies->done, 0); error != cudaSuccess) {
    streams_.Wait();  // the pieces stay, and nothing else waits for them
    return CudaStatus(error, "cudaStreamWaitEvent", __FILE__, __LINE__);
  }
  return Status::Ok();
}

void ColumnCache::Abandon(CopiesList* copies) {
  std::vector<PieceIterator> gone;
  for (const Pending& p : pending_) gone.push_back(p.piece);
  pending_.clear();
  pending_bytes_ = 0;
  arrivals_.Abandon();
  for (const std::shared_ptr<Copies>& abandoned : *copies) {
    copier_.Withdraw(abandoned);
    streams_.Wait();
    const bool unchecked = abandoned->arriving.found != nullptr;
    arrivals_.GiveBack(&abandoned->arriving);
    if (!abandoned->error.ok() || unchecked)
      gone.insert(gone.end(), abandoned->pieces.begin(), abandoned->pieces.end());
  }
  copies->clear();
  CachedPieces::Forget(&gone);
}

// ---- Memory

Status ColumnCache::Clear() {
  TESSERA_TRY(pieces_.Clear());
  CUDA_TRY(cudaStreamSynchronize(streams_.copy));
  CUDA_TRY(cudaStreamSynchronize(streams_.unpack));
  return Status::Ok();
}

Status ColumnCache::Trim() {
  CUDA_TRY(budget_.FreeSpareAndWait());
  TESSERA_TRY(Clear());
  CUDA_TRY(cudaMemPoolTrimTo(budget_.pool(), 0));
  pieces_.FreeSpareOnHost();
  return Status::Ok();
}

Status ColumnCache::Claim(uint64_t bytes) {
  TESSERA_TRY(pieces_.MakeRoom(bytes));
  if (!budget_.Fits(bytes)) {
    return {ErrorCode::kResource,
            "the GPU's memory budget of " + SizeText(budget_.bytes()) + " has no room for " + SizeText(bytes) +
                " more, and " + SizeText(std::min(budget_.bytes(), budget_.taken())) + " are in use",
            "Give --gpu-memory more, or use --device host."};
  }
  budget_.Claim(bytes);
  return Status::Ok();
}

}  // namespace tessera::kernels
