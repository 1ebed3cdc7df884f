#include "kernels/run/row_output.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "base/phase_clock.h"
#include "base/thread_pool.h"
#include "kernels/rows/resolve_texts.h"
#include "kernels/run/kept_results.h"
#include "kernels/window/device_windows.h"
#include "vm/after/window.h"
#include "vm/rows/late_texts.h"
#include "vm/rows/row_set.h"
#include "vm/rows/sorted_rows.h"

namespace tessera::kernels {
namespace {

using vm::Section;
using vm::SortKey;

/// What an output begins with (no more than this part of the budget), and how it grows.
constexpr uint64_t kOutputBytes = uint64_t{32} << 20, kOutputShare = 16;
constexpr uint64_t kGrowth = 8;
constexpr uint64_t kMostOutputRows = UINT32_MAX / 32 * 16;
/// An output grows to this if few of its rows are wanted: each stop of the launch to cut the rows costs 0.2 ms on an
/// H100.
constexpr uint64_t kCutBytes = uint64_t{256} << 20;
/// Few rows are no more than this part of the output.
constexpr uint64_t kKeptShare = 8;
/// An output that all rows have to go through takes this part of the budget, sorting included. The rest is for columns.
constexpr uint64_t kSortShare = 4;
/// Rows that go to the ranks of their keys are not sorted, and leave before anything else is made.
constexpr uint64_t kExchangedShare = 2;
/// Bytes of a row in the sort: two words, two numbers, another number if it is selected; and what the radix sort takes.
constexpr uint64_t kSortBytesPerRow = 32;
/// If few rows are wanted, this many rows, and at least this multiple of those wanted, are sorted to find a bound that
/// leaves out most of the others.
constexpr uint64_t kSampleRows = 1 << 16, kSampledShare = 4;
/// This many rows are sorted by the keys before the first text, to leave out what these say is not wanted.
constexpr uint64_t kLeastToLeaveOut = 1 << 12;
/// Ranking a string takes 100 ns where there are 4,096 and 640 where there are 1 M: less than sorting a row by it.
constexpr uint64_t kMostRanked = 1 << 20, kFewRanked = 1 << 12, kRankedPerRow = 4;
/// Bytes of a piece in which rows come to the host (no more than this part of the budget): a pinned copy of 4 MiB
/// reaches 96 % of the link's rate.
constexpr uint64_t kPieceBytes = uint64_t{8} << 20, kPieceShare = 64;
/// Several threads move a piece from pinned memory to the rows' own if it has at least this many bytes.
constexpr uint64_t kSharedBytes = uint64_t{1} << 20;
constexpr int kMovers = 8;

uint64_t Wanted(const Section& s) {
  if (s.limit < 0) return UINT64_MAX;
  return static_cast<uint64_t>(s.limit) + static_cast<uint64_t>(s.offset);
}

/// Room for more values. reserve gives no more than it is asked for, so doubling is up to us.
template <class T>
void ReserveMore(uint64_t n, std::vector<T>* values) {
  if (values->capacity() < values->size() + n)
    values->reserve(std::max<uint64_t>(values->size() + n, 2 * values->capacity()));
}

}  // namespace

RowOutput::RowOutput(GpuDevice* gpu, const vm::SectionContext& context)
    : gpu_(*gpu),
      context_(context),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      keep_(Wanted(section_)) {
  SetColumns(section_.columns);
}

void RowOutput::SetColumns(const std::vector<SqlType>& types) {
  columns_ = types.size();
  wide_ = CountWide(types);
  row_bytes_ = std::max<uint64_t>(1, RowBytes(types));
  result_ = vm::MakeRowSet(types);
  piece_ = vm::MakeRowSet(types);
  output_.columns = static_cast<uint32_t>(columns_);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

Status RowOutput::Open() {
  const uint64_t bytes = std::min(kOutputBytes, gpu_.cache.budget() / kOutputShare);
  TESSERA_TRY(Reserve(std::max<uint64_t>(bytes / row_bytes_, kSliceRows)));
  if (!stays()) return Status::Ok();
  most_rows_ = std::min(reserved_bytes() / (row_bytes_ + (section_.by_key ? 0 : kSortBytesPerRow)), kMostOutputRows);
  const uint64_t cut = kCutBytes / row_bytes_;
  if (!section_.order.empty() && keep_ <= cut / kKeptShare) most_rows_ = std::min(most_rows_, cut);
  return Status::Ok();
}

uint64_t RowOutput::reserved_bytes() const {
  return stays() ? gpu_.cache.budget() / (section_.by_key ? kExchangedShare : kSortShare) : 0;
}

Status RowOutput::Reserve(uint64_t least) {
  const uint64_t rows = std::min((least + 15) / 16 * 16, kMostOutputRows);
  TESSERA_TRY(gpu_.ReserveEvicting(&gpu_.buffers.output, rows * row_bytes_));
  output_.capacity = static_cast<uint32_t>(rows);
  output_.low = gpu_.buffers.output.As<uint64_t>();
  output_.high = output_.low + columns_ * rows;
  output_.null = reinterpret_cast<uint8_t*>(output_.high + wide_ * rows);
  return Status::Ok();
}

Status RowOutput::Grow(uint64_t rows, uint64_t capacity) {
  DeviceRows larger;
  TESSERA_TRY(larger.Allocate(&gpu_, section_.columns, capacity));
  CUDA_TRY(StartGather({output_.low, output_.null, output_.capacity}, larger.columns(),
                       static_cast<uint32_t>(columns_ + wide_), static_cast<uint32_t>(columns_), nullptr,
                       static_cast<uint32_t>(rows), gpu_.stream));
  Use(&larger);
  return Status::Ok();
}

void RowOutput::Use(DeviceRows* rows) {
  swap(*rows, rows_);
  output_.capacity = static_cast<uint32_t>(rows_.capacity());
  output_.low = rows_.low(0);
  output_.high = rows_.high(0);
  output_.null = rows_.null(0);
}

Status RowOutput::MakeRoom(uint64_t* rows, uint64_t wanted) {
  if (wanted > kMostOutputRows) {
    return {ErrorCode::kResource,
            "512 rows of a join have " + std::to_string(wanted) + " matches, more than a GPU's output holds",
            "Use --device host, or SET join_strategy = grid."};
  }
  const bool ordered = !section_.order.empty() && why_host_ == nullptr;
  const bool kept = section_.order.empty() && stays() && drained_ == 0;
  if ((ordered || kept) && output_.capacity < most_rows_) {
    const uint64_t capacity =
        std::max(std::min(kGrowth * output_.capacity, most_rows_), std::min(*rows + wanted, kMostOutputRows));
    const Status grown = Grow(*rows, capacity);
    if (grown.ok()) return grown;
    if (grown.code() != ErrorCode::kResource) return grown;
    most_rows_ = 0;  // there is no more
  }
  if (ordered) {
    TESSERA_TRY(LeaveOutByFirstKeys(keep_, rows));
    if (*rows + wanted <= output_.capacity / 2) {
      ++cuts_;
      return Status::Ok();
    }
  }
  if (!ordered) {
    TESSERA_TRY(section_.order.empty() ? Deliver(nullptr, *rows) : DrainTo(nullptr, *rows, &result_));
    *rows = 0;
  } else if (*rows > 0) {
    const uint32_t* order = nullptr;
    TESSERA_ASSIGN(const bool sorted, Sort(*rows, keep_, &order));
    if (sorted && keep_ <= output_.capacity / kKeptShare) {
      TESSERA_TRY(KeepBest(rows, order));
    } else {
      if (sorted) runs_.push_back(result_.rows);
      TESSERA_TRY(DrainTo(order, sorted ? std::min(*rows, keep_) : *rows, &result_));
      *rows = 0;
    }
    scratch_.Free();
  }
  if (*rows + wanted <= output_.capacity) return Status::Ok();
  // (A few rows of a join have more matches than the output holds.)
  return rows_.capacity() > 0 ? Grow(*rows, *rows + wanted) : Reserve(wanted);
}

// ---- Order ----------------------------------------------------------------------------------------------------------

std::vector<SortPart> RowOutput::Parts(size_t keys) const {
  std::vector<SortPart> parts;
  for (const SortKey& key : std::span(section_.order).first(keys)) {
    const size_t column = static_cast<size_t>(key.column);
    SortPart part;
    part.values = output_.low + column * output_.capacity;
    part.null = output_.null + column * output_.capacity;
    part.code = SortCode::kNull;
    part.reversed = key.nulls_first;
    parts.push_back(part);
    part.reversed = key.descending;
    switch (section_.columns[column].storage()) {
      case StorageClass::kInt:
        part.code = SortCode::kInteger;
        break;
      case StorageClass::kFloat:
        part.code = SortCode::kFloat;
        break;
      case StorageClass::kText:
        part.code = SortCode::kRank;
        part.ranks = ranks_.As<uint32_t>();
        break;
      case StorageClass::kWide: {
        const auto end = section_.columns.begin() + key.column;
        SortPart high = part;
        high.code = SortCode::kInteger;
        high.values = output_.high +
                      static_cast<uint64_t>(std::count_if(section_.columns.begin(), end, IsWide)) * output_.capacity;
        parts.push_back(high);
        part.code = SortCode::kUnsigned;
        break;
      }
    }
    parts.push_back(part);
  }
  return parts;
}

tessera::Result<bool> RowOutput::RankTexts(uint64_t rows) {
  if (KeysBeforeTexts() == section_.order.size()) return true;
  for (const SortKey& key : section_.order) {
    if (IsText(key)) TESSERA_TRY(ResolveTexts(static_cast<size_t>(key.column), rows));
  }
  const uint64_t count = context_.strings->count();
  if (count > kMostRanked || count > std::max(kFewRanked, kRankedPerRow * rows)) return false;
  if (count == texts_.ranks().size()) return true;
  TESSERA_TRY(texts_.Update(*context_.strings, context_.pool));
  ranks_.Free();
  TESSERA_TRY(ranks_.Allocate(&gpu_, count * sizeof(uint32_t)));
  CUDA_TRY(cudaMemcpyAsync(ranks_.As<void>(), texts_.ranks().data(), count * sizeof(uint32_t), cudaMemcpyHostToDevice,
                           gpu_.stream));
  return true;
}

Status RowOutput::ResolveTexts(size_t column, uint64_t rows) {
  if (context_.late_texts == nullptr || rows == 0 ||
      !context_.handed_on->columns[static_cast<size_t>(context_.section)][column])
    return Status::Ok();
  return kernels::ResolveTexts(&gpu_, context_, output_.low + column * output_.capacity, rows);
}

bool RowOutput::IsText(const SortKey& key) const {
  return section_.columns[static_cast<size_t>(key.column)].storage() == StorageClass::kText;
}

size_t RowOutput::KeysBeforeTexts() const {
  return static_cast<size_t>(std::ranges::find_if(section_.order, [&](const SortKey& k) { return IsText(k); }) -
                             section_.order.begin());
}

Status RowOutput::LeaveOutByFirstKeys(uint64_t wanted, uint64_t* rows) {
  const Status status = TryLeaveOut(wanted, rows);
  scratch_.Free();
  return status.ok() || status.code() != ErrorCode::kResource ? status : Status::Ok();
}

Status RowOutput::TryLeaveOut(uint64_t wanted, uint64_t* rows) {
  const size_t keys = KeysBeforeTexts();
  if (keys == 0 || keys == section_.order.size() || wanted == 0 || *rows < kLeastToLeaveOut ||
      wanted > *rows / kKeptShare)
    return Status::Ok();
  const auto n = static_cast<uint32_t>(*rows);
  RunBuffer found, selected;
  TESSERA_ASSIGN(const std::vector<SortWord> words, Words(Parts(keys), n, &found));
  if (words.empty()) return Status::Ok();
  const uint32_t* order = nullptr;
  TESSERA_TRY(SortBy({words.back()}, nullptr, n, &order));
  TESSERA_TRY(selected.Allocate(&gpu_, uint64_t{n} * sizeof(uint32_t)));
  TESSERA_ASSIGN(const uint32_t count, Select(words.back(), order + wanted - 1, n, found, selected));
  if (count > *rows / 2) return Status::Ok();
  TESSERA_TRY(Keep(count, selected.As<uint32_t>()));
  *rows = count;
  return Status::Ok();
}

tessera::Result<bool> RowOutput::Sort(uint64_t rows, uint64_t wanted, const uint32_t** order) {
  *order = nullptr;
  if (wanted == 0) return true;
  tessera::Result<bool> sorted = RankTexts(rows);
  if (sorted.ok() && !*sorted) why_host_ = "too many texts to rank for so few rows";
  if (sorted.ok() && *sorted) {
    const Status status = SortRanked(static_cast<uint32_t>(rows), wanted, order);
    if (!status.ok()) sorted = status;
  }
  if (!sorted.ok() && sorted.status().code() == ErrorCode::kResource) {
    why_host_ = "no memory to sort in";
    sorted = false;
  }
  if (why_host_ != nullptr) {
    runs_.clear();
    *order = nullptr;
  }
  return sorted;
}

Status RowOutput::SortRanked(uint32_t rows, uint64_t wanted, const uint32_t** order) {
  TESSERA_TRY(gpu_.clock.Begin(gpu_.stream));
  RunBuffer found, selected;
  TESSERA_ASSIGN(const std::vector<SortWord> words, Words(Parts(section_.order.size()), rows, &found));
  key_bits_ = 0;
  for (const SortWord& w : words) key_bits_ += w.bits;
  const uint64_t sample = wanted > rows ? rows : std::max(kSampleRows, kSampledShare * wanted);
  if (words.empty() || sample > rows / 2) {
    TESSERA_TRY(SortBy(words, nullptr, rows, order));
  } else {
    // The last of the best rows of a sample: no row after it is among the best of all.
    TESSERA_TRY(SortBy(words, nullptr, static_cast<uint32_t>(sample), order));
    TESSERA_TRY(selected.Allocate(&gpu_, uint64_t{rows} * sizeof(uint32_t)));
    TESSERA_ASSIGN(const uint32_t count, Select(words.back(), *order + wanted - 1, rows, found, selected));
    TESSERA_TRY(SortBy(words, selected.As<uint32_t>(), count, order));
  }
  TESSERA_TRY(gpu_.clock.End(gpu_.stream));
  const PhaseScope phase(Phase::kKernel);
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  TESSERA_ASSIGN(const double milliseconds, gpu_.clock.KernelMilliseconds());
  context_.statistics->kernel_milliseconds += milliseconds;
  return Status::Ok();
}

tessera::Result<std::vector<SortWord>> RowOutput::Words(std::vector<SortPart> parts, uint32_t rows, RunBuffer* found) {
  std::vector<CodeRange> ranges(parts.size());
  const uint64_t bytes = ranges.size() * sizeof(CodeRange);
  TESSERA_TRY(found->Allocate(&gpu_, bytes));
  // (Pageable memory: these copies are done when the calls return.)
  CUDA_TRY(cudaMemcpyAsync(found->As<void>(), ranges.data(), bytes, cudaMemcpyHostToDevice, gpu_.stream));
  CUDA_TRY(StartFindRanges(parts, rows, found->As<CodeRange>(), gpu_.stream));
  CUDA_TRY(cudaMemcpyAsync(ranges.data(), found->As<void>(), bytes, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].low = ranges[i].low;
    parts[i].high = ranges[i].high;
  }
  return PackParts(parts);
}

Status RowOutput::SortBy(const std::vector<SortWord>& words, const uint32_t* among, uint32_t rows,
                         const uint32_t** order) {
  size_t scratch_bytes = 0;
  CUDA_TRY(SortScratchBytes(rows, &scratch_bytes));
  scratch_.Free();
  TESSERA_TRY(scratch_.Allocate(&gpu_, scratch_bytes));
  CUDA_TRY(StartSort(words, among, rows, scratch_.As<void>(), scratch_bytes, order, gpu_.stream));
  return Status::Ok();
}

tessera::Result<uint32_t> RowOutput::Select(const SortWord& word, const uint32_t* bound, uint32_t rows,
                                            const RunBuffer& counter, const RunBuffer& selected) {
  uint32_t count = 0;
  CUDA_TRY(cudaMemsetAsync(counter.As<void>(), 0, sizeof count, gpu_.stream));
  CUDA_TRY(StartSelect(word, bound, rows, selected.As<uint32_t>(), counter.As<uint32_t>(), gpu_.stream));
  CUDA_TRY(cudaMemcpyAsync(&count, counter.As<void>(), sizeof count, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return count;
}

Status RowOutput::KeepBest(uint64_t* rows, const uint32_t* order) {
  *rows = std::min(*rows, keep_);
  ++cuts_;
  return Keep(*rows, order);
}

Status RowOutput::Keep(uint64_t rows, const uint32_t* order) {
  if (rows == 0) return Status::Ok();
  DeviceRows best;
  TESSERA_TRY(best.Allocate(&gpu_, section_.columns, rows));
  const RowColumns output{output_.low, output_.null, output_.capacity};
  const auto gather = [&](const RowColumns& from, const RowColumns& to, const uint32_t* by) {
    return StartGather(from, to, static_cast<uint32_t>(columns_ + wide_), static_cast<uint32_t>(columns_), by,
                       static_cast<uint32_t>(rows), gpu_.stream);
  };
  CUDA_TRY(gather(output, best.columns(), order));
  CUDA_TRY(gather(best.columns(), output, nullptr));
  return Status::Ok();
}

// ---- Windows --------------------------------------------------------------------------------------------------------

Status RowOutput::AddWindows(uint64_t rows) {
  if (rows == 0 || drained_ > 0 || result_.rows > 0 || why_host_ != nullptr) return Status::Ok();
  const uint32_t* order = nullptr;
  TESSERA_ASSIGN(const bool sorted, Sort(rows, rows, &order));
  if (!sorted) return Status::Ok();
  const std::vector<SqlType> types = vm::TypesOfRows(section_);
  DeviceRows ordered;
  Status status = GatherOrdered(static_cast<uint32_t>(rows), order, types, &ordered);
  scratch_.Free();
  tessera::Result<bool> added = false;
  if (status.ok()) {
    TESSERA_TRY(gpu_.clock.Begin(gpu_.stream));
    added = kernels::AddWindows(&gpu_, section_, ordered);
    status = added.status();
  }
  if (!status.ok()) return status.code() == ErrorCode::kResource ? Status::Ok() : status;
  if (!*added) return Status::Ok();
  TESSERA_TRY(gpu_.clock.End(gpu_.stream));
  const PhaseScope phase(Phase::kKernel);
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  TESSERA_ASSIGN(const double milliseconds, gpu_.clock.KernelMilliseconds());
  context_.statistics->kernel_milliseconds += milliseconds;
  SetColumns(types);
  Use(&ordered);
  has_windows_ = true;
  return Status::Ok();
}

Status RowOutput::GatherOrdered(uint32_t rows, const uint32_t* order, const std::vector<SqlType>& types,
                                DeviceRows* ordered) {
  TESSERA_TRY(ordered->Allocate(&gpu_, types, rows));
  ordered->set_rows(rows);
  CUDA_TRY(StartGather({output_.low, output_.null, output_.capacity}, ordered->columns(),
                       static_cast<uint32_t>(columns_), static_cast<uint32_t>(columns_), order, rows, gpu_.stream));
  CUDA_TRY(StartGather({output_.high, nullptr, output_.capacity}, {ordered->high(0), nullptr, ordered->capacity()},
                       static_cast<uint32_t>(wide_), 0, order, rows, gpu_.stream));
  return Status::Ok();
}

// ---- To the host ----------------------------------------------------------------------------------------------------

tessera::Result<bool> RowOutput::MoveTo(uint64_t rows, DeviceRows* kept) {
  if (has_windows_ && Stay(context_, rows)) {
    swap(rows_, *kept);
    return true;
  }
  if (!section_.windows.empty()) return false;
  if (section_.by_key && drained_ == 0 && rows_.capacity() > 0 && Stay(context_, rows)) {  // they leave soon
    rows_.set_rows(rows);
    swap(rows_, *kept);
    return true;
  }
  const uint64_t skipped = std::min(rows, static_cast<uint64_t>(section_.offset));
  const uint64_t count = std::min(rows, keep_) - skipped;
  DeviceRows there;
  if (drained_ > 0 || !Stay(context_, count) || !there.TryAllocate(&gpu_, section_.columns, count)) return false;
  CUDA_TRY(StartGather({output_.low + skipped, output_.null + skipped, output_.capacity}, there.columns(),
                       static_cast<uint32_t>(columns_ + wide_), static_cast<uint32_t>(columns_), nullptr,
                       static_cast<uint32_t>(count), gpu_.stream));
  there.set_rows(count);
  swap(there, *kept);
  return true;
}

tessera::Result<vm::RowSet> RowOutput::Finish(uint64_t rows) {
  if (section_.order.empty() || has_windows_) {
    TESSERA_TRY(Deliver(nullptr, rows));
    return std::move(result_);
  }
  const uint32_t* order = nullptr;
  if (why_host_ == nullptr && rows > 0) {
    TESSERA_TRY(LeaveOutByFirstKeys(keep_, &rows));
    TESSERA_ASSIGN(const bool sorted, Sort(rows, keep_, &order));
    if (sorted) rows = std::min(rows, keep_);
    if (sorted && runs_.empty()) {
      TESSERA_TRY(Deliver(order, rows));
      return std::move(result_);
    }
    if (sorted) runs_.push_back(result_.rows);
  }
  TESSERA_TRY(DrainTo(order, rows, &result_));
  if (result_.rows == 0) return std::move(result_);
  if (context_.late_texts != nullptr)
    TESSERA_TRY(context_.late_texts->Resolve(context_.strings, context_.pool, &result_));
  const Section bounds = vm::WithoutOffset(section_);
  if (why_host_ != nullptr) {
    TESSERA_TRY(vm::OrderAndLimit(bounds, *context_.strings, context_.pool, &result_));
  } else {
    TESSERA_TRY(vm::MergeRuns(bounds, runs_, *context_.strings, context_.pool, &result_));
  }
  if (!context_.take_rows) return std::move(result_);
  TESSERA_TRY(context_.take_rows(&result_));
  return vm::MakeRowSet(section_.columns);
}

Status RowOutput::Drain(const uint32_t* order, uint64_t rows,
                        const std::function<Status(const RowColumns&, uint64_t)>& take) {
  if (rows == 0) return Status::Ok();
  // (A multiple of eight, so that what lies after a piece is aligned.)
  const uint64_t piece_bytes = std::min(kPieceBytes, gpu_.cache.budget() / kPieceShare);
  const uint64_t most = (std::clamp<uint64_t>(piece_bytes / row_bytes_, 1, rows) + 7) / 8 * 8;
  const uint64_t pieces = (rows + most - 1) / most, bytes_each = most * row_bytes_;
  // (Kept: once rows have left, the host cannot take over where memory has run short.)
  if (packed_.bytes() < bytes_each) TESSERA_TRY(packed_.Renew(&gpu_, bytes_each));
  TESSERA_TRY(gpu_.buffers.host_rows.Reserve(std::min<uint64_t>(pieces, 2) * bytes_each));
  const auto rows_of = [&](uint64_t piece) { return std::min(most, rows - piece * most); };
  const auto columns_at = [&](uint8_t* memory, uint64_t n) {
    return RowColumns{reinterpret_cast<uint64_t*>(memory), memory + (columns_ + wide_) * n * 8, n};
  };
  const auto host = [&](uint64_t piece) { return gpu_.buffers.host_rows.As<uint8_t>() + piece % 2 * bytes_each; };
  const auto start = [&](uint64_t piece) -> Status {
    const uint64_t n = rows_of(piece), first = piece * most, skipped = order == nullptr ? first : 0;
    CUDA_TRY(StartGather({output_.low + skipped, output_.null + skipped, output_.capacity},
                         columns_at(packed_.As<uint8_t>(), n), static_cast<uint32_t>(columns_ + wide_),
                         static_cast<uint32_t>(columns_), order == nullptr ? nullptr : order + first,
                         static_cast<uint32_t>(n), gpu_.stream));
    CUDA_TRY(cudaMemcpyAsync(host(piece), packed_.As<void>(), n * (columns_ * 9 + wide_ * 8), cudaMemcpyDeviceToHost,
                             gpu_.stream));
    return Status::Ok();
  };
  TESSERA_TRY(start(0));
  for (uint64_t piece = 0; piece < pieces; ++piece) {
    if (context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed)) return Cancelled();
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    if (piece + 1 < pieces) TESSERA_TRY(start(piece + 1));
    TESSERA_TRY(take(columns_at(host(piece), rows_of(piece)), rows_of(piece)));
  }
  drained_ += rows;
  return Status::Ok();
}

Status RowOutput::DrainTo(const uint32_t* order, uint64_t rows, vm::RowSet* to) {
  if (!section_.order.empty() && to->rows + rows > UINT32_MAX) {
    return {ErrorCode::kResource, "ORDER BY of more than 2^32 rows, which do not fit the GPU",
            "Filter them, or use LIMIT."};
  }
  for (vm::RowColumn& c : to->columns) {
    ReserveMore(rows, &c.low);
    if (IsWide(c.type)) ReserveMore(rows, &c.high);
  }
  return Drain(order, rows, [&](const RowColumns& piece, uint64_t n) {
    Append(piece, n, to);
    return Status::Ok();
  });
}

Status RowOutput::Deliver(const uint32_t* order, uint64_t rows) {
  if (!context_.take_rows) return DrainTo(order, rows, &result_);
  return Drain(order, rows, [&](const RowColumns& piece, uint64_t n) {
    // Memory that was written before: new pages for 5 M rows of two columns took 20 of 30 ms.
    for (vm::RowColumn& c : piece_.columns) {
      c.low.clear();
      c.high.clear();
      c.null.clear();
    }
    piece_.rows = 0;
    Append(piece, n, &piece_);
    return context_.take_rows(&piece_);
  });
}

void RowOutput::Append(const RowColumns& from, uint64_t rows, vm::RowSet* to) const {
  // What is appended by several threads has its memory before: none of them can run out of it.
  std::vector<std::function<void()>> jobs;
  const auto append = [&](const auto* values, auto* column) {
    ReserveMore(rows, column);
    jobs.push_back([=] { column->insert(column->end(), values, values + rows); });
  };
  const int64_t* low = reinterpret_cast<const int64_t*>(from.low);
  const int64_t* high = low + columns_ * rows;
  const uint8_t* null = from.null;
  for (vm::RowColumn& c : to->columns) {
    append(low, &c.low);
    low += rows;
    if (IsWide(c.type)) {
      append(high, &c.high);
      high += rows;
    }
    if (!c.null.empty() || memchr(null, 1, rows) != nullptr) {
      c.null.resize(to->rows);
      append(null, &c.null);
    }
    null += rows;
  }
  const int threads = context_.pool == nullptr || rows * row_bytes_ < kSharedBytes ? 1 : context_.pool->threads();
  const int workers = std::min({threads, kMovers, static_cast<int>(jobs.size())});
  std::atomic<size_t> next{0};
  const auto work = [&](int) {
    for (size_t job; (job = next.fetch_add(1)) < jobs.size();) jobs[job]();
    return Status::Ok();
  };
  // What no other thread could take, if they cannot be started, this one does.
  if (workers > 1) (void)context_.pool->Run(workers, work);
  (void)work(0);
  to->rows += rows;
}

std::string RowOutput::Describe() const {
  if (section_.order.empty()) return has_windows_ ? "windows added" : "";
  if (why_host_ != nullptr) return std::string("ordered on the host: ") + why_host_;
  std::string out = "ordered by " + std::to_string(key_bits_) + " bits";
  if (cuts_ > 0) out += ", cut to " + std::to_string(keep_) + " rows " + std::to_string(cuts_ + 1) + " times";
  if (has_windows_) out += ", windows added";
  if (!runs_.empty()) out += " in " + std::to_string(runs_.size()) + " runs that the host merged";
  return out;
}

}  // namespace tessera::kernels
