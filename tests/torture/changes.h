// Statements that change a database, and the database that they change: what the campaigns of failing calls and allocations
// run. Each is wholly done, or nothing of it.
//
// Start at: kChanges, StateOf.
#pragma once

#include <string>

#include "base/status.h"
#include "session/session.h"

namespace tessera {

struct Change {
  const char* name;
  const char* sql;  ///< one statement, or one transaction
};

/// Makes the tables: t in tablets of 16 rows, of which some have deleted rows, with a key k; u, with others; a view; a
/// materialised view that has to be refreshed; and p, whose keys the rows of c have, which are numbered.
inline constexpr const char* kMakeTables[] = {
    "CREATE TABLE t (k INTEGER PRIMARY KEY, g TEXT, x DECIMAL(8,2) CHECK (x >= 0)) WITH (tablet_rows = 16)",
    "CREATE TABLE u (k INTEGER, y INTEGER) WITH (tablet_rows = 16)",
    "INSERT INTO t SELECT i, 'g' || i % 5, i / 4.0 FROM generate_series(1, 100) s(i)",
    "INSERT INTO u SELECT i * 3, i FROM generate_series(1, 50) s(i)",
    "CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n FROM t GROUP BY g",
    "DELETE FROM t WHERE k % 4 = 3",
    "CREATE VIEW v AS SELECT g, sum(x) AS s FROM t GROUP BY g",
    "CREATE TABLE p (k INTEGER PRIMARY KEY)",
    "CREATE TABLE c (k INTEGER REFERENCES p ON DELETE CASCADE, n INTEGER GENERATED ALWAYS AS IDENTITY)",
    "INSERT INTO p VALUES (1), (2), (3)",
    "INSERT INTO c (k) VALUES (1), (1), (2)",
};

inline constexpr Change kChanges[] = {
    {"update", "UPDATE t SET x = x + 1, g = 'new' WHERE k % 3 = 0"},
    {"delete", "DELETE FROM t USING u WHERE t.k = u.k"},
    {"delete all of some tablets", "DELETE FROM t WHERE k < 50"},
    {"insert or update",
     "INSERT INTO t VALUES (1, 'a', 1), (3, 'b', 2), (500, 'c', 3) ON CONFLICT (k) DO UPDATE SET x = 99"},
    {"merge",
     "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED AND u.y < 20 THEN DELETE WHEN MATCHED THEN UPDATE SET x = 7 "
     "WHEN NOT MATCHED THEN INSERT VALUES (u.k, 'merged', 0)"},
    {"insert or replace", "INSERT OR REPLACE INTO t SELECT k, 'replaced', 1 FROM u WHERE y < 30"},
    {"cascade", "DELETE FROM p WHERE k = 1"},
    {"numbered rows", "INSERT INTO c (k) VALUES (2), (3) RETURNING n"},
    {"add a column", "ALTER TABLE t ADD COLUMN z INTEGER DEFAULT 5"},
    {"drop a column", "ALTER TABLE t DROP COLUMN x CASCADE"},
    {"drop a constraint", "ALTER TABLE c DROP CONSTRAINT c_k_fkey"},
    {"another type", "ALTER TABLE u ALTER y TYPE TEXT USING y::TEXT"},
    {"rename", "ALTER TABLE u RENAME TO w"},
    {"add a key", "ALTER TABLE u ADD CONSTRAINT u_key UNIQUE (y)"},
    {"unique index", "CREATE UNIQUE INDEX u_key ON u (y)"},
    {"vacuum", "VACUUM t"},
    {"truncate", "TRUNCATE t, u"},
    {"create as", "CREATE TABLE made AS SELECT k, x FROM t WHERE k > 10"},
    {"drop a view", "DROP VIEW v"},
    {"create a view", "CREATE VIEW w AS SELECT k FROM t"},
    {"create a materialised view", "CREATE MATERIALIZED VIEW made AS SELECT k, x FROM t WHERE k > 10"},
    {"refresh", "REFRESH MATERIALIZED VIEW m"},
    {"schema", "BEGIN; CREATE SCHEMA a; CREATE TABLE a.t (k INTEGER); INSERT INTO a.t VALUES (1), (2); COMMIT"},
    {"sequence", "CREATE SEQUENCE made"},
    {"comment", "COMMENT ON TABLE t IS 'a text'"},
    {"macro", "CREATE MACRO made(x) AS x + 1"},
    {"transaction",
     "BEGIN; INSERT INTO t VALUES (1001, 'new', 1); UPDATE t SET x = 0 WHERE k < 10; CREATE TABLE made (a INTEGER); "
     "INSERT INTO made VALUES (1), (2); SAVEPOINT s; DELETE FROM u; ROLLBACK TO s; DELETE FROM u WHERE y > 40; "
     "ALTER TABLE made ADD COLUMN b TEXT; INSERT INTO u VALUES (0, 0); COMMIT"},
};

/// Runs the statements of a script up to the first error.
Status RunStatements(Session* session, const std::string& script);

/// All that there is in it, as text: names, columns and rows. An error is a text, too.
std::string StateOf(const std::string& directory);

}  // namespace tessera
