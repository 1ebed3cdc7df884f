#include "kernels/ranks/group_texts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "base/exception_status.h"
#include "kernels/memory/run_buffer.h"

namespace tessera::kernels {

TextKeys TextKeysOf(const vm::Section& section) {
  TextKeys keys;
  uint32_t word = 1;
  for (uint32_t k = 0; k < static_cast<uint32_t>(section.keys); ++k) {
    if (section.columns[k].storage() == StorageClass::kText) {
      keys.word[keys.count] = word;
      keys.bit[keys.count++] = k;
    }
    word += IsWide(section.columns[k]) ? 2 : 1;
  }
  return keys;
}

tessera::Result<bool> GroupTexts::Mark(GpuDevice* gpu, const TextKeys& keys, const GroupRecords& groups,
                                       const vm::StringPool& strings) {
  untold_.clear();
  untold_ids_.clear();
  const uint64_t count = strings.count();
  std::vector<uint32_t> found(count / 32 + 1);
  const uint64_t bytes = found.size() * sizeof(uint32_t);
  RunBuffer bits;
  TESSERA_TRY(bits.Allocate(gpu, bytes));
  CUDA_TRY(cudaMemsetAsync(bits.As<void>(), 0, bytes, gpu->stream));
  CUDA_TRY(StartMarkKeys(groups, keys, count, bits.As<uint32_t>(), gpu->stream));
  CUDA_TRY(cudaMemcpyAsync(found.data(), bits.As<void>(), bytes, cudaMemcpyDeviceToHost, gpu->stream));
  CUDA_TRY(cudaStreamSynchronize(gpu->stream));
  numbers_.resize(std::max<size_t>(numbers_.size(), count), kNoNumber);
  for (size_t w = 0; w < found.size(); ++w) {
    for (uint32_t left = found[w]; left != 0; left &= left - 1) {
      const auto id = static_cast<uint32_t>(32 * w) + static_cast<uint32_t>(std::countr_zero(left));
      if (numbers_[id] == kNoNumber) untold_ids_.push_back(id);
    }
  }
  if (untold_ids_.size() > kMostTold) return false;
  for (const int64_t id : untold_ids_) {
    const std::string_view text = strings.Get(id);
    const auto size = static_cast<uint32_t>(text.size());
    untold_.append(reinterpret_cast<const char*>(&size), sizeof size);
    untold_.append(text);
  }
  return true;
}

Status GroupTexts::Tell(const std::vector<uint64_t>& bytes, vm::Exchange* exchange, vm::StringPool* strings,
                        ThreadPool* threads) {
  if (std::ranges::all_of(bytes, [](uint64_t of_rank) { return of_rank == 0; })) return Status::Ok();
  TESSERA_ASSIGN(const std::vector<std::string> all, exchange->AllGatherBytes(untold_, bytes));
  return Caught([&]() -> Status {
    // In the same order on all ranks, this one's own among them: so a text has the same number on all.
    for (size_t r = 0; r < all.size(); ++r) {
      if (r == static_cast<size_t>(exchange->rank())) {
        Number(untold_ids_, strings->count());
        continue;
      }
      TESSERA_ASSIGN(const std::vector<int64_t> ids, Learn(all[r], strings, threads));
      Number(ids, strings->count());
    }
    untold_.clear();
    return Status::Ok();
  });
}

void GroupTexts::Number(const std::vector<int64_t>& ids, size_t count) {
  numbers_.resize(std::max<size_t>(numbers_.size(), count), kNoNumber);
  for (const int64_t id : ids) {
    uint32_t& number = numbers_[static_cast<size_t>(id)];
    if (number != kNoNumber) continue;  // an earlier rank has told it
    number = static_cast<uint32_t>(ids_.size());
    ids_.push_back(static_cast<uint32_t>(id));
  }
}

tessera::Result<std::vector<int64_t>> GroupTexts::Learn(const std::string& told, vm::StringPool* strings,
                                                        ThreadPool* threads) {
  std::vector<std::string_view> texts;
  for (std::string_view rest = told; !rest.empty();) {
    uint32_t size = 0;
    const bool has_size = rest.size() >= sizeof size;
    if (has_size) memcpy(&size, rest.data(), sizeof size);
    if (!has_size || rest.size() - sizeof size < size || texts.size() == kMostTold)
      return Status{ErrorCode::kCorrupt, "the texts that a rank has told are damaged"};
    texts.push_back(rest.substr(sizeof size, size));
    rest.remove_prefix(sizeof size + size);
  }
  std::vector<int64_t> ids(texts.size());
  TESSERA_TRY(strings->Intern(threads, texts, ids.data()));
  return ids;
}

Status GroupTexts::Translate(GpuDevice* gpu, const TextKeys& keys, const std::vector<GroupRecords>& groups,
                             const std::vector<uint32_t>& map) {
  if (keys.count == 0 || map.empty()) return Status::Ok();  // then every key is NULL
  RunBuffer on_device;
  const uint64_t bytes = map.size() * sizeof(uint32_t);
  TESSERA_TRY(on_device.Allocate(gpu, bytes));
  // (Pageable memory: the copy is done when the call returns.)
  CUDA_TRY(cudaMemcpyAsync(on_device.As<void>(), map.data(), bytes, cudaMemcpyHostToDevice, gpu->stream));
  for (const GroupRecords& some : groups)
    CUDA_TRY(StartTranslateKeys(some, keys, on_device.As<uint32_t>(), map.size(), gpu->stream));
  return Status::Ok();
}

}  // namespace tessera::kernels
