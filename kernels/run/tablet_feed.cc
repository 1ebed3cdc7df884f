#include "kernels/run/tablet_feed.h"

#include <algorithm>
#include <utility>

#include "tablet/files/file_mapping.h"

namespace tessera::kernels {
namespace {

/// A launch takes tablets until this much had to be copied for them, so that the next copies run beside it.
constexpr uint64_t kCopiedPerLaunch = uint64_t{256} << 20;
/// Rows of one launch: counters of blocks have 32 bits, and so do the halves of sums.
constexpr uint64_t kRowsPerLaunch = uint64_t{1} << 31;
/// The part of the free memory that a launch's columns get if its rows may be partitioned, and launches do not become
/// small by that.
constexpr uint64_t kMovedShare = 10;

/// Tablets that a launch makes room for at once.
constexpr size_t kExpectedTablets = 4096;

uint64_t OffsetsBytes(const Chunk& chunk) { return (uint64_t{chunk.entries} + 1) * sizeof *chunk.entry_offsets; }

}  // namespace

uint64_t ColumnBudget::Bytes(uint64_t room) const {
  // All batches in flight hold pieces. What else is needed on the way, a section's groups, the rows of a join table,
  // or those that are ordered, grows into what is left.
  const uint64_t moved = room / kMovedShare;
  if (may_partition && moved >= kCopiedPerLaunch) return moved;
  if (sink_grows) return room / 2 / kBatches;
  return (room - std::min(room / 2, reserved_bytes)) / kBatches;
}

TabletFeed::TabletFeed(GpuDevice* gpu, const vm::SectionContext& context, const LoweredProgram& lowered,
                       const std::vector<vm::KeyRange>& key_ranges, const RowSource* rows)
    : gpu_(*gpu),
      context_(context),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      lowered_(lowered),
      encoder_(gpu, context, lowered.slots.text_tests, key_ranges, rows == nullptr && context.table != nullptr),
      row_tablet_(section_, rows) {}

void TabletFeed::StartPass(uint64_t pass, bool encode_again) {
  first_pass_ = pass == 0;
  next_ = 0;
  if (!encode_again) return;
  encoder_.Forget();
  last_.reset();
}

bool TabletFeed::AtEnd() const { return next_ == tablets(); }

tessera::Result<bool> TabletFeed::Collect(const ColumnBudget& budget, UnderWay others,
                                          const FindSparseSlots& find_sparse, const MayCut& may_cut,
                                          TabletBatch* batch) {
  batch->ClearTablets();
  if (row_tablet_.reads_rows()) {
    CollectRows(batch);
    return true;
  }
  MakeRoom(batch);
  const std::vector<std::shared_ptr<const Tablet>>& tablets = context_.table->tablets;
  const uint64_t arriving = gpu_.cache.arriving_bytes();
  Collected so_far;
  while (!AtEnd() && so_far.started + copied_ < kCopiedPerLaunch) {
    if (context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed)) return Cancelled();
    if (!batch->tablets.empty() && so_far.rows + tablets[next_]->rows() > kRowsPerLaunch) break;
    if (!batch->tablets.empty() && gpu_.cache.arriving_bytes() - arriving > gpu_.cache.ArrivingShare()) break;
    if (so_far.started + copied_ == 0 && ShouldStart(*batch, so_far.rows, others, may_cut)) break;
    TESSERA_ASSIGN(const Taken taken, TakeNext(budget, others != UnderWay::kNone, find_sparse, &so_far, batch));
    if (taken == Taken::kNoRoom && batch->tablets.empty()) return false;
    if (taken == Taken::kNoRoom) break;
    if (taken == Taken::kYes && gpu_.cache.HasEnoughToStart(ThreadsOf(context_))) {
      so_far.started += copied_;
      TESSERA_TRY(StartCopies(batch));
    }
  }
  TESSERA_TRY(StartCopies(batch));
  if (!batch->tablets.empty() && !AtEnd()) last_ = batch->tablets.back();
  return true;
}

void TabletFeed::MakeRoom(TabletBatch* batch) const {
  const size_t slots = section_.slots.size();
  const size_t most = std::min(context_.table->tablets.size() - next_, kExpectedTablets);
  batch->tablets.reserve(most);
  batch->numbers.reserve(most);
  batch->codes.reserve(most * slots);
  batch->nulls.reserve(most * slots);
  batch->pinned.reserve(most * slots);
}

tessera::Result<TabletFeed::Taken> TabletFeed::TakeNext(const ColumnBudget& budget, bool any_under_way,
                                                        const FindSparseSlots& find_sparse, Collected* so_far,
                                                        TabletBatch* batch) {
  // A tablet that is larger than what a launch may take has the place of all.
  const bool alone = batch->tablets.empty() && !any_under_way;
  if (gpu_.cache.IsUnpackingMuch() && !alone) return Taken::kNoRoom;
  const vm::TabletEncoding* const like = !batch->tablets.empty() ? &batch->tablets.back()
                                         : last_.has_value()     ? &*last_
                                                                 : nullptr;
  tessera::Result<vm::TabletEncoding>& result = encoder_.Encode(next_, like, may_cut_.has_value() && !*may_cut_);
  TESSERA_TRY(result.status());
  vm::TabletEncoding& encoded = *result;
  if (encoded.skip) {
    if (first_pass_) ++context_.statistics->tablets_skipped;
    ++next_;
    return Taken::kSkipped;
  }
  const uint64_t size = FindNeeds(encoded);
  if (batch->tablets.empty()) {
    fits_ = size * context_.table->tablets.size() <= gpu_.cache.budget();
    sparse_.reset();
  }
  if (so_far->bytes + size > budget.Bytes(gpu_.Room()) && !alone) return Taken::kNoRoom;
  so_far->bytes += size;
  so_far->rows += encoded.rows;
  encoder_.NoteBytes(encoded.encoded_bytes);
  NoteKeys(encoded);
  batch->tablets.push_back(std::move(encoded));
  batch->numbers.push_back(next_);
  const Status uploaded = Upload(batch->tablets.size() - 1, find_sparse, batch);
  if (!uploaded.ok()) {
    // CUDA has less memory than the budget: what there is has to do for the tablets before this one, or for this one.
    if (uploaded.code() != ErrorCode::kResource || alone) return uploaded;
    TakeBack(&encoded, batch);
    return Taken::kNoRoom;
  }
  if (first_pass_) AddStatistics(batch->tablets.back());
  ++next_;
  return Taken::kYes;
}

void TabletFeed::TakeBack(vm::TabletEncoding* encoded, TabletBatch* batch) const {
  const size_t slots = section_.slots.size();
  *encoded = std::move(batch->tablets.back());
  batch->tablets.pop_back();
  batch->numbers.pop_back();
  batch->codes.resize(batch->tablets.size() * slots);
  batch->nulls.resize(batch->tablets.size() * slots);
  batch->bits.resize(batch->tablets.size() * slots);
  std::erase_if(batch->texts, [&](const TextPiece& p) { return p.tablet == batch->tablets.size(); });
}

void TabletFeed::AddStatistics(const vm::TabletEncoding& encoded) const {
  vm::SectionStatistics& stats = *context_.statistics;
  stats.rows_in += encoded.rows;
  stats.bytes_read += encoded.encoded_bytes;
  stats.bytes_decoded += uploaded_.decoded;
  stats.bytes_in_place += uploaded_.in_place;
  stats.bytes_read_in_place += uploaded_.read_in_place;
}

void TabletFeed::CollectRows(TabletBatch* batch) {
  ++next_;
  row_tablet_.AddTo(batch);
  if (batch->tablets.empty()) return;
  const vm::TabletEncoding& encoded = batch->tablets.back();
  if (first_pass_) context_.statistics->rows_in += encoded.rows;
  NoteKeys(encoded);
}

bool TabletFeed::ShouldStart(const TabletBatch& batch, uint64_t rows, UnderWay others, const MayCut& may_cut) {
  const std::vector<std::shared_ptr<const Tablet>>& all = context_.table->tablets;
  if (rows < kRowsToStart || next_ % kLooks != 0 || (all.size() - next_) * all[next_]->rows() < kRowsToStart)
    return false;
  if (!may_cut_.has_value()) may_cut_ = may_cut(batch.tablets);
  return *may_cut_ && (others == UnderWay::kNone || (others == UnderWay::kRunning && !gpu_.IsBusy()));
}

Status TabletFeed::StartCopies(TabletBatch* batch) {
  if (copied_ == 0) return Status::Ok();
  TESSERA_TRY(gpu_.cache.StartCopies(ThreadsOf(context_), &batch->copies));
  context_.statistics->bytes_transferred += std::exchange(copied_, 0);
  return Status::Ok();
}

void TabletFeed::NoteKeys(const vm::TabletEncoding& encoded) {
  if (section_.sink != vm::Section::Sink::kJoin || lowered_.keys.build_slot < 0) return;
  const Chunk& chunk = *encoded.chunks[static_cast<size_t>(lowered_.keys.build_slot)];
  if (chunk.type.storage() == StorageClass::kText || chunk.min > chunk.max || chunk.min < INT64_MIN ||
      chunk.max > INT64_MAX)
    return;
  const int64_t low = static_cast<int64_t>(chunk.min), high = static_cast<int64_t>(chunk.max);
  source_keys_ = {true, source_keys_.known ? std::min(source_keys_.low, low) : low,
                  source_keys_.known ? std::max(source_keys_.high, high) : high};
}

uint64_t TabletFeed::FindNeeds(const vm::TabletEncoding& encoded) {
  needs_.assign(encoded.slots.size(), {});
  uint64_t bytes = 0;
  for (size_t i = 0; i < encoded.slots.size(); ++i) {
    const vm::SlotEncoding& b = encoded.slots[i];
    if (lowered_.slots.values[i] && !b.all_null)
      needs_[i] = {b.width != 0 && !b.row_codes && b.made_bytes == 0, b.null_bytes != nullptr};
  }
  for (const vm::PredicateEncoding& p : encoded.predicates) {
    using Kind = vm::PredicateEncoding::Kind;
    Needs& needs = needs_[static_cast<size_t>(p.slot)];
    const Chunk& chunk = *encoded.chunks[static_cast<size_t>(p.slot)];
    needs.codes |= p.kind == Kind::kRange || (p.kind == Kind::kSet && !p.by_row);
    needs.nulls |= p.kind == Kind::kNulls || (p.on_device && chunk.null_bytes != nullptr);
    // The set is memory of the launch.
    if (p.on_device) bytes += OffsetsBytes(chunk) + chunk.text_bytes + chunk.rows;
  }
  for (size_t i = 0; i < encoded.slots.size(); ++i) {
    if (needs_[i].codes) bytes += encoded.chunks[i]->codes_bytes;
    if (needs_[i].nulls) bytes += encoded.chunks[i]->rows;
  }
  return bytes;
}

tessera::Result<TabletFeed::StoredPieces> TabletFeed::PiecesOf(const std::shared_ptr<const Tablet>& tablet,
                                                               int column) {
  const ColumnSource source = tablet->SourceOf(column);
  TESSERA_ASSIGN(TabletPieces * pieces, gpu_.cache.Find(source.tablet != nullptr ? source.tablet : tablet));
  return StoredPieces{pieces, source.column};
}

Status TabletFeed::Upload(size_t at, const FindSparseSlots& find_sparse, TabletBatch* batch) {
  const std::shared_ptr<const Tablet>& tablet = context_.table->tablets[batch->numbers[at]];
  const vm::TabletEncoding& encoded = batch->tablets[at];
  uploaded_ = {encoded.decoded_bytes, 0, 0};
  const size_t first = at * encoded.slots.size();
  batch->codes.resize(first + encoded.slots.size());
  batch->nulls.resize(first + encoded.slots.size());
  batch->bits.resize(first + encoded.slots.size());
  for (size_t i = 0; i < encoded.slots.size(); ++i) {
    TESSERA_ASSIGN(const StoredPieces stored, PiecesOf(tablet, section_.slots[i].column));
    const auto [pieces, column] = stored;
    const Chunk& chunk = *encoded.chunks[i];
    if (encoded.slots[i].row_codes && !encoded.slots[i].all_null) {
      TESSERA_ASSIGN(batch->codes[first + i], gpu_.RowNumbers());
    } else if (needs_[i].codes && ReadInPlace(at, i, find_sparse, stored, batch)) {
      // Nothing is copied.
    } else if (needs_[i].codes && chunk.packed_codes != nullptr &&
               !(chunk.codes != nullptr && FileMapping::any_lost())) {
      TESSERA_ASSIGN(batch->codes[first + i], gpu_.cache.FetchPacked(pieces, column, chunk, &batch->pinned, &copied_));
      uploaded_.decoded += chunk.codes_bytes;
    } else if (needs_[i].codes) {
      TESSERA_ASSIGN(batch->codes[first + i], gpu_.cache.Fetch(pieces, column, PieceStream::kCodes, chunk.codes,
                                                               chunk.codes_bytes, &batch->pinned, &copied_));
    }
    if (needs_[i].nulls) {
      TESSERA_ASSIGN(batch->nulls[first + i], gpu_.cache.Fetch(pieces, column, PieceStream::kNulls, chunk.null_bytes,
                                                               chunk.rows, &batch->pinned, &copied_));
    }
  }
  for (size_t i = 0; i < encoded.predicates.size(); ++i) {
    if (!encoded.predicates[i].on_device) continue;
    const size_t slot = static_cast<size_t>(encoded.predicates[i].slot);
    const Chunk& chunk = *encoded.chunks[slot];
    TESSERA_ASSIGN(const StoredPieces stored, PiecesOf(tablet, section_.slots[slot].column));
    const auto [pieces, column] = stored;
    TextPiece& piece = batch->texts.emplace_back(TextPiece{at, i});
    TESSERA_ASSIGN(piece.offsets, gpu_.cache.Fetch(pieces, column, PieceStream::kOffsets,
                                                   reinterpret_cast<const uint8_t*>(chunk.entry_offsets),
                                                   OffsetsBytes(chunk), &batch->pinned, &copied_));
    TESSERA_ASSIGN(piece.texts, gpu_.cache.Fetch(pieces, column, PieceStream::kTexts,
                                                 reinterpret_cast<const uint8_t*>(chunk.entry_bytes), chunk.text_bytes,
                                                 &batch->pinned, &copied_));
  }
  return Status::Ok();
}

uint64_t TabletFeed::ReadOf(size_t slot, uint64_t bytes) const {
  return static_cast<uint64_t>((*sparse_)[slot].touched * static_cast<double>(bytes));
}

bool TabletFeed::ReadInPlace(size_t at, size_t slot, const FindSparseSlots& find_sparse, const StoredPieces& stored,
                             TabletBatch* batch) {
  const int column = section_.slots[slot].column;
  if (!gpu_.cache.has_pinned_pages() || stored.pieces->HasCodes(stored.column)) return false;
  const vm::TabletEncoding& encoded = batch->tablets[at];
  if (!sparse_.has_value()) sparse_ = find_sparse(encoded);
  if (sparse_->empty() || !(*sparse_)[slot].is_sparse) return false;
  const Tablet& tablet = *context_.table->tablets[batch->numbers[at]];
  const Chunk& chunk = *encoded.chunks[slot];
  const uint8_t* stream = chunk.codes;
  uint64_t bytes = chunk.codes_bytes;
  BitStream bits;
  if (chunk.packed_codes != nullptr) {
    const bool may_be_bits =
        (*sparse_)[slot].may_be_bits && context_.settings.decompression == vm::Decompression::kPartial;
    if (!may_be_bits || !tablet.AreCodesChecked(column)) return false;
    const std::optional<BitStream> packed = AsBits(chunk);
    if (!packed.has_value()) return false;
    bits = *packed;
    stream = chunk.packed_codes;
    bytes = chunk.packed_bytes;
  }
  if (stream == nullptr || !gpu_.cache.ReadInPlace(stored.pieces, stored.column, stream, bytes, fits_)) return false;
  const size_t place = at * encoded.slots.size() + slot;
  batch->codes[place] = bits.at != nullptr ? bits.at : stream;
  batch->bits[place] = bits;
  uploaded_.in_place += bytes;
  uploaded_.read_in_place += ReadOf(slot, bytes);
  return true;
}

Status TabletFeed::UnpackBits(TabletBatch* batch) {
  const size_t slots = section_.slots.size();
  for (size_t i = 0; i < batch->bits.size(); ++i) {
    if (batch->bits[i].at == nullptr) continue;
    const size_t slot = i % slots;
    const Chunk& chunk = *batch->tablets[i / slots].chunks[slot];
    const std::shared_ptr<const Tablet>& tablet = context_.table->tablets[batch->numbers[i / slots]];
    TESSERA_ASSIGN(const StoredPieces stored, PiecesOf(tablet, section_.slots[slot].column));
    TESSERA_ASSIGN(batch->codes[i],
                   gpu_.cache.FetchPacked(stored.pieces, stored.column, chunk, &batch->pinned, &copied_));
    batch->bits[i] = {};
    if (gpu_.cache.HasEnoughToStart(ThreadsOf(context_))) TESSERA_TRY(StartCopies(batch));
    if (!first_pass_) continue;
    context_.statistics->bytes_in_place -= chunk.packed_bytes;
    context_.statistics->bytes_read_in_place -= ReadOf(slot, chunk.packed_bytes);
    context_.statistics->bytes_decoded += chunk.codes_bytes;
  }
  return StartCopies(batch);
}

}  // namespace tessera::kernels
