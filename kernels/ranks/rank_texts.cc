#include "kernels/ranks/rank_texts.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "kernels/memory/run_buffer.h"

namespace tessera::kernels {
namespace {

/// The strings of all identifiers, in order: the length of each, in 4 bytes, and its bytes.
std::string StringsOf(const vm::StringPool& pool) {
  std::string out;
  for (size_t id = 0; id < pool.count(); ++id) {
    const std::string_view text = pool.Get(static_cast<int64_t>(id));
    const auto size = static_cast<uint32_t>(text.size());
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out.append(text);
  }
  return out;
}

Status Damaged() { return {ErrorCode::kCorrupt, "the texts that a rank has told are damaged"}; }

Status ReadStrings(std::string_view from, std::vector<std::string_view>* out) {
  while (!from.empty()) {
    uint32_t size = 0;
    if (from.size() < sizeof size) return Damaged();
    memcpy(&size, from.data(), sizeof size);
    from.remove_prefix(sizeof size);
    if (from.size() < size) return Damaged();
    out->push_back(from.substr(0, size));
    from.remove_prefix(size);
  }
  return Status::Ok();
}

}  // namespace

Status RankTexts::Tell(vm::Exchange* exchange, vm::StringPool* strings) {
  const tessera::Result<std::string> mine =
      Caught([&]() -> tessera::Result<std::string> { return StringsOf(*strings); });
  TESSERA_TRY(exchange->Agree(mine.status()));
  TESSERA_ASSIGN(const std::vector<std::string> all, exchange->AllGatherBytes(*mine));
  return Caught([&]() -> Status {
    ids_.resize(all.size());
    for (size_t r = 0; r < all.size(); ++r) {
      if (r == static_cast<size_t>(exchange->rank())) continue;
      std::vector<std::string_view> texts;
      TESSERA_TRY(ReadStrings(all[r], &texts));
      ids_[r].resize(texts.size());
      strings->Intern(texts, ids_[r].data());
    }
    return Status::Ok();
  });
}

Status RankTexts::Translate(GpuDevice* gpu, const RowsToGather& table, size_t own) const {
  uint64_t first = table.counts[own];
  for (size_t r = 0; r < ids_.size(); ++r) {
    if (r == own) continue;
    RunBuffer ids;
    const uint64_t bytes = ids_[r].size() * sizeof(int64_t);
    TESSERA_TRY(ids.Allocate(gpu, std::max<uint64_t>(bytes, sizeof(int64_t))));
    // (Pageable memory: the copy is done when the call returns.)
    if (bytes > 0)
      CUDA_TRY(cudaMemcpyAsync(ids.As<void>(), ids_[r].data(), bytes, cudaMemcpyHostToDevice, gpu->stream));
    for (size_t c = 0; c < table.columns->size(); ++c) {
      if ((*table.columns)[c].storage() != StorageClass::kText) continue;
      CUDA_TRY(
          StartTranslate(table.rows->low(c) + first, table.counts[r], ids.As<int64_t>(), ids_[r].size(), gpu->stream));
    }
    first += table.counts[r];
  }
  return Status::Ok();
}

}  // namespace tessera::kernels
