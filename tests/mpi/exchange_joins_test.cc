// Programs whose joins are exchanged: cut at the probes, and in one process, which exchanges nothing, with the same rows
// as uncut. What ranks make of them is tested by tests/run with all SQL files.

#include <gtest/gtest.h>

#include <algorithm>

#include "mpi/cluster.h"
#include "session/session.h"
#include "tests/mpi/lone_cluster.h"
#include "tests/session/session_answer.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

/// Keeps each program.
class AloneCluster final : public LoneCluster {
 public:
  AloneCluster() : LoneCluster(3) {}

  vm::Program last;

 protected:
  void Tell(const ClusterQuery& query, const vm::RunOptions&) override { last = *query.program; }
};

class ExchangeJoins : public ::testing::Test {
 protected:
  ExchangeJoins() {
    SessionOptions options;
    options.device = DeviceChoice::kHost;
    alone_ = std::move(*Session::Open(options));
    options.cluster = &cluster_;
    ranks_ = std::move(*Session::Open(options));
    for (Session* session : {alone_.get(), ranks_.get()}) {
      for (const char* sql :
           {"CREATE TABLE a (k INTEGER, x BIGINT, t TEXT) WITH (tablet_rows = 50)",
            "CREATE TABLE b (k INTEGER, y DECIMAL(30, 2), t TEXT) WITH (tablet_rows = 70)",
            "INSERT INTO a SELECT g % 40, g * 3, 't' || g % 9 FROM generate_series(1, 200) s(g)",
            "INSERT INTO b SELECT nullif(g % 60, 7), g * 1.25, 't' || g % 11 FROM generate_series(1, 300) s(g)"}) {
        Answer(session, sql);
      }
    }
    Answer(ranks_.get(), "SET join_exchange = on");
  }

  /// Compares the rows, and returns how many sections exchange what probes.
  ptrdiff_t Cuts(const std::string& sql) {
    const std::string rows = Answer(alone_.get(), sql);
    EXPECT_EQ(rows.find("ERROR"), std::string::npos) << rows;
    EXPECT_EQ(Answer(ranks_.get(), sql), rows) << sql;
    return std::ranges::count_if(cluster_.last.sections, [](const vm::Section& s) {
      return s.placement.by_key && s.sink == vm::Section::Sink::kRows;
    });
  }

  AloneCluster cluster_;
  std::unique_ptr<Session> alone_, ranks_;
};

TEST_F(ExchangeJoins, IsCutAtEachProbeByKey) {
  EXPECT_EQ(Cuts("SELECT count(*), sum(x), sum(y) FROM a JOIN b ON a.k = b.k"), 1);
  EXPECT_EQ(Cuts("SELECT count(*), sum(a.x), sum(c.x) FROM a JOIN b ON a.k = b.k JOIN a c ON c.t = b.t WHERE c.x < 90"),
            2);
  EXPECT_EQ(Cuts("SELECT count(*), sum(a.x + y) FROM a JOIN b ON a.k = b.k AND a.t = b.t"), 1);
}

TEST_F(ExchangeJoins, OuterSemiAndAntiJoins) {
  EXPECT_EQ(Cuts("SELECT count(*), count(y), sum(y) FROM a LEFT JOIN b ON a.k = b.k AND b.y > a.x"), 1);
  EXPECT_EQ(Cuts("SELECT count(*) FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.k = b.k AND a.x > 60)"), 1);
  EXPECT_EQ(Cuts("SELECT count(*), sum(y) FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k = b.k)"), 1);
}

TEST_F(ExchangeJoins, ValuesOfBothSidesPassTheCut) {
  EXPECT_EQ(
      Cuts("SELECT a.t || b.t AS both, count(*), sum(CASE WHEN x > 50 OR b.y * x < 20 THEN x ELSE 1 END), max(y * 2) "
           "FROM a JOIN b ON a.k = b.k WHERE a.t LIKE 't%' AND x + 1 > 5 GROUP BY 1 ORDER BY 1"),
      1);
  EXPECT_EQ(Cuts("SELECT count(*), count(a.k), count(b.k) FROM a FULL JOIN b ON a.k = b.k"), 2);
  EXPECT_EQ(Cuts("SELECT * FROM a JOIN b ON a.k = b.k AND a.k + 1 = b.k - 0 + 1 ORDER BY 2, 5, 6 LIMIT 20"), 1);
}

TEST_F(ExchangeJoins, WhatCannotBeCutStaysWhole) {
  EXPECT_EQ(Cuts("SELECT count(*) FROM a, b WHERE a.x < b.y AND a.x > b.y - 5"), 0);
  // A condition on a stored column after the probe is tested on codes, which do not travel.
  EXPECT_EQ(Cuts("SELECT sum(CASE WHEN x > 50 OR b.y < 20 THEN x ELSE 1 END) FROM a JOIN b ON a.k = b.k"), 0);
  EXPECT_EQ(Cuts("WITH RECURSIVE r(k) AS (SELECT 1 UNION SELECT b.k + 1 FROM r JOIN b ON b.k = r.k WHERE b.k < 30) "
                 "SELECT count(*) FROM r"),
            0);
}

}  // namespace
}  // namespace tessera
