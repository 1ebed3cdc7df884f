// Groups put aside in partitions, and brought back, are those of one table.
#include "vm/sinks/group_partitions.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <unordered_map>

#include "base/memory_budget.h"
#include "base/thread_pool.h"

namespace tessera::vm {
namespace {

/// Workers that there are, and those that they take themselves for some of: the more, the smaller their tables.
constexpr size_t kWorkers = 2, kOfWorkers = 16;
constexpr size_t kTile = 2048;

/// GROUP BY a BIGINT that may be NULL: count(*), sum(v), min(v), moments(v).
Section Grouped() {
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  Section s;
  s.sink = Section::Sink::kGroups;
  s.keys = 1;
  s.columns = {bigint, bigint, SqlType::Decimal(38, 0), bigint};
  s.columns.resize(s.columns.size() + kStateWords<meaning::MomentsF::State>, bigint);
  for (const Opcode op : {Opcode::CountRows, Opcode::SumI, Opcode::MinI, Opcode::MomentsF}) {
    s.aggregates.emplace_back();
    s.aggregates.back().op = op;
  }
  return s;
}

struct Expected {
  int64_t count = 0, sum = 0, least = INT64_MAX;
};
/// By key; -1 is NULL.
using Groups = std::unordered_map<int64_t, Expected>;

/// One row, as the host interpreter adds it. Every tenth row has no value.
void AddRow(int64_t key, bool null, int64_t value, bool has_value, GroupTable* table) {
  const int64_t words[2] = {null ? 0 : key, null ? 1 : 0};
  uint64_t hash = kHashSeed;
  for (const int64_t w : words) hash = HashWord(hash, w);
  uint32_t g = 0;
  table->FindOrMakeMany(words, &hash, 1, [&](size_t, uint32_t group) { g = group; });
  table->MakeStates();
  std::vector<AggregateStates>& a = table->aggregates();
  ++a[0].narrow[g];
  if (!has_value) return;
  Lane lane;
  a[1].Set(g, WrapAdd(a[1].Get<int128_t>(g), static_cast<int128_t>(value)));
  a[2].Set(g, std::min(a[2].Get<int64_t>(g), value));
  auto moments = a[3].Get<meaning::MomentsF::State>(g);
  meaning::MomentsF::Apply(moments, static_cast<double>(value), lane);
  a[3].Set(g, moments);
  for (size_t k = 1; k < a.size(); ++k) a[k].seen[g] = 1;
}

class GroupPartitions : public testing::Test {
 protected:
  /// Rows whose keys are among `distinct`, for all workers.
  void Fill(size_t rows, int64_t distinct) {
    std::mt19937_64 random(7);
    for (size_t w = 0; w < kWorkers; ++w)
      workers.push_back(std::make_unique<WorkerGroups>(section, &strings, kOfWorkers));
    for (size_t i = 0; i < rows; ++i) {
      WorkerGroups& w = *workers[i / kTile % kWorkers];
      const auto key = static_cast<int64_t>(random() % static_cast<uint64_t>(distinct));
      const auto value = static_cast<int64_t>(random() % 1000) - 500;
      const bool null = key == 3, has_value = i % 10 != 0;
      AddRow(key, null, value, has_value, &w.table);
      Expected& e = expected[null ? -1 : key];
      ++e.count;
      if (has_value) {
        e.sum += value;
        e.least = std::min(e.least, value);
      }
      if (i % kTile != kTile - 1) continue;
      ASSERT_TRUE(w.AfterTile().ok());
    }
  }

  void Check(const RowSet& rows) {
    ASSERT_EQ(rows.rows, expected.size());
    for (size_t r = 0; r < rows.rows; ++r) {
      const bool null = !rows.columns[0].null.empty() && rows.columns[0].null[r] != 0;
      const auto found = expected.find(null ? -1 : rows.columns[0].low[r]);
      ASSERT_NE(found, expected.end());
      const Expected& e = found->second;
      ASSERT_EQ(rows.columns[1].low[r], e.count);
      const bool none = e.least == INT64_MAX;
      for (size_t c = 2; c < rows.columns.size(); ++c)
        ASSERT_EQ(!rows.columns[c].null.empty() && rows.columns[c].null[r] != 0, none) << c;
      if (none) continue;
      ASSERT_EQ(rows.columns[2].low[r], e.sum);
      ASSERT_EQ(rows.columns[3].low[r], e.least);
      uint64_t words[kStateWords<meaning::MomentsF::State>];
      for (size_t k = 0; k < std::size(words); ++k) words[k] = static_cast<uint64_t>(rows.columns[4 + k].low[r]);
      ASSERT_EQ(FromWords<meaning::MomentsF::State>(words).sum.Value(), static_cast<double>(e.sum));
    }
  }

  const Section section = Grouped();
  StringPool strings;
  ThreadPool pool{3};
  std::vector<std::unique_ptr<WorkerGroups>> workers;
  Groups expected;
};

TEST_F(GroupPartitions, ManyGroupsArePutAsideAndMergedByPartitions) {
  Fill(700'000, 150'000);
  EXPECT_TRUE(workers[0]->has_partitions());
  EXPECT_LE(workers[0]->table.groups(), size_t{1} << 17);
  const Result<RowSet> rows = MergeGroups(section, &strings, &pool, workers);
  ASSERT_TRUE(rows.ok());
  Check(*rows);
}

TEST_F(GroupPartitions, RowsThatShareGroupsStayInTheTable) {
  Fill(900'000, 65'700);
  for (const auto& w : workers) EXPECT_FALSE(w->has_partitions());
  const Result<RowSet> rows = MergeGroups(section, &strings, &pool, workers);
  ASSERT_TRUE(rows.ok());
  Check(*rows);
}

TEST_F(GroupPartitions, AllComeBackToOneTable) {
  Fill(500'000, 150'000);
  EXPECT_TRUE(workers[0]->has_partitions());
  ASSERT_TRUE(MergeIntoFirst(workers).ok());
  EXPECT_FALSE(workers[0]->has_partitions());
  Check(workers[0]->table.Rows());
}

TEST_F(GroupPartitions, LittleMemoryBringsThemBack) {
  if (!MemoryIsCounted()) GTEST_SKIP() << "memory is not counted";
  const uint64_t before = MemoryLimit();
  SetMemoryLimit(uint64_t{900} << 20);  // so 80,000 groups may be aside
  Fill(500'000, 150'000);
  SetMemoryLimit(before);
  EXPECT_FALSE(workers[0]->has_partitions());
  const Result<RowSet> rows = MergeGroups(section, &strings, &pool, workers);
  ASSERT_TRUE(rows.ok());
  Check(*rows);
}

}  // namespace
}  // namespace tessera::vm
