// Which sections of a program need no exchange, because stored tables are distributed by their keys; and what is in the
// tablets of such tables. The rows that ranks make of it are tested by tests/run with tests/sql/distribute_by.test.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "mpi/cluster.h"
#include "tablet/catalog/buckets.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tests/mpi/ranks_program.h"
#include "vm/program/program.h"
#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

class CoLocation : public RanksProgram {
 protected:
  CoLocation()
      : RanksProgram(
            {"CREATE TABLE a (k INTEGER, x BIGINT, t TEXT) WITH (distribute_by = k)",
             "CREATE TABLE b (k BIGINT, y DECIMAL(30, 2), t TEXT) WITH (distribute_by = k)",
             "CREATE TABLE two (k INTEGER, t TEXT, z INTEGER) WITH (distribute_by = 't, k')",
             "CREATE TABLE plain (k INTEGER, y INTEGER, t TEXT)",
             "CREATE TABLE other (k TEXT) WITH (distribute_by = k)",
             "INSERT INTO a SELECT g % 40, g * 3, 't' || g % 9 FROM generate_series(1, 200) s(g)",
             "INSERT INTO b SELECT nullif(g % 60, 7), g * 1.25, 't' || g % 11 FROM generate_series(1, 300) s(g)",
             "INSERT INTO two SELECT k, t, x FROM a", "INSERT INTO plain SELECT k, x, t FROM a",
             "INSERT INTO other SELECT t FROM a"}) {}

  /// The sections that need no exchange, and those that exchange: "join", "groups", "rows", with "!" before the latter.
  std::string Sections(const std::string& sql) {
    Run(sql);
    EXPECT_TRUE(vm::Verify(cluster_.last).ok());
    std::string out;
    for (const vm::Section& s : cluster_.last.sections) {
      if (!s.placement.co_located && !s.placement.by_key) continue;
      out += std::string(out.empty() ? "" : " ") + (s.placement.by_key ? "!" : "");
      out += SinkOf(s);
    }
    return out;
  }
};

TEST_F(CoLocation, JoinsByTheKey) {
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN b ON a.k = b.k"), "join");
  EXPECT_EQ(Sections("SELECT count(*) FROM a LEFT JOIN b ON a.k = b.k AND b.y > a.x WHERE a.x > 7 AND a.t LIKE 't%'"),
            "join");
  EXPECT_EQ(Sections("SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k)"), "join");
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN b ON a.k = b.k JOIN a c ON a.k = c.k"), "join join");
  // All keys of the distribution have to be joined; more may be.
  EXPECT_EQ(Sections("SELECT count(*) FROM two JOIN two s ON two.k = s.k"), "");
  EXPECT_EQ(Sections("SELECT count(*) FROM two JOIN two s ON two.k = s.k AND two.t = s.t"), "join");
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN b ON a.k = b.k AND a.t = b.t"), "join");
  // Nothing else meets.
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN b ON a.x = b.k"), "");
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN b ON a.k + 1 = b.k"), "");
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN plain ON a.k = plain.k"), "");
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN two ON a.k = two.k"), "");
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN other ON a.t = other.k"), "");
}

TEST_F(CoLocation, GroupsAndWindowsByTheKey) {
  EXPECT_EQ(Sections("SELECT k, count(*) FROM a GROUP BY k"), "groups");
  EXPECT_EQ(Sections("SELECT k, t, count(*) FROM a GROUP BY t, k"), "groups");
  EXPECT_EQ(Sections("SELECT DISTINCT k FROM b"), "groups");
  EXPECT_EQ(Sections("SELECT t, count(*) FROM a GROUP BY t"), "");
  EXPECT_EQ(Sections("SELECT k + 1, count(*) FROM a GROUP BY 1"), "");
  EXPECT_EQ(Sections("SELECT k, count(*) FROM two GROUP BY k"), "");
  EXPECT_EQ(Sections("SELECT a.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k"), "join groups");
  EXPECT_EQ(Sections("SELECT b.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY b.k"), "join groups");
  EXPECT_EQ(Sections("SELECT plain.k, count(*) FROM a JOIN plain ON a.k = plain.k GROUP BY plain.k"), "groups");
  // NULL would be on every rank.
  EXPECT_EQ(Sections("SELECT b.k, sum(a.x) FROM a LEFT JOIN b ON a.k = b.k GROUP BY b.k"), "join");
  // Groups meet the rows of the other side where they are.
  EXPECT_EQ(Sections("SELECT b.k, count(*) FROM a LEFT JOIN b ON a.k = b.k GROUP BY b.k"), "groups join");
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN (SELECT k, sum(y) AS s FROM b GROUP BY k) g ON a.k = g.k AND x < s"),
            "groups rows join");
  EXPECT_EQ(
      Sections("SELECT count(*) FROM (SELECT k, sum(y) AS s FROM b GROUP BY k) g LEFT JOIN a ON a.k = g.k AND x < s"),
      "groups rows join");
  EXPECT_EQ(
      Sections(
          "SELECT count(*) FROM a JOIN (SELECT k, sum(y) AS s FROM b GROUP BY k ORDER BY s LIMIT 9) g ON a.k = g.k"),
      "groups");
  // What was made of the rows is where they were, or on the master.
  EXPECT_EQ(Sections("SELECT n, k, count(*) FROM (SELECT k, t, count(*) AS n FROM a GROUP BY k, t) g GROUP BY n, k"),
            "groups groups");
  EXPECT_EQ(
      Sections("SELECT k, t, count(*) FROM (SELECT k, t FROM a GROUP BY t, k ORDER BY k LIMIT 9) g GROUP BY k, t"),
      "groups");
  EXPECT_EQ(Sections("SELECT k, count(*) FROM (SELECT k FROM a UNION ALL SELECT y FROM plain) u GROUP BY k"), "");
  EXPECT_EQ(Sections("SELECT k, row_number() OVER (PARTITION BY k ORDER BY x) FROM a"), "rows");
  EXPECT_EQ(Sections("SELECT k, row_number() OVER (PARTITION BY t ORDER BY x) FROM a"), "");
}

TEST_F(CoLocation, StoredRowsStayWhereTheyMeetOthers) {
  const std::string twice = "WITH w AS (SELECT k, x, t FROM a WHERE x > 30) ";
  EXPECT_EQ(Sections(twice + "SELECT count(*), (SELECT max(x) FROM w) FROM w JOIN b ON w.k = b.k"), "rows join");
  EXPECT_EQ(Sections(twice + "SELECT count(*) FROM b JOIN w ON w.k = b.k WHERE (SELECT count(*) FROM w) > 3"),
            "rows join");
  EXPECT_EQ(Sections(twice + "SELECT count(*) FROM w JOIN w v ON w.k = v.k"), "rows join");
  // Others need not, and those that are put together with others are on the master.
  EXPECT_EQ(Sections(twice + "SELECT count(*), (SELECT max(x) FROM w) FROM w JOIN b ON w.t = b.t"), "");
  EXPECT_EQ(
      Sections(
          "WITH w AS (SELECT k FROM a UNION ALL SELECT y FROM plain) SELECT count(*) FROM w JOIN w v ON w.k = v.k"),
      "");
}

TEST_F(CoLocation, RowsThatWereExchangedAreElsewhere) {
  Run("SET join_exchange = on");
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN b ON a.k = b.k"), "join");
  EXPECT_EQ(Sections("SELECT count(*) FROM a JOIN plain ON a.t = plain.t"), "!join !rows");
  EXPECT_EQ(Sections("SELECT k, count(*) FROM a WHERE t IN (SELECT t FROM plain) GROUP BY k"), "!join !rows");
  const std::string stored = Sections(
      "WITH w AS (SELECT a.k, x FROM a JOIN plain ON a.t = plain.t) SELECT count(*) FROM w JOIN w v ON w.k = v.k");
  EXPECT_EQ(stored, "!join !rows !join !rows") << "what reads rows that moved";
  // Of two joins that are probed one after the other, one may be co-located only before the other is exchanged.
  const std::string both = Sections("SELECT count(*) FROM a JOIN b ON a.k = b.k JOIN plain ON a.t = plain.t");
  EXPECT_TRUE(both == "join !join !rows" || both == "!join join !rows" || both == "!join !join !rows !rows") << both;
}

/// What is in the tablets of a table.
void CheckTablets(const TableInfo& table) {
  ASSERT_EQ(table.buckets.size(), table.tablets.size());
  std::map<int, int> short_tablets;  // by bucket
  for (size_t t = 0; t < table.tablets.size(); ++t) {
    const Tablet& tablet = *table.tablets[t];
    RowBatch batch;
    batch.rows = tablet.rows();
    for (size_t c = 0; c < table.schema.columns.size(); ++c) {
      const Result<ChunkPointer> chunk = tablet.Chunk(static_cast<int>(c));
      ASSERT_TRUE(chunk.ok());
      ColumnVector& column = batch.columns.emplace_back();
      column.type = table.schema.columns[c].type;
      DecodeChunk(**chunk, 0, (*chunk)->rows, &column);
    }
    for (const uint8_t bucket : BucketsOf(batch, table.schema.distribute_by)) EXPECT_EQ(bucket, table.buckets[t]);
    EXPECT_LE(tablet.rows(), table.schema.tablet_rows);
    if (tablet.rows() < table.schema.tablet_rows) ++short_tablets[table.buckets[t]];
  }
  for (const auto& [bucket, tablets] : short_tablets) EXPECT_EQ(tablets, 1) << bucket;
}

TEST_F(CoLocation, EachTabletHasRowsOfOneBucket) {
  for (const char* sql :
       {"CREATE TABLE t (k INTEGER, x INTEGER) WITH (distribute_by = k, cluster_by = x, tablet_rows = 20)",
        "INSERT INTO t SELECT nullif(g * 7 % 200, 3), g FROM generate_series(1, 3000) s(g)",
        "INSERT INTO t VALUES (5, 1)", "INSERT INTO t VALUES (NULL, 2), (5, 3), (6, 4)",
        "INSERT INTO t SELECT g % 9, g FROM generate_series(1, 500) s(g)", "VACUUM t"}) {
    Run(sql);
    Run("SELECT count(*) FROM t");
    CheckTablets(*cluster_.snapshot.Find("t"));
  }
  EXPECT_EQ(cluster_.snapshot.Find("t")->rows, 3504u);
  // Whose buckets a rank has, it has of every table.
  std::map<int, std::set<int>> ranks;
  for (const char* name : {"t", "a", "b", "two"}) {
    const TableInfo& table = *cluster_.snapshot.Find(name);
    for (const vm::TabletPart& part : vm::ShareTablets(table, 3)) ranks[table.buckets[part.tablet]].insert(part.rank);
  }
  for (const auto& [bucket, of_bucket] : ranks) EXPECT_EQ(of_bucket.size(), 1u) << bucket;
  EXPECT_GT(ranks.size(), 50u);
}

TEST_F(CoLocation, SmallLoadsWriteFewTablets) {
  Run("CREATE TABLE t (k INTEGER, x INTEGER) WITH (distribute_by = k)");
  const auto tablets = [&] {
    Run("SELECT count(*) FROM t");
    std::set<const Tablet*> out;
    for (const auto& tablet : cluster_.snapshot.Find("t")->tablets) out.insert(tablet.get());
    return out;
  };
  // Its size is chosen when it has many rows.
  Run("INSERT INTO t VALUES (1, 1)");
  EXPECT_EQ(tablets().size(), 1u);
  Run("INSERT INTO t SELECT g, g FROM generate_series(1, 200000) s(g)");
  const std::set<const Tablet*> before = tablets();
  EXPECT_EQ(before.size(), static_cast<size_t>(kBuckets));
  Run("INSERT INTO t VALUES (1, 1)");
  const std::set<const Tablet*> after = tablets();
  EXPECT_EQ(after.size(), before.size());
  EXPECT_EQ(std::ranges::count_if(after, [&](const Tablet* t) { return !before.contains(t); }), 1);
}

TEST(Buckets, EqualValuesMeet) {
  RowBatch batch;
  batch.rows = 4;
  const SqlType integer = SqlType::Of(TypeId::kInteger), wide = SqlType::Decimal(30, 0);
  for (const SqlType& type : {integer, wide, SqlType::Text()}) batch.columns.emplace_back().type = type;
  for (const int64_t n : {int64_t{-1}, int64_t{0}, int64_t{1} << 40}) {
    batch.columns[0].Append(Value::Int(integer, n));
    batch.columns[1].Append(Value::Wide(wide, n));
    batch.columns[2].Append(Value::Text(std::to_string(n)));
  }
  for (ColumnVector& c : batch.columns) c.Append(Value::Null(c.type));
  EXPECT_EQ(BucketsOf(batch, {0}), BucketsOf(batch, {1}));
  EXPECT_EQ(BucketsOf(batch, {0, 2}), BucketsOf(batch, {1, 2}));
  EXPECT_NE(BucketsOf(batch, {0}), BucketsOf(batch, {2}));
  // They are stored: another hash would need another version of the catalog.
  EXPECT_EQ(BucketsOf(batch, {0}), (std::vector<uint8_t>{19, 40, 26, 21}));
}

}  // namespace
}  // namespace tessera
