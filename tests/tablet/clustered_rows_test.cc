// Rows of a load in the order of cluster_by: the same as a stable sort of all of them, whatever the size of the runs.
#include "tablet/load/clustered_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tessera {
namespace {

const SqlType kTypes[] = {SqlType::Of(TypeId::kInteger),
                          SqlType::Of(TypeId::kDouble),
                          SqlType::Text(),
                          {TypeId::kDecimal, 30, 2, 0},
                          SqlType::Of(TypeId::kBigint)};

Value Random(const SqlType& type, int kinds, std::mt19937* random) {
  const int n = static_cast<int>((*random)() % static_cast<unsigned>(kinds)) - kinds / 2;
  if ((*random)() % 9 == 0) return Value::Null(type);
  switch (type.storage()) {
    case StorageClass::kFloat:
      return Value::Float(type, n == 0 ? std::nan("") : n == 1 ? -std::numeric_limits<double>::infinity() : n / 4.0);
    case StorageClass::kWide:
      return Value::Wide(type, static_cast<int128_t>(n) << ((*random)() % 2 * 70));
    case StorageClass::kText:
      return Value::Text(n == 0 ? ""
                                : std::string("same beginning").substr(0, static_cast<size_t>(std::abs(n)) % 15) +
                                      std::to_string(n));
    default:
      return Value::Int(type, kinds > 1000 && n == 7 ? INT64_MAX : n == 8 ? INT64_MIN : n);
  }
}

/// One text a row, so that rows can be compared whole.
std::string RowText(const RowBatch& batch, size_t row) {
  std::string text;
  for (const ColumnVector& c : batch.columns) {
    if (c.IsNull(row)) text += "NULL";
    AppendText(c, row, &text);
    text += '|';
  }
  return text;
}

/// What SQL says of the two values: NULL is last, NaN is above all numbers.
int Compare(const ColumnVector& c, size_t a, size_t b) {
  if (c.IsNull(a) || c.IsNull(b)) return static_cast<int>(c.IsNull(a)) - static_cast<int>(c.IsNull(b));
  switch (c.type.storage()) {
    case StorageClass::kFloat: {
      const double x = c.Float(a), y = c.Float(b);
      if (std::isnan(x) || std::isnan(y)) return static_cast<int>(std::isnan(x)) - static_cast<int>(std::isnan(y));
      return x < y ? -1 : x > y ? 1 : 0;
    }
    case StorageClass::kWide:
      return c.wide[a] < c.wide[b] ? -1 : c.wide[a] > c.wide[b] ? 1 : 0;
    case StorageClass::kText:
      return c.Text(a).compare(c.Text(b));
    default:
      return c.fixed[a] < c.fixed[b] ? -1 : c.fixed[a] > c.fixed[b] ? 1 : 0;
  }
}

TEST(ClusteredRows, ComeAsAStableSortWouldOrderThem) {
  std::mt19937 random(5);
  const std::vector<std::vector<int>> keys = {{0}, {1}, {2}, {3}, {4}, {2, 0}, {0, 1}, {1, 3, 2}, {0, 4}, {2, 4}};
  for (const std::vector<int>& key : keys) {
    for (const size_t rows : {0, 1, 5000, 30000}) {
      for (const uint64_t run_bytes : {uint64_t{1}, uint64_t{20000}, ClusteredRows::kRunBytes}) {
        const int kinds = rows == 30000 ? 4 : random() % 2 == 0 ? 40 : 100000;
        ClusteredRows sorted(key, run_bytes);
        RowBatch all, batch;
        std::vector<std::shared_ptr<RowBatch>> runs;
        for (RowBatch* b : {&all, &batch}) {
          for (const SqlType& type : kTypes) b->columns.emplace_back().type = type;
        }
        for (size_t row = 0; row < rows; ++row) {
          for (size_t c = 0; c < std::size(kTypes); ++c) {
            const Value v = c + 1 == std::size(kTypes) && key[0] != 4
                                ? Value::Int(kTypes[c], static_cast<int64_t>(rows - row))
                                : Random(kTypes[c], kinds, &random);
            all.columns[c].Append(v);
            batch.columns[c].Append(v);
          }
          ++all.rows;
          if (++batch.rows < 1 + random() % 300 && row + 1 < rows) continue;
          if (auto full = sorted.Add(batch)) runs.push_back(std::move(full));
          batch.rows = 0;
          for (ColumnVector& c : batch.columns) c.Clear();
        }
        if (auto last = sorted.End()) runs.push_back(std::move(last));
        EXPECT_EQ(sorted.rows(), rows);
        EXPECT_EQ(runs.size() > 1, rows >= 5000 && run_bytes != ClusteredRows::kRunBytes) << runs.size();
        std::ranges::shuffle(runs, random);
        for (const auto& run : runs) sorted.Sort(run.get());

        std::vector<size_t> order(rows);
        for (size_t i = 0; i < rows; ++i) order[i] = i;
        std::ranges::stable_sort(order, [&](size_t a, size_t b) {
          for (const int k : key) {
            if (const int c = Compare(all.columns[static_cast<size_t>(k)], a, b); c != 0) return c < 0;
          }
          return false;
        });
        size_t next = 0;
        for (;;) {
          const size_t wanted = 1 + random() % 700;
          size_t taken = 0;
          for (const ClusteredRows::Piece& piece : sorted.Take(wanted)) {
            for (size_t row = piece.begin; row < piece.begin + piece.rows; ++row, ++next, ++taken)
              ASSERT_EQ(RowText(*piece.batch, row), RowText(all, order[next])) << next;
          }
          ASSERT_LE(taken, wanted);
          if (taken == 0) break;
        }
        EXPECT_EQ(next, rows);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
