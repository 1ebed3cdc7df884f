#include "kernels/ranks/exchange_join.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/exception_status.h"
#include "kernels/ranks/group_parts.h"
#include "kernels/rows/row_source.h"
#include "vm/shares/tell_ranks.h"

namespace tessera::kernels {
namespace {

bool HasTexts(const std::vector<SqlType>& columns) {
  return std::ranges::any_of(columns, [](const SqlType& t) { return t.storage() == StorageClass::kText; });
}

/// Where rows [first, first + rows) of packed ones are, column by column.
void AddPieces(const PackedRows& packed, uint8_t* base, uint64_t first, uint64_t rows, std::vector<DeviceBytes>* out) {
  for (const PackedColumn& c : packed.columns()) {
    if (c.width > 0) out->push_back({base + c.at + first * c.width, rows * c.width});
    if (c.has_null_bytes) out->push_back({base + c.null_at + first, rows});
  }
}

/// Kernels may read codes after the last row, see pack_rows.h. (The last rows may have come from elsewhere.)
Status ClearPadding(const PackedRows& packed, uint8_t* base, cudaStream_t stream) {
  const uint64_t rows = packed.rows(), rest = (kPaddedRows - rows % kPaddedRows) % kPaddedRows;
  if (rest == 0) return Status::Ok();
  for (const PackedColumn& c : packed.columns()) {
    if (c.width > 0) CUDA_TRY(cudaMemsetAsync(base + c.at + rows * c.width, 0, rest * c.width, stream));
    if (c.has_null_bytes) CUDA_TRY(cudaMemsetAsync(base + c.null_at + rows, 0, rest, stream));
  }
  return Status::Ok();
}

}  // namespace

JoinExchange::JoinExchange(GpuDevice* gpu, RankLinks* links, RankTexts* texts, const vm::SectionContext& context,
                           size_t keys, std::array<JoinSide, 2> sides)
    : gpu_(*gpu),
      links_(*links),
      texts_(*texts),
      exchange_(*context.exchange),
      strings_(*context.strings),
      threads_(context.pool),
      keys_(keys),
      ranks_(static_cast<size_t>(exchange_.ranks())),
      own_(static_cast<size_t>(exchange_.rank())),
      sides_(std::move(sides)),
      outgoing_(ranks_),
      incoming_(ranks_) {}

bool JoinExchange::has_texts(Which side) const { return HasTexts(*sides_[side].columns); }

tessera::Result<JoinExchange::Offer> JoinExchange::OwnOffer(bool can) {
  Offer mine;
  bool texts = false;
  for (const Which side : {kBuild, kProbe}) {
    mine.rows[side] = RowsOf(sides_[side]);
    std::ranges::copy(sides_[side].summaries, mine.columns[side]);
    texts = texts || has_texts(side);
  }
  mine.can = can && ranks_ <= kMaxParts && keys_ <= kMaxExchangeKeys ? 1 : 0;
  if (texts && mine.can != 0) {
    const uint64_t count = strings_.count();
    if (count > RankTexts::kMostTexts) mine.can = 0;
    for (const JoinSide& side : sides_) {
      if (mine.can != 0 && HasTexts(*side.columns) && RowsOf(side) > 0)
        TESSERA_TRY(texts_.Mark(&gpu_, *side.columns, *side.rows, count));
    }
    if (mine.can != 0) mine.text_bytes = texts_.Prepare(strings_);
  }
  mine.is_linked = links_.is_connected() ? 1 : 0;
  mine.room = gpu_.Room();
  return mine;
}

void JoinExchange::MergeSummaries(const std::vector<Offer>& offers, Which side) {
  std::vector<ColumnSummary>& all = came_[side].summaries;
  all.resize(std::min<size_t>(sides_[side].columns->size(), kMaxSummaries));
  for (size_t c = 0; c < all.size(); ++c) {
    for (const Offer& offer : offers) {
      const ColumnSummary& s = offer.columns[side][c];
      all[c].low = std::min(all[c].low, s.low);
      all[c].high = std::max(all[c].high, s.high);
      all[c].nulls += s.nulls;
    }
  }
}

KeyBuckets JoinExchange::Buckets(uint64_t build_rows) const {
  const auto is_integer = [](const SqlType& type) { return type.storage() == StorageClass::kInt; };
  const bool integer =
      keys_ == 1 && is_integer((*sides_[kBuild].columns)[0]) && is_integer((*sides_[kProbe].columns)[0]);
  return ChooseBuckets(came_[kBuild].summaries[0], build_rows, integer);
}

tessera::Result<std::vector<uint32_t>> JoinExchange::CountBuckets() const {
  std::vector<uint32_t> counts(2 * kBuckets);
  RunBuffer there;
  const uint64_t bytes = counts.size() * sizeof(uint32_t);
  TESSERA_TRY(there.Allocate(&gpu_, bytes));
  CUDA_TRY(cudaMemsetAsync(there.As<void>(), 0, bytes, gpu_.stream));
  for (const Which side : {kBuild, kProbe}) {
    if (RowsOf(sides_[side]) == 0) continue;
    CUDA_TRY(StartCountBuckets(KeysOf(sides_[side]), by_, static_cast<uint32_t>(RowsOf(sides_[side])),
                               there.As<uint32_t>() + side * kBuckets, gpu_.stream));
  }
  CUDA_TRY(cudaMemcpyAsync(counts.data(), there.As<void>(), bytes, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return counts;
}

bool JoinExchange::Fits(const std::vector<Offer>& offers, const std::array<std::vector<BucketRows>, 2>& rows) const {
  for (size_t r = 0; r < ranks_; ++r) {
    uint64_t bytes = 0;
    for (const Which side : {kBuild, kProbe}) {
      const std::vector<SqlType>& columns = *sides_[side].columns;
      const vm::Moved moved = vm::RowsMoved(side == kBuild ? plan_.build : plan_.probe, rows[side], r);
      const bool unpacked = side == kBuild || has_texts(side);
      if (moved.received > kMostKeptRows) return false;
      bytes += offers[r].rows[side] * sizeof(uint32_t);
      bytes += PackedRows(columns, came_[side].summaries, moved.sent + ranks_ * kPaddedRows).bytes();
      bytes += PackedRows(columns, came_[side].summaries, moved.received).bytes();
      if (unpacked) bytes += moved.received * RowBytes(columns);
    }
    if (bytes > offers[r].room) return false;
  }
  return true;
}

tessera::Result<bool> JoinExchange::Agree(Status mine, bool can, bool spread_build) {
  Offer own;
  if (mine.ok()) {
    tessera::Result<Offer> offer = Caught([&] { return OwnOffer(can); });
    if (offer.ok()) own = *offer;
    mine = offer.status();
  }
  TESSERA_ASSIGN(const std::vector<Offer> offers, vm::TellRanks(&exchange_, mine, own));
  if (std::ranges::any_of(offers, [](const Offer& o) { return o.can == 0; })) return false;
  if (std::ranges::any_of(offers, [](const Offer& o) { return o.is_linked == 0; }))
    TESSERA_TRY(links_.Connect(gpu_.ordinal(), &exchange_));
  uint64_t build_rows = 0;
  for (const Offer& offer : offers) {
    build_rows += offer.rows[kBuild];
    text_bytes_.push_back(offer.text_bytes);
  }
  MergeSummaries(offers, kBuild);
  MergeSummaries(offers, kProbe);
  by_ = Buckets(build_rows);
  tessera::Result<std::vector<uint32_t>> counts = CountBuckets();
  if (!counts.ok()) mine = counts.status();
  TESSERA_ASSIGN(const std::vector<std::vector<uint32_t>> all,
                 vm::TellRanks(&exchange_, mine, mine.ok() ? *counts : std::vector<uint32_t>(2 * kBuckets)));
  std::array<std::vector<BucketRows>, 2> rows;
  for (const std::vector<uint32_t>& of_rank : all) {
    rows[kBuild].emplace_back(of_rank.begin(), of_rank.begin() + kBuckets);
    rows[kProbe].emplace_back(of_rank.begin() + kBuckets, of_rank.end());
  }
  plan_ = vm::PlanBuckets(rows[kBuild], rows[kProbe], spread_build);
  return Fits(offers, rows);
}

tessera::Result<std::vector<uint32_t>> JoinExchange::ListParts(Which side, RunBuffer* lists) const {
  std::vector<uint32_t> counts(ranks_ + 1);
  const auto rows = static_cast<uint32_t>(RowsOf(sides_[side]));
  if (rows == 0) return counts;
  const RowKeys keys = KeysOf(sides_[side]);
  const std::vector<uint16_t>& targets = side == kBuild ? plan_.build : plan_.probe;
  const uint64_t bytes = counts.size() * sizeof(uint32_t), target_bytes = targets.size() * sizeof(uint16_t);
  RunBuffer there;  // targets, then a counter for each part
  TESSERA_TRY(there.Allocate(&gpu_, target_bytes + bytes));
  TESSERA_TRY(lists->Allocate(&gpu_, uint64_t{rows} * sizeof(uint32_t)));
  const RowTargets to{there.As<uint16_t>(), static_cast<uint32_t>(ranks_), static_cast<uint32_t>(own_)};
  auto* const counters = reinterpret_cast<uint32_t*>(there.As<uint8_t>() + target_bytes);
  // (Pageable memory: the copies are done when the calls return.)
  CUDA_TRY(cudaMemcpyAsync(there.As<void>(), targets.data(), target_bytes, cudaMemcpyHostToDevice, gpu_.stream));
  CUDA_TRY(cudaMemsetAsync(counters, 0, bytes, gpu_.stream));
  CUDA_TRY(StartCountRows(keys, by_, to, rows, counters, gpu_.stream));
  CUDA_TRY(cudaMemcpyAsync(counts.data(), counters, bytes, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  std::vector<uint32_t> places(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0u);
  CUDA_TRY(cudaMemcpyAsync(counters, places.data(), bytes, cudaMemcpyHostToDevice, gpu_.stream));
  CUDA_TRY(StartListRows(keys, by_, to, rows, counters, lists->As<uint32_t>(), gpu_.stream));
  return counts;
}

Status JoinExchange::Pack(Which side, const std::vector<std::vector<uint32_t>>& counts, const uint32_t* list) {
  const std::vector<SqlType>& columns = *sides_[side].columns;
  CameRows& came = came_[side];
  const std::vector<uint32_t>& own = counts[own_];
  const auto packed_rows = [&](uint64_t rows) { return PackedRows(columns, came.summaries, rows); };
  // Of each rank come the rows of this rank's part, then those of the part that goes to all.
  std::vector<uint64_t> first(ranks_);
  uint64_t total = 0;
  for (size_t r = 0; r < ranks_; ++r) {
    first[r] = total;
    came.of_rank.push_back(uint64_t{counts[r][own_]} + counts[r][ranks_]);
    total += came.of_rank[r];
  }
  came.packed = packed_rows(total);
  TESSERA_TRY(came.memory.Allocate(&gpu_, std::max<uint64_t>(came.packed.bytes(), 1)));
  auto* const here = came.memory.As<uint8_t>();
  for (size_t r = 0; r < ranks_; ++r) {
    if (r == own_) continue;
    AddPieces(came.packed, here, first[r], counts[r][own_], &incoming_[r]);
    AddPieces(came.packed, here, first[r] + counts[r][own_], counts[r][ranks_], &incoming_[r]);
  }
  std::vector<PackedRows> parts;
  uint64_t bytes = 0;
  for (size_t p = 0; p <= ranks_; ++p) {
    parts.push_back(packed_rows(p == own_ ? 0 : own[p]));
    bytes += parts[p].bytes();
  }
  TESSERA_TRY(sent_memory_[side].Allocate(&gpu_, std::max<uint64_t>(bytes, 1)));
  const RowColumns from = sides_[side].rows == nullptr ? RowColumns{} : sides_[side].rows->columns();
  auto* to = sent_memory_[side].As<uint8_t>();
  for (size_t p = 0; p <= ranks_; ++p) {
    const bool stays = p == own_, to_all = p == ranks_;
    if (stays || to_all) {
      const uint64_t place = first[own_] + (to_all ? own[own_] : 0);
      CUDA_TRY(StartPackSome(came.packed, from, {list, own[p], place}, here, gpu_.stream));
    }
    if (!stays) CUDA_TRY(StartPackSome(parts[p], from, {list, own[p], 0}, to, gpu_.stream));
    for (size_t r = 0; r < ranks_; ++r) {
      if (r != own_ && (r == p || to_all)) AddPieces(parts[p], to, 0, own[p], &outgoing_[r]);
    }
    if (!stays) sent_ += own[p];
    to += parts[p].bytes();
    list += own[p];
  }
  return ClearPadding(came.packed, here, gpu_.stream);
}

Status JoinExchange::Move() {
  Status mine = texts_.Tell(text_bytes_, &exchange_, &strings_, threads_);
  RunBuffer lists[2];
  std::vector<uint32_t> counts;  // of both sides, by part
  for (const Which side : {kBuild, kProbe}) {
    tessera::Result<std::vector<uint32_t>> parts = std::vector<uint32_t>(ranks_ + 1);
    if (mine.ok()) parts = ListParts(side, &lists[side]);
    if (!parts.ok()) mine = parts.status();
    if (mine.ok()) counts.insert(counts.end(), parts->begin(), parts->end());
  }
  counts.resize(2 * (ranks_ + 1));
  TESSERA_ASSIGN(const std::vector<std::vector<uint32_t>> all, vm::TellRanks(&exchange_, mine, counts));
  for (const Which side : {kBuild, kProbe}) {
    std::vector<std::vector<uint32_t>> of_side;
    for (const std::vector<uint32_t>& of_rank : all) {
      const auto begin = of_rank.begin() + static_cast<ptrdiff_t>(side * (ranks_ + 1));
      of_side.emplace_back(begin, begin + static_cast<ptrdiff_t>(ranks_ + 1));
    }
    if (mine.ok()) mine = Pack(side, of_side, lists[side].As<uint32_t>());
    lists[side].Free();
    if (sides_[side].rows == nullptr) continue;
    DeviceRows none;
    swap(none, *sides_[side].rows);
  }
  TESSERA_TRY(links_.Agree(mine, &exchange_));
  TESSERA_TRY(links_.Move(outgoing_, incoming_, &exchange_, gpu_.stream));
  for (RunBuffer& memory : sent_memory_) memory.Free();
  return Status::Ok();
}

Status JoinExchange::Unpack(Which side, DeviceRows* rows) {
  CameRows& came = came_[side];
  const std::vector<SqlType>& columns = *sides_[side].columns;
  TESSERA_TRY(rows->Allocate(&gpu_, columns, std::max<uint64_t>(came.packed.rows(), 1)));
  rows->set_rows(came.packed.rows());
  CUDA_TRY(StartUnpack(came.packed, came.memory.As<void>(), rows->columns(), 0, gpu_.stream));
  came.memory.Free();
  return has_texts(side) ? texts_.Translate(&gpu_, columns, came.of_rank, own_, rows) : Status::Ok();
}

}  // namespace tessera::kernels
