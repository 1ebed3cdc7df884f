// The index of a join table: every key leads to its rows, in their order, whatever the keys are and whichever threads
// index them.
#include "vm/sinks/join_index.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "base/thread_pool.h"

namespace tessera::vm {
namespace {

/// From this many rows on threads share them, and slots are filled in parts of this many.
constexpr size_t kShared = 1 << 16, kPart = 1 << 16;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7FB5D329728EA185u;
  return x ^ (x >> 27);
}

using Key = std::vector<int64_t>;

/// Rows with the given keys, whose other column is the number of the row.
RowSet RowsWithKeys(const std::vector<Key>& keys, size_t width) {
  RowSet rows = MakeRowSet(std::vector<SqlType>(width + 1, SqlType::Of(TypeId::kBigint)));
  rows.rows = keys.size();
  for (size_t r = 0; r < keys.size(); ++r) {
    for (size_t k = 0; k < width; ++k) rows.columns[k].low.push_back(keys[r][k]);
    rows.columns[width].low.push_back(static_cast<int64_t>(r));
  }
  return rows;
}

uint64_t HashOf(const Key& key) {
  uint64_t hash = kHashSeed;
  for (const int64_t word : key) hash = HashWord(hash, word);
  return hash;
}

/// The first rows of some keys.
std::vector<uint32_t> FirstRows(const JoinIndex& index, const std::vector<Key>& keys) {
  std::vector<uint32_t> rows(keys.size(), kNoRow);
  if (index.direct()) {
    for (size_t i = 0; i < keys.size(); ++i) {
      rows[i] = index.FirstDirect(keys[i][0]);
      if (index.present() == nullptr) continue;
      const uint64_t at = static_cast<uint64_t>(keys[i][0]) - static_cast<uint64_t>(index.direct_base());
      const bool is_present = at < index.direct_size() && (index.present()[at / 64] >> (at % 64) & 1) != 0;
      EXPECT_EQ(is_present, rows[i] != kNoRow);
    }
    return rows;
  }
  std::vector<int64_t> words;
  std::vector<uint64_t> hashes;
  for (const Key& key : keys) {
    words.insert(words.end(), key.begin(), key.end());
    hashes.push_back(HashOf(key));
  }
  index.FindHashed(words.data(), hashes.data(), keys.size(), [&](size_t i, uint32_t row) { rows[i] = row; });
  return rows;
}

/// Indexes rows with these keys, alone and with other threads, and looks up all of them and some `others`.
void Check(const std::vector<Key>& keys, size_t width, bool direct, const std::vector<Key>& others) {
  std::map<Key, std::vector<uint32_t>> expected;
  for (size_t r = 0; r < keys.size(); ++r) expected[keys[r]].push_back(static_cast<uint32_t>(r));
  std::vector<Key> sought = others;
  for (const auto& [key, rows] : expected) sought.push_back(key);
  ThreadPool pool(3);
  for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    JoinIndex index;
    const bool selective = threads != nullptr;
    ASSERT_TRUE(index.Finish(RowsWithKeys(keys, width), static_cast<int>(width), false, selective, threads).ok());
    ASSERT_EQ(index.direct(), direct);
    const std::vector<uint32_t> first = FirstRows(index, sought);
    for (size_t i = 0; i < sought.size(); ++i) {
      std::vector<uint32_t> found;
      for (uint32_t row = first[i]; row != kNoRow; row = index.After(row)) found.push_back(row);
      const auto rows = expected.find(sought[i]);
      ASSERT_EQ(found, rows == expected.end() ? std::vector<uint32_t>() : rows->second);
    }
  }
}

/// The same where it only matters whether a key is there.
void CheckKeys(const std::vector<Key>& keys, size_t width, bool direct, std::vector<Key> sought) {
  const std::set<Key> expected(keys.begin(), keys.end());
  sought.insert(sought.end(), expected.begin(), expected.end());
  ThreadPool pool(3);
  for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    JoinIndex index;
    const bool selective = threads == nullptr;
    ASSERT_TRUE(index.Finish(RowsWithKeys(keys, width), static_cast<int>(width), true, selective, threads).ok());
    ASSERT_EQ(index.direct(), direct);
    ASSERT_EQ(index.has_rows(), !direct || keys.empty());
    const std::vector<uint32_t> first = FirstRows(index, sought);
    for (size_t i = 0; i < sought.size(); ++i) ASSERT_EQ(first[i] != kNoRow, expected.contains(sought[i]));
  }
}

TEST(JoinIndex, DenseKeys) {
  for (const size_t n : {size_t{0}, size_t{1}, kShared - 1, kShared, kShared + 1, 2 * kShared + 17}) {
    std::vector<Key> ascending, mixed;
    for (size_t r = 0; r < n; ++r) {
      ascending.push_back({static_cast<int64_t>(r / 3) - 1000});
      mixed.push_back({static_cast<int64_t>(Mix(r) % (n + 5)) - 7});
    }
    const std::vector<Key> others = {{INT64_MIN}, {-1001}, {1 << 30}, {INT64_MAX}};
    Check(ascending, 1, true, others);
    Check(mixed, 1, true, others);
    CheckKeys(ascending, 1, true, others);
    CheckKeys(mixed, 1, true, others);
  }
}

TEST(JoinIndex, KeysFarApartHaveBits) {
  for (const size_t n : {size_t{1}, kShared - 1, kShared + 1}) {
    std::vector<Key> keys;
    for (size_t r = 0; r < n; ++r) keys.push_back({static_cast<int64_t>(Mix(r) % (1 << 22))});
    const std::vector<Key> others = {{-1}, {5}, {1 << 22}, {1 << 21}};
    Check(keys, 1, true, others);
    CheckKeys(keys, 1, true, others);
    // Too far apart for a number of a row each, but not for a bit each.
    if (n < kShared) continue;
    for (Key& key : keys) key[0] *= 2;
    Check(keys, 1, false, others);
    CheckKeys(keys, 1, true, others);
    for (Key& key : keys) key[0] *= 1000;
    CheckKeys(keys, 1, false, others);
  }
}

TEST(JoinIndex, HashedKeys) {
  for (const size_t n : {size_t{1}, size_t{1000}, kShared - 1, kShared, 3 * kShared + 1}) {
    std::vector<Key> one, two, once;
    for (size_t r = 0; r < n; ++r) {
      one.push_back({static_cast<int64_t>(Mix(r % (n / 2 + 1)))});
      two.push_back({static_cast<int64_t>(Mix(r) % 300), static_cast<int64_t>(r % 11)});
      once.push_back({static_cast<int64_t>(r), -1});
    }
    if (n > 2) Check(one, 1, false, {{0}, {3}});
    Check(two, 2, false, {{0, 12}, {300, 0}, {-1, -1}});
    CheckKeys(two, 2, false, {{0, 12}, {300, 0}, {-1, -1}});
    Check(once, 2, false, {{0, 0}, {static_cast<int64_t>(n), -1}});
  }
}

TEST(JoinIndex, BloomFilterHasAllKeysAndFewOthers) {
  constexpr size_t kRows = 200000;
  std::vector<Key> keys;
  for (size_t r = 0; r < kRows; ++r) keys.push_back({static_cast<int64_t>(Mix(r)), static_cast<int64_t>(r % 3)});
  ThreadPool pool(3);
  for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    JoinIndex index, without, small;
    ASSERT_TRUE(index.Finish(RowsWithKeys(keys, 2), 2, false, true, threads).ok());
    ASSERT_TRUE(index.has_bloom());
    for (const Key& key : keys) ASSERT_TRUE(index.MayHave(HashOf(key)));
    size_t passed = 0;
    for (size_t r = kRows; r < 2 * kRows; ++r)
      passed += index.MayHave(HashOf({static_cast<int64_t>(Mix(r)), static_cast<int64_t>(r % 3)}));
    EXPECT_LT(passed, kRows / 25);
    EXPECT_EQ(FirstRows(index, {keys[7], {1, 9}}), (std::vector<uint32_t>{7, kNoRow}));
    ASSERT_TRUE(without.Finish(RowsWithKeys(keys, 2), 2, false, false, threads).ok());
    EXPECT_FALSE(without.has_bloom());
    ASSERT_TRUE(small.Finish(RowsWithKeys({keys.begin(), keys.begin() + 1000}, 2), 2, false, true, threads).ok());
    EXPECT_FALSE(small.has_bloom());
  }
}

/// More keys begin in the last slots of a part, and of the table, than these have room for.
TEST(JoinIndex, PartsOfSlotsOverflow) {
  constexpr size_t kRows = 2 * kShared;
  constexpr size_t kSlots = 2 * kRows;
  std::vector<Key> keys;
  for (int64_t k = 0; keys.size() < 600; ++k) {
    const size_t from_end = kPart - 1 - HashOf({k, 7}) % kPart;
    if (from_end >= 20) continue;
    for (int times = 0; times < 1 + static_cast<int>(k % 3); ++times) keys.push_back({k, 7});
  }
  for (int64_t k = 0; keys.size() < kRows; ++k) keys.push_back({k, 8});
  ASSERT_GT(kSlots / kPart, 2u);
  Check(keys, 2, false, {{-1, 7}, {-1, 8}});
}

}  // namespace
}  // namespace tessera::vm
