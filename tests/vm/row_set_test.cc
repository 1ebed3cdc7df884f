// Rows in the machine's form: ordering, cutting and merging them. How rows are divided among the parts of a merge must
// not show in the result.
#include "vm/rows/row_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <vector>

#include "base/thread_pool.h"
#include "vm/rows/sorted_rows.h"

namespace tessera::vm {
namespace {

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7FB5D329728EA185u;
  return x ^ (x >> 27);
}

/// Two columns: numbers below `values` with NULLs among them, and the numbers of the rows.
RowSet MakeRows(size_t n, uint64_t values) {
  RowSet rows = MakeRowSet({SqlType::Of(TypeId::kBigint), SqlType::Of(TypeId::kBigint)});
  rows.rows = n;
  for (size_t i = 0; i < n; ++i) {
    rows.columns[0].low.push_back(static_cast<int64_t>(Mix(i) % values));
    rows.columns[0].null.push_back(Mix(i + n) % 9 == 0 ? 1 : 0);
    rows.columns[1].low.push_back(static_cast<int64_t>(i));
  }
  return rows;
}

Section Ordered(bool descending, bool nulls_first, int64_t limit, int64_t offset) {
  Section s;
  s.columns = {SqlType::Of(TypeId::kBigint), SqlType::Of(TypeId::kBigint)};
  s.after.order = {{0, descending, nulls_first}};
  s.after.limit = limit;
  s.after.offset = offset;
  return s;
}

TEST(RowSet, BoundsLeaveTheRowsBetweenThem) {
  for (const int64_t offset : {0, 3, 10, 11}) {
    for (const int64_t limit : {-1, 0, 1, 7, 10, 11}) {
      RowSet rows = MakeRows(10, 5);
      const RowSet all = rows;
      ApplyBounds(Ordered(false, false, limit, offset).after, &rows);
      const int64_t left = std::max<int64_t>(0, 10 - offset), expected = limit < 0 ? left : std::min(limit, left);
      ASSERT_EQ(rows.rows, static_cast<size_t>(expected));
      ASSERT_EQ(rows.columns[1].low.size(), rows.rows);
      for (size_t i = 0; i < rows.rows; ++i) {
        EXPECT_EQ(rows.columns[1].low[i], offset + static_cast<int64_t>(i));
        EXPECT_EQ(rows.columns[0].null[i], all.columns[0].null[i + static_cast<size_t>(offset)]);
      }
    }
  }
}

TEST(RowSet, RepeatedRowsStandAsOftenAsTheirColumnSays) {
  RowSet rows = MakeRowSet({SqlType::Of(TypeId::kBigint), SqlType::Decimal(38, 0), SqlType::Of(TypeId::kInteger)});
  const int64_t times[] = {2, 0, 1, -3, 70000, 5};
  rows.rows = std::size(times);
  rows.columns[0].null = {0, 0, 1, 0, 0, 0};
  rows.columns[2].null = {0, 0, 0, 0, 0, 1};  // a row with NULL does not stand at all
  for (int64_t i = 0; i < 6; ++i) {
    rows.columns[0].low.push_back(i);
    rows.columns[1].low.push_back(10 + i);
    rows.columns[1].high.push_back(20 + i);
    rows.columns[2].low.push_back(times[i]);
  }
  RepeatRows(2, &rows);
  std::vector<int64_t> expected = {0, 0, 2};
  expected.resize(70003, 4);
  ASSERT_EQ(rows.rows, expected.size());
  EXPECT_EQ(rows.columns[0].low, expected);
  ASSERT_EQ(rows.columns[0].null.size(), rows.rows);
  EXPECT_EQ(rows.columns[0].null[2], 1);
  EXPECT_EQ(rows.columns[0].null[3], 0);
  ASSERT_EQ(rows.columns[1].high.size(), rows.rows);
  EXPECT_EQ(rows.columns[1].high[70002], 24);
  EXPECT_EQ(rows.columns[1].low[1], 10);
  EXPECT_EQ(rows.columns[2].low[2], 1);

  rows = MakeRows(3, 5);
  rows.columns[1].low[1] = int64_t{1} << 60;
  EXPECT_THROW(RepeatRows(1, &rows), std::bad_alloc);
}

TEST(RowSet, WithoutOffsetLeavesOutNoneBeforeAndNoneBehind) {
  const auto bounds = [](int64_t limit, int64_t offset) {
    const RowsAfter s = WithoutOffset(Ordered(false, false, limit, offset).after);
    EXPECT_EQ(s.offset, 0);
    return s.limit;
  };
  EXPECT_EQ(bounds(-1, 5), -1);
  EXPECT_EQ(bounds(10, 5), 15);
  EXPECT_EQ(bounds(0, 5), 5);
  EXPECT_EQ(bounds(INT64_MAX, 0), INT64_MAX);
  EXPECT_EQ(bounds(INT64_MAX, 1), -1);
}

TEST(RowSet, MergedRunsAreTheSortedRows) {
  ThreadPool pool(4);
  const StringPool strings;
  constexpr size_t kRows = 270000;  // four parts
  struct Case {
    std::vector<size_t> starts;
    uint64_t values;
  };
  // One run, empty ones, a short one, and rows that are all alike.
  const Case cases[] = {
      {{0}, 1000000}, {{0, 130000}, 1000000}, {{0, 0, 100, 200000, 200000, 269999, 270000}, 50}, {{0, 1, 200000}, 1}};
  for (const Case& c : cases) {
    for (const auto& [limit, offset] :
         {std::pair<int64_t, int64_t>{-1, 0}, {5, 2}, {90000, 120000}, {-1, 269000}, {0, 3}}) {
      const Section section = Ordered(offset > 2, limit < 0, limit, offset);
      Section all = section;
      all.after.limit = -1;
      all.after.offset = 0;
      // The runs, each sorted by itself.
      RowSet rows = MakeRowSet(section.columns);
      const RowSet unsorted = MakeRows(kRows, c.values);
      for (size_t r = 0; r < c.starts.size(); ++r) {
        const size_t end = r + 1 < c.starts.size() ? c.starts[r + 1] : kRows;
        RowSet run = MakeRowSet(section.columns);
        AppendRange(&run, unsorted, c.starts[r], end - c.starts[r]);
        ASSERT_TRUE(OrderAndLimit(all.after, strings, nullptr, &run).ok());
        AppendRange(&rows, run, 0, run.rows);
      }
      RowSet expected = rows;
      ASSERT_TRUE(OrderAndLimit(section.after, strings, nullptr, &expected).ok());
      for (ThreadPool* with : {static_cast<ThreadPool*>(nullptr), &pool}) {
        RowSet merged = rows;
        ASSERT_TRUE(MergeRuns(section.after, c.starts, strings, with, &merged).ok());
        ASSERT_EQ(merged.rows, expected.rows);
        EXPECT_EQ(merged.columns[0].low, expected.columns[0].low);
        EXPECT_EQ(merged.columns[0].null, expected.columns[0].null);
        EXPECT_EQ(merged.columns[1].low, expected.columns[1].low);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::vm
