#include "vm/rows/first_texts.h"

#include <algorithm>
#include <cstddef>

#include "base/text_head.h"

namespace tessera::vm {
namespace {

constexpr size_t kPart = 2048;

}  // namespace

Result<std::vector<uint32_t>> MayBeFirst(std::span<const std::string_view> texts, const uint8_t* null,
                                         const SortKey& key, uint64_t wanted, ThreadPool* threads) {
  const size_t n = texts.size(), parts = (n + kPart - 1) / kPart;
  const auto for_parts = [&](const auto& f) {
    return ForEach(parts < 2 ? nullptr : threads, parts, [&](size_t p) {
      f(p, p * kPart, std::min(n, (p + 1) * kPart));
      return Status::Ok();
    });
  };
  const auto one = static_cast<size_t>(std::find(null, null + n, 0) - null);
  std::vector<size_t> common(parts, one < n ? texts[one].size() : 0);
  TESSERA_TRY(for_parts([&](size_t p, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (null[i] == 0) common[p] = CommonPrefix(texts[one], texts[i], common[p]);
    }
  }));
  const size_t depth = std::ranges::min(common);
  std::vector<uint64_t> heads(n);
  TESSERA_TRY(for_parts([&](size_t, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const uint64_t head = null[i] != 0 ? 0 : TextHead(texts[i].substr(depth));
      heads[i] = null[i] != 0 ? (key.nulls_first ? 0 : UINT64_MAX) : key.descending ? ~head : head;
    }
  }));
  std::vector<uint64_t> ordered = heads;
  const auto last = ordered.begin() + static_cast<ptrdiff_t>(wanted - 1);
  std::nth_element(ordered.begin(), last, ordered.end());
  std::vector<uint32_t> first;
  for (size_t i = 0; i < n; ++i) {
    if (heads[i] <= *last) first.push_back(static_cast<uint32_t>(i));
  }
  return first;
}

}  // namespace tessera::vm
