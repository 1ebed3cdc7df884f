#include "kernels/run/tablet_feed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/shared_loops.h"
#include "base/thread_pool.h"
#include "tablet/files/file_mapping.h"
#include "vm/machine/entry_machine.h"
#include "vm/program/section_traits.h"

namespace tessera::kernels {
namespace {

/// A launch takes tablets until this much had to be copied for them, so that the next copies run beside it.
constexpr uint64_t kCopiedPerLaunch = uint64_t{256} << 20;
/// Rows of one launch: counters of blocks have 32 bits, and so do the halves of sums.
constexpr uint64_t kRowsPerLaunch = uint64_t{1} << 31;
/// The part of the free memory that a launch's columns get if its rows may be partitioned, and launches do not become
/// small by that.
constexpr uint64_t kMovedShare = 10;

/// Binding a tablet takes a microsecond, and waking threads fifty; but one that is read for the first time is checked,
/// which takes much longer. From the first one that took so long, several threads encode, until that is fast again.
constexpr auto kSlowBinding = std::chrono::microseconds(100);
/// Tablets that are encoded ahead, before there is anything to copy: encoded ones are small.
constexpr size_t kMostAhead = 4096;
/// A launch of so many rows lasts several times as long as what a launch costs, some 40 microseconds. To prepare a tablet takes
/// up to 3, and the device 3 to 13, so it should have something to do early.
constexpr uint64_t kRowsToStart = uint64_t{32} << 20;
/// Tablets between two looks at whether the device is still busy.
constexpr size_t kLooks = 16;
/// Tablets that one thread encodes before the copies of the first start, and that a launch makes room for at once.
constexpr size_t kEncodedTogether = 64, kExpectedTablets = 4096;
/// From this number of tablets on, several threads encode them where nothing can start before all are encoded.
constexpr size_t kManyTablets = 128;
/// What several threads read of tablets before the copies of the first start: 64 MiB are checked in some milliseconds,
/// and keep the link busy for one.
constexpr uint64_t kSharedBytes = uint64_t{64} << 20;

/// Encodes up to `most` tablets from `first` on. true: one took so long that several threads should do it, and it was the
/// last one. `ahead` may be nullptr.
bool EncodeTablets(GpuDevice* gpu, const vm::SectionEncoder& encoder, const TableInfo& table, size_t first, size_t most,
                   const vm::TabletEncoding* like, vm::ReadAhead* ahead, ThreadPool* pool,
                   std::vector<tessera::Result<vm::TabletEncoding>>* encoded) {
  const LoopRunner loop = [&](size_t n, const std::function<Status(size_t)>& f) { return ForEach(pool, n, f); };
  const size_t end = std::min(table.tablets.size(), first + most);
  encoded->reserve(end - first);
  auto start = std::chrono::steady_clock::now();
  for (size_t i = first; i < end; ++i) {
    if (ahead != nullptr) ahead->Begin(i);
    const tessera::Result<vm::TabletEncoding>& b =
        encoded->emplace_back(encoder.Encode(*table.tablets[i], like, loop, gpu->encodings.Take()));
    if (b.ok() && !b->skip) like = &*b;
    const auto now = std::chrono::steady_clock::now();
    if (now - start > kSlowBinding) return true;
    start = now;
  }
  return false;
}

/// Texts of a chunk that go to the device: several tablets have to be there at a time.
uint64_t MostTextBytes(const GpuDevice& gpu) { return gpu.cache.budget() / 16; }

uint64_t OffsetsBytes(const Chunk& chunk) { return (uint64_t{chunk.entries} + 1) * sizeof *chunk.entry_offsets; }

void HandTextsOn(const vm::SectionContext& context, vm::SectionEncoder* encoder) {
  if (context.late_texts == nullptr) return;
  encoder->HandOn(&context.handed_on->slots[static_cast<size_t>(context.section)], context.late_texts);
}

int Threads(const vm::SectionContext& context) { return context.pool == nullptr ? 1 : context.pool->threads(); }

}  // namespace

TabletsAhead EncodeAhead(GpuDevice* gpu, const vm::SectionContext& context,
                         const std::vector<vm::KeyRange>& key_ranges) {
  vm::SectionEncoder encoder(*context.program, context.section, context.traits->section(context.section),
                             context.strings, &vm::MakeEntryMachine, key_ranges);
  const vm::Section& section = context.program->sections[static_cast<size_t>(context.section)];
  if (!FileMapping::any_lost()) encoder.LeavePacked();
  encoder.LeaveToDevice(TextTests(*context.program, section).predicates(), MostTextBytes(*gpu));
  HandTextsOn(context, &encoder);
  TabletsAhead ahead{context.section, context.table, {}};
  const size_t most = std::min(context.table->tablets.size(), kMostAhead);
  ahead.tablets.reserve(most);
  const vm::TabletEncoding* like = nullptr;
  uint64_t rows = 0;
  for (size_t done = 0; done < most && !ahead.slow && (rows < kRowsToStart || gpu->IsBusy());) {
    ahead.slow = EncodeTablets(gpu, encoder, *context.table, done, std::min(most - done, kLooks), like, nullptr,
                               context.pool, &ahead.tablets);
    for (; done < ahead.tablets.size(); ++done) {
      const tessera::Result<vm::TabletEncoding>& b = ahead.tablets[done];
      if (!b.ok() || b->skip) continue;
      like = &*b;
      rows += b->rows;
    }
  }
  return ahead;
}

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
      encoder_(*context.program, context.section, context.traits->section(context.section), context.strings,
               &vm::MakeEntryMachine, key_ranges),
      rows_(rows) {
  if (!FileMapping::any_lost()) encoder_.LeavePacked();
  encoder_.LeaveToDevice(lowered.slots.text_tests.predicates(), MostTextBytes(*gpu));
  HandTextsOn(context, &encoder_);
  if (rows != nullptr || context.table == nullptr) return;
  std::vector<size_t> order(context.table->tablets.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // What has been read before may be on the device by now: nobody reads it again.
  ahead_ = std::make_unique<vm::ReadAhead>(&encoder_, context.table, std::move(order), false);
}

Status TabletFeed::UseTablets(TabletsAhead ahead) {
  encoded_ = std::move(ahead.tablets);
  encoding_is_slow_ = ahead.slow;
  for (tessera::Result<vm::TabletEncoding>& b : encoded_) {
    if (b.ok() && !b->skip) TESSERA_TRY(encoder_.EncodeKeyRanges(&*b));
  }
  return Status::Ok();
}

void TabletFeed::StartPass(uint64_t pass, bool encode_again) {
  first_pass_ = pass == 0;
  next_ = 0;
  if (!encode_again) return;
  ForgetEncoded();
  last_.reset();
}

void TabletFeed::ForgetEncoded() {
  for (tessera::Result<vm::TabletEncoding>& e : encoded_) {
    if (e.ok()) gpu_.encodings.Keep(std::move(*e));  // of a tablet that was skipped; others are empty
  }
  encoded_.clear();
}

bool TabletFeed::AtEnd() const { return next_ == tablets(); }

tessera::Result<vm::TabletEncoding>& TabletFeed::Encode(size_t number, const vm::TabletEncoding* like) {
  const TableInfo& table = *context_.table;
  if (number >= encoded_from_ && number < encoded_from_ + encoded_.size()) return encoded_[number - encoded_from_];
  ForgetEncoded();
  encoded_from_ = number;
  const size_t threads = static_cast<size_t>(Threads(context_)), left = table.tablets.size() - number;
  const bool are_waited_for = may_cut_.has_value() && !*may_cut_ && left >= kManyTablets;
  const size_t count =
                   encoding_is_slow_ ? SharedTablets(number, threads) : std::min(left, threads * kEncodedTogether / 2),
               workers = std::min(threads, count);
  if ((!encoding_is_slow_ && !are_waited_for) || workers == 1) {
    encoding_is_slow_ =
        EncodeTablets(&gpu_, encoder_, table, number, kEncodedTogether, like, ahead_.get(), context_.pool, &encoded_);
    return encoded_[0];
  }
  EncodeShared(number, count, workers, like);
  return encoded_[0];
}

void TabletFeed::EncodeShared(size_t number, size_t count, size_t workers, const vm::TabletEncoding* like) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<vm::TabletEncoding> spare(count);
  for (size_t i = 0; i < count; ++i) {
    spare[i] = gpu_.encodings.Take();
    encoded_.emplace_back(Cancelled());
  }
  // Threads beyond the encoders share what takes longest, work on texts.
  SharedLoops loops;
  const LoopRunner loop = [&](size_t n, const std::function<Status(size_t)>& f) { return loops.Run(n, f); };
  std::atomic<size_t> encoding{workers}, taken{0};
  // Where tablets were fast to encode, one that is not ends the round: its copies should start.
  std::atomic<bool> end{false};
  const auto encode = [&](size_t i, const vm::TabletEncoding* as) -> tessera::Result<vm::TabletEncoding> {
    if (context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed)) return Cancelled();
    ahead_->Begin(number + i);
    const auto begin = std::chrono::steady_clock::now();
    tessera::Result<vm::TabletEncoding> encoded =
        encoder_.Encode(*context_.table->tablets[number + i], as, loop, std::move(spare[i]));
    if (!encoding_is_slow_ && std::chrono::steady_clock::now() - begin > kSlowBinding) end = true;
    return encoded;
  };
  const bool texts = std::any_of(section_.slots.begin(), section_.slots.end(), [](const vm::Slot& s) {
    return s.map >= 0 || s.type.storage() == StorageClass::kText;
  });
  const Status status = context_.pool->Run(texts ? Threads(context_) : static_cast<int>(workers), [&](int worker) {
    const size_t w = static_cast<size_t>(worker);
    const vm::TabletEncoding* as = like;
    // (In order, as the disk is told.)
    for (size_t i; w < workers && !end && (i = taken++) < count;) {
      encoded_[i] = Caught([&] { return encode(i, as); });
      if (encoded_[i].ok() && !encoded_[i]->skip) as = &*encoded_[i];
    }
    if (w < workers && --encoding == 0) loops.Wake();
    loops.HelpUntil([&] { return encoding == 0; });
    return Status::Ok();
  });
  const size_t done = std::clamp<size_t>(taken, 1, count);
  encoded_.erase(encoded_.begin() + static_cast<ptrdiff_t>(done), encoded_.end());
  for (size_t i = done; i < count; ++i) gpu_.encodings.Keep(std::move(spare[i]));
  encoding_is_slow_ = (std::chrono::steady_clock::now() - start) * workers > kSlowBinding * done;
  if (!status.ok()) encoded_[0] = status;
}

size_t TabletFeed::SharedTablets(size_t number, size_t workers) const {
  const size_t left = context_.table->tablets.size() - number;
  // (Of the first tablets nothing is known.)
  return std::min(left, tablet_bytes_ == 0 ? workers : std::max<size_t>(workers, kSharedBytes / tablet_bytes_));
}

tessera::Result<bool> TabletFeed::Collect(const ColumnBudget& budget, UnderWay others,
                                          const FindSparseSlots& find_sparse, const MayCut& may_cut,
                                          TabletBatch* batch) {
  batch->ClearTablets();
  if (rows_ != nullptr) {
    CollectRows(batch);
    return true;
  }
  const TableInfo& table = *context_.table;
  vm::SectionStatistics& stats = *context_.statistics;
  const size_t slots = section_.slots.size(), most = std::min(table.tablets.size() - next_, kExpectedTablets);
  batch->tablets.reserve(most);
  batch->numbers.reserve(most);
  batch->codes.reserve(most * slots);
  batch->nulls.reserve(most * slots);
  batch->pinned.reserve(most * slots);
  const bool any_under_way = others != UnderWay::kNone;
  const uint64_t arriving = gpu_.cache.arriving_bytes();
  uint64_t bytes = 0, rows = 0, started = 0;
  while (!AtEnd() && started + copied_ < kCopiedPerLaunch) {
    if (context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed)) return Cancelled();
    if (!batch->tablets.empty() && rows + table.tablets[next_]->rows() > kRowsPerLaunch) break;
    if (!batch->tablets.empty() && gpu_.cache.arriving_bytes() - arriving > gpu_.cache.ArrivingShare()) break;
    if (started + copied_ == 0 && ShouldStart(*batch, rows, others, may_cut)) break;
    if (gpu_.cache.IsUnpackingMuch()) {
      if (!batch->tablets.empty()) break;
      if (any_under_way) return false;
    }
    tessera::Result<vm::TabletEncoding>& result = Encode(next_, !batch->tablets.empty() ? &batch->tablets.back()
                                                                : last_.has_value()     ? &*last_
                                                                                        : nullptr);
    TESSERA_TRY(result.status());
    vm::TabletEncoding& encoded = *result;
    if (encoded.skip) {
      if (first_pass_) ++stats.tablets_skipped;
      ++next_;
      continue;
    }
    const uint64_t size = FindNeeds(encoded);
    if (batch->tablets.empty()) {
      fits_ = size * table.tablets.size() <= gpu_.cache.budget();
      sparse_.reset();
    }
    if (bytes + size > budget.Bytes(gpu_.Room())) {
      if (!batch->tablets.empty()) break;
      if (any_under_way) return false;  // a tablet that is larger than that has the place of all
    }
    bytes += size;
    rows += encoded.rows;
    tablet_bytes_ = encoded.encoded_bytes;
    NoteKeys(encoded);
    batch->tablets.push_back(std::move(encoded));
    batch->numbers.push_back(next_);
    const Status uploaded = Upload(batch->tablets.size() - 1, find_sparse, batch);
    if (!uploaded.ok()) {
      // CUDA has less memory than the budget: what there is has to do for the tablets before this one, or for this one.
      const bool alone = batch->tablets.size() == 1 && !any_under_way;
      if (uploaded.code() != ErrorCode::kResource || alone) return uploaded;
      encoded = std::move(batch->tablets.back());
      batch->tablets.pop_back();
      batch->numbers.pop_back();
      batch->codes.resize(batch->tablets.size() * slots);
      batch->nulls.resize(batch->tablets.size() * slots);
      batch->bits.resize(batch->tablets.size() * slots);
      std::erase_if(batch->texts, [&](const TextPiece& p) { return p.tablet == batch->tablets.size(); });
      if (!batch->tablets.empty()) break;
      return false;
    }
    if (first_pass_) {
      stats.rows_in += batch->tablets.back().rows;
      stats.bytes_read += batch->tablets.back().encoded_bytes;
      stats.bytes_decoded += decoded_;
      stats.bytes_in_place += in_place_;
      stats.bytes_read_in_place += read_in_place_;
    }
    ++next_;
    if (gpu_.cache.HasEnoughToStart(Threads(context_))) {
      started += copied_;
      TESSERA_TRY(StartCopies(batch));
    }
  }
  TESSERA_TRY(StartCopies(batch));
  if (!batch->tablets.empty() && !AtEnd()) last_ = batch->tablets.back();
  return true;
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
  TESSERA_TRY(gpu_.cache.StartCopies(Threads(context_), &batch->copies));
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
  decoded_ = encoded.decoded_bytes;
  in_place_ = read_in_place_ = 0;
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
      decoded_ += chunk.codes_bytes;
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
    const bool may_be_bits = (*sparse_)[slot].may_be_bits && context_.decompression == vm::Decompression::kPartial;
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
  in_place_ += bytes;
  read_in_place_ += ReadOf(slot, bytes);
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
    if (gpu_.cache.HasEnoughToStart(Threads(context_))) TESSERA_TRY(StartCopies(batch));
    if (!first_pass_) continue;
    context_.statistics->bytes_in_place -= chunk.packed_bytes;
    context_.statistics->bytes_read_in_place -= ReadOf(slot, chunk.packed_bytes);
    context_.statistics->bytes_decoded += chunk.codes_bytes;
  }
  return StartCopies(batch);
}

const int64_t* TabletFeed::ReadPacked(size_t column, Chunk* chunk, vm::SlotEncoding* b) const {
  const PackedColumn& packed = rows_->packed.column(column);
  b->codes = packed.width == 0 ? nullptr : rows_->packed_at + packed.at;
  b->null_bytes = packed.has_null_bytes ? rows_->packed_at + packed.null_at : nullptr;
  if (b->wide) return reinterpret_cast<const int64_t*>(rows_->packed_at + (&packed)[1].at);
  b->decode = packed.width == 0 ? vm::Decode::kConstant : vm::Decode::kFrame;
  b->width = packed.width;
  b->base = packed.base;
  b->has_null_code = packed.has_null_code && packed.width > 0;
  b->all_null = packed.has_null_code && packed.width == 0;
  b->null_code = packed.null_code;
  chunk->encoding = packed.width == 0 ? Encoding::kConstant : Encoding::kFrame;
  chunk->width = packed.width;
  chunk->base = static_cast<int64_t>(packed.base);
  chunk->null_code = packed.null_code;
  chunk->null_count = b->all_null ? chunk->rows : b->has_null_code ? 1 : 0;  // (there are some)
  return nullptr;
}

void TabletFeed::CollectRows(TabletBatch* batch) {
  ++next_;
  if (rows_->rows == 0) return;
  vm::TabletEncoding encoded;
  encoded.rows = static_cast<uint32_t>(rows_->rows);
  row_chunks_.resize(section_.slots.size());
  for (size_t i = 0; i < section_.slots.size(); ++i) {
    const vm::Slot& slot = section_.slots[i];
    const PayloadShape& column = rows_->columns[static_cast<size_t>(slot.column)];
    Chunk& chunk = row_chunks_[i];
    chunk = {};
    chunk.type = slot.type;
    chunk.width = 8;
    chunk.rows = encoded.rows;
    chunk.min = column.low;
    chunk.max = column.high;
    encoded.chunks.emplace_back(ChunkPointer(), &chunk);
    vm::SlotEncoding b;
    b.decode = vm::Decode::kRaw;
    b.width = 8;
    b.wide = column.wide;
    b.codes = reinterpret_cast<const uint8_t*>(column.column);
    b.null_bytes = reinterpret_cast<const uint8_t*>(column.nulls);
    auto high = reinterpret_cast<const int64_t*>(column.column_high);
    if (rows_->packed_at != nullptr) high = ReadPacked(static_cast<size_t>(slot.column), &chunk, &b);
    encoded.slots.push_back(b);
    batch->codes.push_back(b.codes);
    batch->nulls.push_back(b.null_bytes);
    batch->highs.push_back(high);
  }
  if (first_pass_) context_.statistics->rows_in += encoded.rows;
  batch->numbers.push_back(0);
  NoteKeys(encoded);
  batch->tablets.push_back(std::move(encoded));
}

}  // namespace tessera::kernels
