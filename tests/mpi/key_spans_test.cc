// Which sections get tablets of their own, because the stored order of a key lets ranks join and group without each other
// (compiler/ranks/key_spans.h). The rows that ranks make of it are tested by tests/run with tests/sql/key_spans.test.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/mpi/ranks_program.h"
#include "vm/program/program.h"
#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

class KeySpans : public RanksProgram {
 protected:
  KeySpans()
      : RanksProgram({"SET tablet_rows = 100", "SET exchange_above = 0",
                      "CREATE TABLE o AS SELECT g AS k, g % 9 AS d, 'o' || g AS t FROM generate_series(1, 1200) s(g)",
                      "CREATE TABLE l AS SELECT 1 + g / 4 AS k, g AS n, g % 50 AS m FROM generate_series(0, 3999) s(g)",
                      "CREATE TABLE nulls AS SELECT nullif(g, 500) AS k, g AS y FROM generate_series(1, 1200) s(g)",
                      "CREATE TABLE mixed AS SELECT g * 239 % 1009 AS k, g AS y FROM generate_series(1, 1000) s(g)",
                      "CREATE TABLE few WITH (tablet_rows = 9) AS SELECT g * 20 AS k FROM generate_series(1, 60) s(g)",
                      "CREATE TABLE loose AS SELECT g * 3 / 10 + g * 239 % 500 AS k FROM generate_series(1, 4000) s(g)",
                      "CREATE TABLE spread (k INTEGER, y INTEGER) WITH (distribute_by = k)",
                      "INSERT INTO spread SELECT k, y FROM mixed"}) {}

  /// The tablets of each section that has spans, by rank: "join 0-4 3-7 6-10" and so on.
  std::string Spans(const std::string& sql) {
    Run(sql);
    EXPECT_TRUE(vm::Verify(cluster_.last).ok());
    std::string out;
    for (const vm::Section& s : cluster_.last.sections) {
      if (s.placement.spans.empty()) continue;
      EXPECT_EQ(s.placement.spans.size(), 3u);
      out += out.empty() ? "" : ", ";
      out += SinkOf(s);
      if (s.sink != vm::Section::Sink::kJoin && s.placement.co_located) out += " co-located";
      for (const vm::TabletSpan& span : s.placement.spans)
        out += " " + std::to_string(span.first) + "-" + std::to_string(span.end);
    }
    return out;
  }
};

TEST_F(KeySpans, EachRankMakesTheJoinTableOfItsKeys) {
  // l has 25 keys a tablet, and o 100.
  EXPECT_EQ(Spans("SELECT count(*) FROM l JOIN o ON l.k = o.k"), "join 0-4 3-7 6-10, groups 0-13 13-27 27-40");
  EXPECT_EQ(Spans("SELECT count(*) FROM l LEFT JOIN o ON l.k = o.k AND o.d > l.m"),
            "join 0-4 3-7 6-10, groups 0-13 13-27 27-40");
  EXPECT_EQ(Spans("SELECT count(*) FROM l WHERE NOT EXISTS (SELECT 1 FROM o WHERE l.k = o.k)"),
            "join 0-4 3-7 6-10, groups 0-13 13-27 27-40");
  // A table within a table: the inner one follows the outer one.
  EXPECT_EQ(Spans("SELECT count(*) FROM o JOIN l ON o.k = l.k WHERE l.m = 3 AND EXISTS (SELECT 1 FROM nulls WHERE "
                  "nulls.k = l.k AND nulls.y > l.n)"),
            "join 0-16 16-32 32-40, join 0-4 4-8 8-12, groups 0-4 4-8 8-12");
}

TEST_F(KeySpans, NothingElseDoes) {
  for (const char* sql : {
           "SELECT count(*) FROM mixed JOIN o ON mixed.k = o.k",  // the rows that probe are in no order
           "SELECT count(*) FROM o JOIN mixed ON mixed.k = o.k",
           "SELECT count(*) FROM l JOIN o ON l.k + 1 = o.k + 1",  // no columns
           "SELECT count(*) FROM l JOIN mixed ON l.k = mixed.k", "SELECT count(*) FROM l JOIN o ON 'o' || l.k = o.t",
           "SELECT count(*) FROM l JOIN o ON l.k = o.k WHERE l.k < 200",  // one rank would scan all
           "SELECT count(*) FROM l JOIN o ON l.k = o.k WHERE o.k > 600",  // only rows of some ranks find a match
           "SELECT count(*) FROM l JOIN few ON l.k = few.k",              // little is gained
           "SELECT count(*) FROM loose JOIN o ON loose.k = o.k",          // all ranks would scan most of o
           "SELECT count(*) FROM spread JOIN o ON spread.k = o.k",        // where its rows are was decided
           "SELECT l.n, o.d FROM l JOIN o ON l.k = o.k",                  // they stream to the master
           "SELECT count(*) FROM l, o WHERE l.k < o.k",                   // no key
           "SELECT l.m, count(*) FROM l GROUP BY l.m",
           "SELECT k, count(*) FROM nulls GROUP BY k",  // NULL may be on every rank
       })
    EXPECT_EQ(Spans(sql), "") << sql;
  Run("SET key_spans = off");
  EXPECT_EQ(Spans("SELECT count(*) FROM l JOIN o ON l.k = o.k"), "");
}

TEST_F(KeySpans, GroupsByTheKeyStayWhereTheyAre) {
  EXPECT_EQ(Spans("SELECT max(c) FROM (SELECT k, count(*) AS c FROM l GROUP BY k) g"),
            "groups co-located 0-13 13-27 27-40");
  EXPECT_EQ(Spans("SELECT max(c) FROM (SELECT m, k, count(*) AS c FROM l GROUP BY m, k) g"),
            "groups co-located 0-13 13-27 27-40");
  EXPECT_EQ(Spans("SELECT max(r) FROM (SELECT rank() OVER (PARTITION BY k ORDER BY m) AS r FROM l) w"),
            "rows co-located 0-13 13-27 27-40");
  // A key on both sides of where a span should end moves the end, or all groups have to meet.
  Run("CREATE TABLE pairs AS SELECT (g + 50) / 100 AS k FROM generate_series(0, 3999) s(g)");
  EXPECT_EQ(Spans("SELECT max(c) FROM (SELECT k, count(*) AS c FROM pairs GROUP BY k) g"), "");
  Run("CREATE TABLE broken AS SELECT (g + 50 * ((g / 100) % 3) / 2) / 100 AS k FROM generate_series(0, 5999) s(g)");
  EXPECT_EQ(Spans("SELECT max(c) FROM (SELECT k, count(*) AS c FROM broken GROUP BY k) g"),
            "groups co-located 0-19 19-40 40-60");
  // Few groups meet at the master.
  Run("SET exchange_above = 100000");
  EXPECT_EQ(Spans("SELECT max(c) FROM (SELECT k, count(*) AS c FROM l GROUP BY k) g"), "");
}

TEST_F(KeySpans, AnExchangedJoinLeavesTheOthers) {
  Run("SET join_exchange = on");
  // The first part scans l, with the join by the key; what is after probes with rows that have moved.
  EXPECT_EQ(Spans("SELECT count(*) FROM l JOIN o ON l.k = o.k AND o.d = 3 JOIN mixed ON mixed.k = l.m"),
            "join 0-4 3-7 6-10, rows 0-13 13-27 27-40");
  // What is probed with these rows is not where its rows are.
  EXPECT_EQ(Spans("SELECT count(*) FROM l JOIN mixed ON mixed.k = l.m LEFT JOIN o ON l.k = o.k AND o.d > mixed.y"),
            "rows 0-13 13-27 27-40");
  // Rows of a join table that another one's rows are joined with before have moved.
  for (const char* keys : {"1 + g / 4 AS k, g % 50 AS m FROM generate_series(0, 10799)",
                           "30 + g / 4 AS k, g % 50 AS m FROM "
                           "generate_series(0, 14099)"}) {
    Run("DROP TABLE IF EXISTS cust");
    Run("DROP TABLE IF EXISTS ord");
    Run("DROP TABLE IF EXISTS li");
    Run("CREATE TABLE cust AS SELECT g * 239 % 1009 AS c, g % 5 AS seg FROM generate_series(0, 1008) s(g)");
    Run("CREATE TABLE ord AS SELECT g AS k, g * 7919 % 1009 AS c FROM generate_series(1, 3600) s(g)");
    Run("CREATE TABLE li AS SELECT " + std::string(keys) + " s(g)");
    EXPECT_EQ(Spans("SELECT count(*), sum(li.m) FROM li, ord, cust WHERE li.k = ord.k AND ord.c = cust.c AND "
                    "cust.seg = 2")
                  .find("join"),
              std::string::npos);
    const auto exchanged = std::ranges::count_if(cluster_.last.sections, [](const vm::Section& s) {
      return s.placement.by_key && s.sink == vm::Section::Sink::kRows;
    });
    EXPECT_EQ(exchanged, 2) << keys;
  }
}

TEST_F(KeySpans, OtherTabletsThanTheTableHasAreRefused) {
  Run("SELECT count(*) FROM l JOIN o ON l.k = o.k");
  const TableInfo* l = nullptr;
  for (const auto& table : cluster_.snapshot.tables) {
    if (table->schema.name == "l") l = table.get();
  }
  ASSERT_NE(l, nullptr);
  vm::Section section = *std::ranges::find_if(cluster_.last.sections, [](const vm::Section& s) {
    return !s.placement.spans.empty() && s.sink != vm::Section::Sink::kJoin;
  });
  EXPECT_TRUE(vm::CheckSpans(*l, section, 3).ok());
  EXPECT_FALSE(vm::CheckSpans(*l, section, 2).ok());
  section.placement.spans.back().end = 41;
  EXPECT_EQ(vm::CheckSpans(*l, section, 3).code(), ErrorCode::kCorrupt);
  section.placement.spans.back().end = 39;
  EXPECT_FALSE(vm::CheckSpans(*l, section, 3).ok()) << "a tablet that no rank scans";
}

}  // namespace
}  // namespace tessera
