#include "vm/rows/first_texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "base/thread_pool.h"

namespace tessera::vm {
namespace {

/// Whether row a comes before row b by the key.
bool Before(const std::vector<std::string_view>& texts, const std::vector<uint8_t>& null, const SortKey& key,
            uint32_t a, uint32_t b) {
  if (null[a] != null[b]) return (null[a] != 0) == key.nulls_first;
  if (null[a] != 0) return false;
  return key.descending ? texts[b] < texts[a] : texts[a] < texts[b];
}

TEST(FirstTexts, HaveThoseThatAreWanted) {
  ThreadPool threads(3);
  std::mt19937 random(7);
  for (const size_t rows : {size_t{1}, size_t{50}, size_t{5000}}) {
    for (const std::string prefix : {"", "AAAAAAAA", "of one length: "}) {
      for (const int variant : {0, 1, 2, 3}) {
        SortKey key;
        key.descending = (variant & 1) != 0;
        key.nulls_first = (variant & 2) != 0;
        std::vector<std::string> kept(rows);
        std::vector<std::string_view> texts(rows);
        std::vector<uint8_t> null(rows);
        for (size_t i = 0; i < rows; ++i) {
          kept[i] = prefix + std::to_string(random() % 100'000).substr(0, 1 + random() % 5);
          texts[i] = kept[i];
          null[i] = random() % 50 == 0 ? 1 : 0;
          if (null[i] != 0) texts[i] = {};
        }
        const uint64_t wanted = std::max<uint64_t>(1, rows / 10);
        const Result<std::vector<uint32_t>> first = MayBeFirst(texts, null.data(), key, wanted, &threads);
        ASSERT_TRUE(first.ok());
        EXPECT_TRUE(std::ranges::is_sorted(*first));
        EXPECT_GE(first->size(), wanted);
        // No row that is left out comes before any of as many as are wanted.
        std::vector<uint32_t> order(*first);
        std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return Before(texts, null, key, a, b); });
        for (uint32_t i = 0; i < rows; ++i) {
          if (std::ranges::binary_search(*first, i)) continue;
          EXPECT_FALSE(Before(texts, null, key, i, order[wanted - 1])) << texts[i] << " " << texts[order[wanted - 1]];
        }
        if (rows == 5000 && !prefix.empty()) {
          EXPECT_LT(first->size(), rows / 2);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::vm
