#include "kernels/run/row_sorter.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/phase_clock.h"
#include "base/thread_pool.h"
#include "kernels/rows/resolve_texts.h"
#include "vm/rows/first_texts.h"
#include "vm/rows/late_texts.h"

namespace tessera::kernels {
namespace {

using vm::SortKey;

/// If few rows are wanted, this many rows, and at least this multiple of those wanted, are sorted to find a bound that
/// leaves out most of the others.
constexpr uint64_t kSampleRows = 1 << 16, kSampledShare = 4;
/// Few rows are wanted if they are no more than this part of all.
constexpr uint64_t kFewWanted = 8;
/// This many rows are sorted by the keys before the first text, to leave out what these say is not wanted.
constexpr uint64_t kLeastToLeaveOut = 1 << 12;
/// Up to this many texts are read, in such parts, to leave out rows by them.
constexpr uint64_t kMostRead = 1 << 21;
constexpr size_t kReadTogether = 1 << 10;
/// Ranking a string takes 100 ns where there are 4,096 and 640 where there are 1 M: less than sorting a row by it.
constexpr uint64_t kMostRanked = 1 << 20, kFewRanked = 1 << 12, kRankedPerRow = 4;
}  // namespace

RowSorter::RowSorter(GpuDevice* gpu, const vm::SectionContext& context, const vm::Section& section,
                     const Output& output)
    : gpu_(*gpu), context_(context), section_(section), output_(output) {}

// ---- Keys -----------------------------------------------------------------------------------------------------------

std::vector<SortPart> RowSorter::Parts(size_t keys) const {
  std::vector<SortPart> parts;
  for (const SortKey& key : std::span(section_.after.order).first(keys)) {
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

tessera::Result<bool> RowSorter::RankTexts(uint64_t rows) {
  if (KeysBeforeTexts() == section_.after.order.size()) return true;
  for (const SortKey& key : section_.after.order) {
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

Status RowSorter::ResolveTexts(size_t column, uint64_t rows) {
  if (context_.late_texts == nullptr || rows == 0 ||
      !context_.handed_on->columns[static_cast<size_t>(context_.section)][column])
    return Status::Ok();
  return kernels::ResolveTexts(&gpu_, context_, output_.low + column * output_.capacity, rows);
}

bool RowSorter::IsText(const SortKey& key) const {
  return section_.columns[static_cast<size_t>(key.column)].storage() == StorageClass::kText;
}

size_t RowSorter::KeysBeforeTexts() const {
  return static_cast<size_t>(std::ranges::find_if(section_.after.order, [&](const SortKey& k) { return IsText(k); }) -
                             section_.after.order.begin());
}

// ---- Sorting --------------------------------------------------------------------------------------------------------

tessera::Result<bool> RowSorter::Sort(uint64_t rows, uint64_t wanted, const uint32_t** order) {
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
  if (why_host_ != nullptr) *order = nullptr;
  return sorted;
}

Status RowSorter::SortRanked(uint32_t rows, uint64_t wanted, const uint32_t** order) {
  TESSERA_TRY(gpu_.clock.Begin(gpu_.stream));
  RunBuffer found, selected;
  TESSERA_ASSIGN(const std::vector<SortWord> words, Words(Parts(section_.after.order.size()), rows, &found));
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

tessera::Result<std::vector<SortWord>> RowSorter::Words(std::vector<SortPart> parts, uint32_t rows, RunBuffer* found) {
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

Status RowSorter::SortBy(const std::vector<SortWord>& words, const uint32_t* among, uint32_t rows,
                         const uint32_t** order) {
  size_t scratch_bytes = 0;
  CUDA_TRY(SortScratchBytes(rows, &scratch_bytes));
  scratch_.Free();
  TESSERA_TRY(scratch_.Allocate(&gpu_, scratch_bytes));
  CUDA_TRY(StartSort(words, among, rows, scratch_.As<void>(), scratch_bytes, order, gpu_.stream));
  return Status::Ok();
}

tessera::Result<uint32_t> RowSorter::Select(const SortWord& word, const uint32_t* bound, uint32_t rows,
                                            const RunBuffer& counter, const RunBuffer& selected) {
  uint32_t count = 0;
  CUDA_TRY(cudaMemsetAsync(counter.As<void>(), 0, sizeof count, gpu_.stream));
  CUDA_TRY(StartSelect(word, bound, rows, selected.As<uint32_t>(), counter.As<uint32_t>(), gpu_.stream));
  CUDA_TRY(cudaMemcpyAsync(&count, counter.As<void>(), sizeof count, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return count;
}

tessera::Result<uint32_t> RowSorter::SelectByFirstKeys(uint64_t wanted, uint64_t rows, RunBuffer* selected) {
  const tessera::Result<uint32_t> count = TrySelect(wanted, rows, selected);
  scratch_.Free();
  if (!count.ok() && count.status().code() == ErrorCode::kResource) return 0;
  return count;
}

tessera::Result<uint32_t> RowSorter::TrySelect(uint64_t wanted, uint64_t rows, RunBuffer* selected) {
  const size_t keys = KeysBeforeTexts();
  if (keys == section_.after.order.size() || wanted == 0 || rows < kLeastToLeaveOut || wanted > rows / kFewWanted)
    return 0;
  const auto n = static_cast<uint32_t>(rows);
  if (keys == 0) return SelectByText(wanted, n, selected);
  RunBuffer found;
  TESSERA_ASSIGN(const std::vector<SortWord> words, Words(Parts(keys), n, &found));
  if (words.empty()) return 0;
  const uint32_t* order = nullptr;
  TESSERA_TRY(SortBy({words.back()}, nullptr, n, &order));
  TESSERA_TRY(selected->Allocate(&gpu_, uint64_t{n} * sizeof(uint32_t)));
  TESSERA_ASSIGN(const uint32_t count, Select(words.back(), order + wanted - 1, n, found, *selected));
  return count > n / 2 ? 0 : count;
}

tessera::Result<uint32_t> RowSorter::SelectByText(uint64_t wanted, uint32_t rows, RunBuffer* selected) {
  if (rows > kMostRead) return 0;
  const SortKey& key = section_.after.order.front();
  const auto column = static_cast<uint64_t>(key.column);
  TESSERA_TRY(gpu_.buffers.host_rows.Reserve(rows * (sizeof(int64_t) + 1)));
  int64_t* const values = gpu_.buffers.host_rows.As<int64_t>();
  uint8_t* const null = reinterpret_cast<uint8_t*>(values + rows);
  CUDA_TRY(cudaMemcpyAsync(values, output_.low + column * output_.capacity, rows * sizeof(int64_t),
                           cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaMemcpyAsync(null, output_.null + column * output_.capacity, rows, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  const vm::LateTexts none;
  const vm::LateTexts& late = context_.late_texts != nullptr ? *context_.late_texts : none;
  std::vector<std::string_view> texts(rows);
  TESSERA_TRY(ForEach(context_.pool, (rows + kReadTogether - 1) / kReadTogether, [&](size_t part) {
    const size_t first = part * kReadTogether, count = std::min<size_t>(kReadTogether, rows - first);
    late.Read(*context_.strings, {values + first, count}, texts.data() + first);
    return Status::Ok();
  }));
  TESSERA_ASSIGN(const std::vector<uint32_t> first, vm::MayBeFirst(texts, null, key, wanted, context_.pool));
  if (first.size() > rows / 2) return 0;
  TESSERA_TRY(selected->Allocate(&gpu_, first.size() * sizeof(uint32_t)));
  // (Pageable memory: the copy is done when the call returns.)
  CUDA_TRY(cudaMemcpyAsync(selected->As<void>(), first.data(), first.size() * sizeof(uint32_t), cudaMemcpyHostToDevice,
                           gpu_.stream));
  return static_cast<uint32_t>(first.size());
}

}  // namespace tessera::kernels
