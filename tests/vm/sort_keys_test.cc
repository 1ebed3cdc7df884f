// Sort keys against the comparison of values that they stand for: every class of value, NULLs, both directions, ranges
// that fill a word and more.
#include "vm/rows/sort_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

#include "base/int128.h"
#include "base/thread_pool.h"
#include "vm/meaning/meaning.h"

namespace tessera::vm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Less than 0, 0 or more: how values of rows a and b compare, ascending.
int Compare(const RowColumn& c, const StringPool& strings, uint32_t a, uint32_t b) {
  switch (c.type.storage()) {
    case StorageClass::kInt:
      return c.low[a] < c.low[b] ? -1 : c.low[a] > c.low[b];
    case StorageClass::kFloat: {
      const double x = std::bit_cast<double>(c.low[a]), y = std::bit_cast<double>(c.low[b]);
      return FloatLess(x, y) ? -1 : FloatLess(y, x);
    }
    case StorageClass::kWide: {
      const int128_t x = Make128(c.high[a], c.low[a]), y = Make128(c.high[b], c.low[b]);
      return x < y ? -1 : x > y;
    }
    case StorageClass::kText:
      return strings.Get(c.low[a]).compare(strings.Get(c.low[b]));
  }
  return 0;
}

bool Before(const std::vector<SortKey>& order, const StringPool& strings, const RowSet& rows, uint32_t a, uint32_t b) {
  for (const SortKey& k : order) {
    const RowColumn& c = rows.columns[static_cast<size_t>(k.column)];
    const bool an = !c.null.empty() && c.null[a] != 0, bn = !c.null.empty() && c.null[b] != 0;
    if (an && bn) continue;
    if (an || bn) return an == k.nulls_first;
    const int r = Compare(c, strings, a, b);
    if (r != 0) return k.descending ? r > 0 : r < 0;
  }
  return a < b;
}

class SortKeysTest : public ::testing::Test {
 protected:
  /// A column of `n` values chosen from `values`, some of them NULL if asked for.
  template <class T>
  RowColumn Column(SqlType type, const std::vector<T>& values, size_t n, bool nullable) {
    RowColumn c;
    c.type = type;
    for (size_t i = 0; i < n; ++i) {
      const T& v = values[random_() % values.size()];
      if constexpr (std::is_same_v<T, int128_t>) {
        c.low.push_back(Low64(v));
        c.high.push_back(High64(v));
      } else if constexpr (std::is_same_v<T, double>) {
        c.low.push_back(std::bit_cast<int64_t>(v));
      } else if constexpr (std::is_same_v<T, const char*>) {
        c.low.push_back(strings_.Intern(v));
      } else {
        c.low.push_back(v);
      }
      if (nullable) c.null.push_back(random_() % 4 == 0 ? 1 : 0);
    }
    return c;
  }

  void Check(const std::vector<SortKey>& order, const RowSet& rows) {
    const SortKeys keys = *SortKeys::Make(order, strings_, rows);
    UninitializedVector<uint32_t> want(rows.rows);
    for (uint32_t i = 0; i < rows.rows; ++i) want[i] = i;
    std::sort(want.begin(), want.end(), [&](uint32_t a, uint32_t b) { return Before(order, strings_, rows, a, b); });
    EXPECT_EQ(*keys.First(rows.rows), want);
    for (const size_t count : {rows.rows / 10, rows.rows / 2}) {
      EXPECT_EQ(*keys.First(count),
                UninitializedVector<uint32_t>(want.begin(), want.begin() + static_cast<ptrdiff_t>(count)));
    }
    for (uint32_t i = 0; i + 1 < rows.rows; ++i) {
      EXPECT_TRUE(keys.Less(want[i], want[i + 1]));
      EXPECT_FALSE(keys.Less(want[i + 1], want[i]));
    }
  }

  std::mt19937 random_{7};
  StringPool strings_;
};

TEST_F(SortKeysTest, OrdersAsValuesCompare) {
  const std::vector<int64_t> few = {1, 2, 3}, all = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
  const std::vector<double> doubles = {-kInfinity, -1.5, -0.0, 0.0, 1e-300, 2.5, kInfinity, kNaN};
  const std::vector<int128_t> wides = {kInt128Min, -(int128_t{1} << 64), -1, 0, 1, int128_t{1} << 64, kInt128Max};
  const std::vector<const char*> texts = {"", "a", "ab", "b", "B", "\xC3\xA4", "zebra"};
  for (const bool nullable : {false, true}) {
    for (const size_t n : {0, 1, 2, 300}) {
      RowSet rows;
      rows.rows = n;
      rows.columns.push_back(Column(SqlType::Of(TypeId::kBigint), few, n, nullable));
      rows.columns.push_back(Column(SqlType::Of(TypeId::kBigint), all, n, nullable));
      rows.columns.push_back(Column(SqlType::Of(TypeId::kDouble), doubles, n, nullable));
      rows.columns.push_back(Column(SqlType::Decimal(38, 0), wides, n, nullable));
      rows.columns.push_back(Column(SqlType::Of(TypeId::kText), texts, n, nullable));
      const int columns = static_cast<int>(rows.columns.size());
      for (int first = 0; first < columns; ++first) {
        for (int way = 0; way < 4; ++way) {
          const bool descending = way % 2 != 0, nulls_first = way / 2 != 0;
          Check({{first, descending, nulls_first}}, rows);
          Check({{first, descending, nulls_first},
                 {(first + 1) % columns, !descending, nulls_first},
                 {(first + 3) % columns, descending, !nulls_first}},
                rows);
        }
      }
    }
  }
}

TEST_F(SortKeysTest, SeveralThreads) {
  RowSet rows;
  rows.rows = 300001;
  std::vector<int64_t> values(50000);
  for (int64_t& v : values) v = static_cast<int64_t>(random_());
  rows.columns.push_back(Column(SqlType::Of(TypeId::kBigint), values, rows.rows, true));
  rows.columns.push_back(
      Column(SqlType::Of(TypeId::kBigint), std::vector<int64_t>{INT64_MIN, 5, INT64_MAX}, rows.rows, false));
  for (const std::vector<SortKey>& order :
       {std::vector<SortKey>{{0, true, false}}, std::vector<SortKey>{{0, false, true}, {1, true, false}}}) {
    const SortKeys keys = *SortKeys::Make(order, strings_, rows);
    const UninitializedVector<uint32_t> want = *keys.First(rows.rows);
    EXPECT_TRUE(std::is_sorted(want.begin(), want.end(),
                               [&](uint32_t a, uint32_t b) { return Before(order, strings_, rows, a, b); }));
    for (const int threads : {2, 3, 4, 7}) {
      ThreadPool pool(threads);
      const SortKeys shared = *SortKeys::Make(order, strings_, rows, &pool);
      EXPECT_EQ(*shared.First(rows.rows), want);
      EXPECT_EQ(*shared.First(200000), UninitializedVector<uint32_t>(want.begin(), want.begin() + 200000));
    }
  }
}

TEST_F(SortKeysTest, AllNullAndNoKeys) {
  RowSet rows;
  rows.rows = 40;
  rows.columns.push_back(Column(SqlType::Of(TypeId::kText), std::vector<const char*>{"x"}, rows.rows, false));
  rows.columns[0].null.assign(rows.rows, 1);
  Check({{0, true, true}}, rows);
  Check({}, rows);
}

}  // namespace
}  // namespace tessera::vm
