#include "kernels/ranks/rank_texts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "base/exception_status.h"
#include "kernels/memory/run_buffer.h"

namespace tessera::kernels {
namespace {

/// Texts as they are told: the identifier and the length, 4 bytes each, and the bytes.
struct ToldText {
  uint32_t id = 0, size = 0;
};

Status Damaged() { return {ErrorCode::kCorrupt, "the texts that a rank has told are damaged"}; }

bool IsText(const SqlType& type) { return type.storage() == StorageClass::kText; }

}  // namespace

Status RankTexts::Mark(GpuDevice* gpu, const std::vector<SqlType>& columns, const DeviceRows& rows, uint64_t count) {
  const size_t words = count / 32 + 1;
  RunBuffer bits;
  TESSERA_TRY(bits.Allocate(gpu, words * sizeof(uint32_t)));
  CUDA_TRY(cudaMemsetAsync(bits.As<void>(), 0, words * sizeof(uint32_t), gpu->stream));
  for (size_t c = 0; c < columns.size(); ++c) {
    if (IsText(columns[c])) CUDA_TRY(StartMark(rows.low(c), rows.rows(), count, bits.As<uint32_t>(), gpu->stream));
  }
  std::vector<uint32_t> found(words);
  CUDA_TRY(
      cudaMemcpyAsync(found.data(), bits.As<void>(), words * sizeof(uint32_t), cudaMemcpyDeviceToHost, gpu->stream));
  CUDA_TRY(cudaStreamSynchronize(gpu->stream));
  marked_.resize(std::max(marked_.size(), words));
  for (size_t w = 0; w < words; ++w) marked_[w] |= found[w];
  return Status::Ok();
}

uint64_t RankTexts::Prepare(const vm::StringPool& strings) {
  untold_.clear();
  told_.resize(marked_.size());
  for (size_t w = 0; w < marked_.size(); ++w) {
    for (uint32_t left = marked_[w] & ~told_[w]; left != 0; left &= left - 1) {
      const auto id = static_cast<uint32_t>(32 * w) + static_cast<uint32_t>(std::countr_zero(left));
      const std::string_view text = strings.Get(id);
      const ToldText head{id, static_cast<uint32_t>(text.size())};
      untold_.append(reinterpret_cast<const char*>(&head), sizeof head);
      untold_.append(text);
    }
  }
  return untold_.size();
}

Status RankTexts::Learn(const std::string& told, vm::StringPool* strings, ThreadPool* threads,
                        std::vector<int64_t>* ids) const {
  std::vector<uint32_t> theirs;
  std::vector<std::string_view> texts;
  for (std::string_view rest = told; !rest.empty();) {
    ToldText head;
    if (rest.size() < sizeof head) return Damaged();
    memcpy(&head, rest.data(), sizeof head);
    rest.remove_prefix(sizeof head);
    if (rest.size() < head.size || head.id > kMostTexts) return Damaged();
    theirs.push_back(head.id);
    texts.push_back(rest.substr(0, head.size));
    rest.remove_prefix(head.size);
  }
  std::vector<int64_t> mine(texts.size());
  TESSERA_TRY(strings->Intern(threads, texts, mine.data()));
  for (size_t i = 0; i < theirs.size(); ++i) {
    if (ids->size() <= theirs[i]) ids->resize(theirs[i] + size_t{1});
    (*ids)[theirs[i]] = mine[i];
  }
  return Status::Ok();
}

Status RankTexts::Tell(const std::vector<uint64_t>& bytes, vm::Exchange* exchange, vm::StringPool* strings,
                       ThreadPool* threads) {
  ids_.resize(bytes.size());
  if (std::ranges::all_of(bytes, [](uint64_t of_rank) { return of_rank == 0; })) return Status::Ok();
  told_ = marked_;
  TESSERA_ASSIGN(const std::vector<std::string> all, exchange->AllGatherBytes(untold_, bytes));
  return Caught([&]() -> Status {
    for (size_t r = 0; r < all.size(); ++r) {
      if (r != static_cast<size_t>(exchange->rank())) TESSERA_TRY(Learn(all[r], strings, threads, &ids_[r]));
    }
    return Status::Ok();
  });
}

Status RankTexts::Translate(GpuDevice* gpu, const std::vector<SqlType>& columns, const std::vector<uint64_t>& rows_of,
                            size_t own, DeviceRows* rows) const {
  uint64_t first = 0;
  for (size_t r = 0; r < ids_.size(); first += rows_of[r++]) {
    if (r == own) continue;
    RunBuffer ids;
    const uint64_t bytes = ids_[r].size() * sizeof(int64_t);
    TESSERA_TRY(ids.Allocate(gpu, std::max<uint64_t>(bytes, sizeof(int64_t))));
    // (Pageable memory: the copy is done when the call returns.)
    if (bytes > 0)
      CUDA_TRY(cudaMemcpyAsync(ids.As<void>(), ids_[r].data(), bytes, cudaMemcpyHostToDevice, gpu->stream));
    for (size_t c = 0; c < columns.size(); ++c) {
      if (!IsText(columns[c])) continue;
      CUDA_TRY(StartTranslate(rows->low(c) + first, rows_of[r], ids.As<int64_t>(), ids_[r].size(), gpu->stream));
    }
  }
  return Status::Ok();
}

}  // namespace tessera::kernels
