#!/usr/bin/env python3
"""ATTACH and DETACH: a session reads another database, one state of it within a statement and within a transaction.

    tests/session/attach_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed".
"""

import os
import subprocess

from command_tests import TESSERA, ask, equal, holds, main, run


def refused(sql, *parts):
    holds(run("d", "-c", "ATTACH 'other' AS o", "-c", sql, status=1).stderr, *parts)


def make():
    """Tables of both databases have the same identifiers, and some have the same names."""
    run("other", "-f", "/dev/stdin", input="""
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, m mood);
INSERT INTO t VALUES (1, 'one', 'glad'), (2, 'two', 'sad'), (3, 'three', NULL);
DELETE FROM t WHERE id = 3;
CREATE TABLE big (k INTEGER, n BIGINT) WITH (tablet_rows = 100);
INSERT INTO big SELECT i % 7, i FROM generate_series(1, 1000) s(i);
CREATE SCHEMA s;
CREATE TABLE s.t (x INTEGER);
INSERT INTO s.t VALUES (77);
CREATE TABLE "Odd.name" (x INTEGER);
INSERT INTO "Odd.name" VALUES (5);
CREATE VIEW w AS SELECT * FROM t;
""")
    run("d", "-f", "/dev/stdin", input="""
CREATE TABLE t (id INTEGER, w TEXT);
INSERT INTO t VALUES (1, 'mine'), (3, 'too');
CREATE TABLE big (k INTEGER, name TEXT);
INSERT INTO big SELECT i, 'k' || i FROM generate_series(0, 4) s(i);
""")


def test_tables_of_both_are_read_together():
    make()
    equal(ask("ATTACH 'other' AS o; SELECT id, v, m FROM o.t ORDER BY id; SELECT id, w FROM t ORDER BY id"),
          "1,one,glad\n2,two,sad\n1,mine\n3,too\n")
    equal(ask("ATTACH 'other' AS o; SELECT t.w, o.v FROM t JOIN o.t AS o ON t.id = o.id"), "mine,one\n")
    equal(ask("ATTACH 'other' AS o; SELECT name, count(*), sum(n) FROM big JOIN o.big AS b USING (k) "
              "GROUP BY name ORDER BY name LIMIT 2"), "k0,142,71071\nk1,143,71214\n")
    # In other places of a query, and by the other forms of names.
    equal(ask("ATTACH DATABASE 'other' AS \"O\" (READ_ONLY); SELECT x FROM \"O\".s.t; SELECT x FROM \"O\".public.\"Odd.name\"; "
              "SELECT count(*) FROM \"O\".main.t; WITH c AS (TABLE \"O\".t) SELECT max(id) FROM c; "
              "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM \"O\".t AS b WHERE b.id = t.id)"), "77\n5\n2\n2\n3\n")
    equal(ask("ATTACH 'other/'; SELECT t.v FROM other.t WHERE t.id = 2"), "two\n")
    # Itself is another database, too.
    equal(ask("ATTACH 'd' AS me; SELECT count(*) FROM t JOIN me.t AS m ON t.id = m.id"), "2\n")


def test_rows_are_copied():
    make()
    equal(ask("ATTACH 'other' AS o; CREATE TABLE c AS SELECT id, v FROM o.t; INSERT INTO t SELECT id + 10, v FROM o.t; "
              "CREATE TEMP TABLE m AS TABLE o.t; SELECT m FROM m ORDER BY id; "
              "UPDATE t SET w = o.v FROM o.t AS o WHERE o.id = t.id; DELETE FROM t USING o.s.t AS x WHERE t.id = x.x - 65; "
              "MERGE INTO c USING o.big AS b ON c.id = b.n AND b.n < 2 WHEN MATCHED THEN DELETE"), "glad\nsad\n")
    equal(ask("SELECT * FROM t ORDER BY id; SELECT * FROM c"), "1,one\n3,too\n11,one\n2,two\n")
    ask("ATTACH 'other' AS o; COPY o.t TO 'out.csv'; COPY (SELECT x FROM o.s.t) TO 'out2.csv'")
    with open("out.csv", encoding="utf-8") as file:
        equal(sorted(file.read().split()), ["1,one,glad", "2,two,sad"])
    # Types are each database's own.
    holds(run("d", "-c", "ATTACH 'other' AS o; CREATE TABLE e AS SELECT m FROM o.t", status=1).stderr, "type mood")
    equal(ask("ATTACH 'other' AS o; CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TABLE e AS SELECT m FROM o.t; "
              "SELECT m FROM e ORDER BY m"), "sad\nglad\n")
    equal(ask("SELECT m FROM e WHERE m = 'glad'"), "glad\n")


def test_it_can_only_be_read():
    make()
    for statement in ("INSERT INTO o.t VALUES (1)", "UPDATE o.t SET v = 'x'", "DELETE FROM o.t", "DROP TABLE o.t",
                      "DROP TABLE o.public.t", "TRUNCATE o.t", "CREATE TABLE o.n (x INTEGER)", "ALTER TABLE o.t ADD COLUMN x INTEGER",
                      "CREATE TABLE o.public.n (x INTEGER)", "MERGE INTO o.t USING t ON true WHEN MATCHED THEN DELETE",
                      "COPY o.t FROM '/dev/null'", "CREATE VIEW o.v AS SELECT 1", "CREATE UNIQUE INDEX ON o.t (id)", "VACUUM o.t",
                      "COMMENT ON TABLE o.t IS 'x'", "CREATE TABLE n (x INTEGER REFERENCES o.t)", "CREATE SEQUENCE o.q",
                      "CREATE TABLE o.n AS SELECT 1 AS x"):
        refused(statement, 'database "o" is attached, and can only be read')
    equal(ask("SELECT count(*) FROM t", database="other"), "2\n")
    refused("CREATE VIEW v AS SELECT * FROM o.t", "a view cannot read an attached database")
    refused("CREATE MATERIALIZED VIEW v AS SELECT * FROM o.t", "cannot read an attached database")
    equal(ask("ATTACH 'other' AS o; CREATE TEMP VIEW v AS SELECT v FROM o.t WHERE id = 2; SELECT * FROM v"), "two\n")
    refused("SELECT * FROM o.w", "a view of an attached database")
    refused("SELECT * FROM o.tt", 'table "o.tt" does not exist', "o.t")
    refused("SELECT * FROM o.z.t", 'schema "z" does not exist')
    refused("SELECT * FROM p.t", 'schema "p" does not exist')
    refused("SELECT * FROM p.s.t", 'no attached database "p"')


def test_names():
    make()
    for name in ("main", "public", "temp", "pg_catalog", "information_schema"):
        holds(run("d", "-c", f"ATTACH 'other' AS {name}", status=1).stderr, "a schema has that name")
    refused("ATTACH 'd' AS o", "already attached")
    refused("CREATE SCHEMA o", 'a database is attached as "o"')
    run("d", "-c", "CREATE SCHEMA z")
    holds(run("d", "-c", "ATTACH 'other' AS z", status=1).stderr, "a schema has that name")
    refused("DETACH p", 'no attached database "p"')
    equal(ask("ATTACH 'other' AS o; ATTACH IF NOT EXISTS 'other' AS o; DETACH DATABASE IF EXISTS p; DETACH o; "
              "DETACH IF EXISTS o; ATTACH 'other' AS o; SELECT count(*) FROM o.t"), "2\n")
    for wrong, part in (("ATTACH 'nowhere' AS o", "nowhere"), ("ATTACH '.' AS o", "there is no database"),
                        ("ATTACH 'other' AS o (READ_WRITE)", "ATTACH for writing"), ("ATTACH 'other' AS o (TYPE mysql)", "another kind"),
                        ("ATTACH 'other' AS o (TYPE sqlite)", "Is a directory"),
                        ("ATTACH other", "syntax error"), ("ATTACH 'other' AS", "syntax error"), ("ATTACH '../x.y/3'", "no name"),
                        ("ATTACH 'other' AS o x", "syntax error"), ("DETACH", "syntax error"), ("DETACH o p", "syntax error"),
                        ("BEGIN; ATTACH 'other' AS o", "inside a transaction"), ("BEGIN; DETACH o", "inside a transaction")):
        holds(run("d", "-c", wrong, status=1).stderr, part)
    equal(os.path.exists("nowhere"), False)


def test_what_is_attached_is_shown():
    make()
    path = os.path.realpath("other")
    equal(ask("ATTACH 'other' AS o; SHOW DATABASES; PRAGMA database_list"), f"main\no\n0,main,\n2,o,{path}\n")
    equal(ask("ATTACH 'other' AS o; SELECT schema, name FROM pragma_table_list() WHERE schema <> 'main' ORDER BY 1, 2"),
          "o,Odd.name\no,big\no,t\no.s,t\n")
    holds(run("d", "-c", "ATTACH 'other' AS o; DESCRIBE o.t").stdout, "mood", "TEXT")
    # Its tables are none of this database's.
    equal(ask("ATTACH 'other' AS o; SELECT count(*) FROM information_schema.tables WHERE table_schema IN ('main', 'public')"), "2\n")
    equal("o" in run("d", "-c", "ATTACH 'other' AS o", "-c", ".tables").stdout.split(), False)


class Shell:
    """A session that is told one statement after the other."""

    def __init__(self, database):
        self.process = subprocess.Popen([TESSERA, "-noheader", database], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def ask(self, sql):
        self.process.stdin.write(sql + ";\nSELECT 'end';\n")
        self.process.stdin.flush()
        lines = []
        for line in iter(self.process.stdout.readline, ""):
            if line == "end\n":
                return "".join(lines)
            lines.append(line)
        raise AssertionError(self.process.stderr.read())

    def close(self):
        _, err = self.process.communicate(timeout=60)
        equal((self.process.returncode, err), (0, ""))


def test_texts_that_come_again_see_what_is_there():
    """What is kept for a text notices commits over there, DETACH and ATTACH."""
    make()
    query = "SELECT count(*), max(v) FROM o.t"
    shell = Shell("d")
    shell.ask("ATTACH 'other' AS o; PREPARE p AS SELECT count(*) FROM o.t WHERE id > $1; CREATE TEMP VIEW v AS SELECT id FROM o.t")
    equal(shell.ask(query), "2,two\n")
    equal(shell.ask(query), "2,two\n")
    equal(shell.ask("EXECUTE p (0)"), "2\n")
    run("other", "-c", "INSERT INTO t VALUES (9, 'zz', NULL)")
    equal(shell.ask(query), "3,zz\n")
    equal(shell.ask("EXECUTE p (0); SELECT count(*) FROM v"), "3\n3\n")
    run("other", "-c", "ALTER TABLE t DROP COLUMN m; DELETE FROM t WHERE id < 9")
    equal(shell.ask(query), "1,zz\n")
    equal(shell.ask("SELECT * FROM o.t"), "9,zz\n")
    run("other", "-c", "DROP TABLE t; CREATE TABLE t (v INTEGER); INSERT INTO t VALUES (4)")
    equal(shell.ask(query), "1,4\n")
    # Another database under the same name.
    run("third", "-c", "CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('third'), ('a')")
    equal(shell.ask("DETACH o; ATTACH 'third' AS o; " + query), "2,third\n")
    equal(shell.ask("DETACH o; CREATE SCHEMA o; CREATE TABLE o.t (v TEXT); " + query), "0,\n")
    shell.close()
    error = run("d", "-c", "ATTACH 'other' AS x; SELECT count(*) FROM x.t; DETACH x; SELECT count(*) FROM x.t", status=1).stderr
    holds(error, 'schema "x" does not exist')


def test_a_transaction_sees_one_state():
    make()
    shell = Shell("d")
    shell.ask("ATTACH 'other' AS o")
    equal(shell.ask("BEGIN; SELECT count(*) FROM o.t"), "2\n")
    run("other", "-c", "INSERT INTO t VALUES (9, 'nine', NULL); INSERT INTO s.t VALUES (78); DROP TABLE big; VACUUM")
    # Also of tables that are read for the first time, and after changes of the own database.
    equal(shell.ask("SELECT count(*) FROM o.t; SELECT count(*) FROM o.s.t; SELECT count(*) FROM o.big"), "2\n1\n1000\n")
    equal(shell.ask("INSERT INTO t SELECT id, v FROM o.t; SELECT count(*) FROM t; SELECT count(*) FROM o.t"), "4\n2\n")
    equal(shell.ask("SAVEPOINT a; DELETE FROM t; ROLLBACK TO a; SELECT count(*) FROM o.t"), "2\n")
    equal(shell.ask("COMMIT; SELECT count(*) FROM o.t; SELECT count(*) FROM o.s.t"), "3\n2\n")
    equal(shell.ask("BEGIN; SELECT count(*) FROM o.t; ROLLBACK"), "3\n")
    shell.close()
    equal(ask("SELECT count(*) FROM t"), "4\n")


def test_a_database_in_use_is_read():
    """Its writers go on, and the files that a reader needs stay."""
    make()
    shell = Shell("d")
    shell.ask("ATTACH 'other' AS o; BEGIN; SELECT count(*) FROM o.t")
    for i in range(20, 30):
        run("other", "-c", f"DELETE FROM big WHERE n % 10 = {i % 10}; VACUUM big")
    equal(shell.ask("SELECT count(*), sum(n) FROM o.big"), "1000,500500\n")
    equal(shell.ask("COMMIT; SELECT count(*) FROM o.big"), "0\n")
    shell.close()


def test_rank_0_reads_it_for_all():
    if not os.path.exists(os.path.join(os.path.dirname(TESSERA), "tessera_mpi.so")):
        return
    make()
    ranks = run("--ranks", "3", "d", "-noheader", "-c", "ATTACH 'other' AS o; SELECT count(*), sum(n) FROM o.big; "
                "SELECT count(*) FROM t JOIN o.t AS b USING (id); INSERT INTO t SELECT id, v FROM o.t; SELECT count(*) FROM t; "
                "DETACH o; SELECT count(*) FROM t JOIN big ON id = k")
    equal(ranks.stdout, "1000,500500\n1\n4\n4\n")


main(globals())
