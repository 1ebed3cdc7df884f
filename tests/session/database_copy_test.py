#!/usr/bin/env python3
"""A database as a whole: copied while it is used (VACUUM INTO, .backup), and written as SQL and CSV and read again (EXPORT
DATABASE, IMPORT DATABASE).

    tests/session/database_copy_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed".
"""

import os
import resource
import shutil
import signal
import subprocess

from command_tests import TESSERA, check, main, run

SCHEMA = r"""
CREATE TYPE mood AS ENUM ('sad', 'it''s ok', 'x,y');
CREATE TABLE every (b BOOLEAN, s SMALLINT, i INTEGER PRIMARY KEY, l BIGINT, r REAL, d DOUBLE PRECISION, n DECIMAL(8,2),
  w DECIMAL(38,10), day DATE, ts TIMESTAMP, tz TIMESTAMPTZ, t TEXT, v VARCHAR(5), iv INTERVAL, tm TIME, u UUID, y BYTEA,
  m mood);
INSERT INTO every VALUES
  (true, 1, 1, 9223372036854775807, 1.5, 0.1, 1.25, 12345678901234567890.5, DATE '2024-02-29',
   TIMESTAMP '2024-01-01 12:13:14.123456', TIMESTAMPTZ '2024-01-01 00:00:00+05', 'a "quoted" text', 'x,y',
   INTERVAL '1 month 2 days 03:04:05.6', TIME '23:59:59.999999', '12345678-1234-5678-1234-567812345678', '\x00ff0a',
   'it''s ok'),
  (false, -32768, 2, -9223372036854775808, '-Infinity', 'NaN', -0.01, -0.0000000001, DATE '0001-01-01',
   TIMESTAMP '9999-12-31 23:59:59', TIMESTAMPTZ '1900-01-01 00:00:00Z', '', '', INTERVAL '-1 year -00:00:00.000001',
   TIME '00:00', '00000000-0000-0000-0000-000000000000', '', 'x,y'),
  (NULL, NULL, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (NULL, NULL, 4, NULL, 1e-45, 5e-324, NULL, NULL, NULL, NULL, NULL, 'two
lines' || chr(13) || chr(10) || '\', 'NULL', NULL, NULL, NULL, NULL, 'sad');
CREATE TABLE "Odd name/..\x" ("Select" TEXT DEFAULT 'it''s', g INTEGER GENERATED ALWAYS AS (k + 1) STORED,
  k INTEGER DEFAULT 7 CHECK (k <> 13), "when" TIMESTAMP DEFAULT now(), CONSTRAINT u1 UNIQUE (k))
  WITH (tablet_rows = 100, cluster_by = k);
INSERT INTO "Odd name/..\x" ("Select", k) VALUES ('', 1), (NULL, 2), ('"', 3), ('\', 4), (',', 5);
CREATE TABLE "odd NAME/..\x" (k INTEGER);
INSERT INTO "odd NAME/..\x" VALUES (8);
CREATE TABLE one (x TEXT);
INSERT INTO one VALUES (NULL), (''), ('a'), ('NULL'), (NULL);
CREATE TABLE nothing (x TEXT NOT NULL);
CREATE TABLE many (k INTEGER, v TEXT) WITH (tablet_rows = 64, distribute_by = k);
INSERT INTO many SELECT i, 'text ' || i FROM generate_series(1, 1000) s(i);
DELETE FROM many WHERE k % 3 = 0;
CREATE TABLE a_child (k INTEGER UNIQUE REFERENCES every ON DELETE CASCADE, v TEXT, z INTEGER);
CREATE TABLE z_child (k INTEGER PRIMARY KEY REFERENCES a_child (k) ON DELETE CASCADE);
ALTER TABLE a_child ADD CONSTRAINT in_a_circle FOREIGN KEY (z) REFERENCES z_child (k) ON DELETE SET NULL;
INSERT INTO a_child VALUES (1, 'one', NULL), (2, 'two', NULL), (3, 'three', NULL);
INSERT INTO z_child VALUES (1), (3);
UPDATE a_child SET z = 3 WHERE k > 1;
ALTER TABLE a_child ADD COLUMN constant TEXT DEFAULT 'same';
UPDATE a_child SET v = v || '!' WHERE k < 3;
ALTER TABLE z_child ADD COLUMN nothing INTEGER;
CREATE MATERIALIZED VIEW a_sum AS SELECT z, count(*) AS n FROM a_child GROUP BY z;
CREATE MATERIALIZED VIEW not_filled AS SELECT k FROM a_child WITH NO DATA;
CREATE MACRO twice(x) AS x * 2;
CREATE VIEW z_view AS SELECT i FROM every;
CREATE VIEW a_view AS SELECT twice(i) AS j FROM z_view;
CREATE MACRO first_rows(n) AS TABLE SELECT * FROM every JOIN a_view ON j = 2 * i WHERE i <= n;
"""
QUERIES = ["SELECT * FROM a_child ORDER BY k", "SELECT * FROM z_child ORDER BY k", "SELECT * FROM a_sum ORDER BY z",
           "SELECT conname FROM pg_constraint WHERE contype = 'f' ORDER BY conname",
           "SELECT * FROM every ORDER BY i", 'SELECT * FROM "Odd name/..\\x" ORDER BY k', 'SELECT * FROM "odd NAME/..\\x"',
           "SELECT x, x IS NULL AS no, count(*) FROM one GROUP BY x, no ORDER BY x, no", "SELECT count(*) FROM nothing",
           "SELECT count(*), sum(k), min(v) FROM many", "SELECT * FROM a_view ORDER BY j",
           "SELECT * FROM first_rows(2) ORDER BY i"]


def start(*arguments):
    return subprocess.Popen([TESSERA, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answers(database):
    return [run(database, "-c", "SET timezone = 'Asia/Tokyo'", "-c", query).stdout for query in QUERIES] + \
           [run(database, "-c", ".schema").stdout]


def files(directory):
    found = {}
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), "rb") as file:
            found[name] = file.read()
    return found


def test_what_is_exported_is_imported():
    run("d", "-f", "/dev/stdin", input=SCHEMA)
    before = answers("d")
    check(run("d", "-c", "SET timezone = 'America/New_York'; EXPORT DATABASE 'out'").stderr == "", "no message")
    check(len(os.listdir("out")) == 2 + 8, os.listdir("out"))
    run("e", "-c", "IMPORT DATABASE 'out'")
    check(answers("e") == before, answers("e"), before)
    # What is written of that is the same, but for the names of the files.
    run("e", "-c", "EXPORT DATABASE 'again'")
    first, second = files("out"), files("again")
    check(second.pop("load.sql") == first.pop("load.sql").replace(b"out/", b"again/"), "load.sql")
    check({n: sorted(t.split(b"\n")) for n, t in first.items()} == {n: sorted(t.split(b"\n")) for n, t in second.items()}, "files")
    # Keys, checks and defaults hold.
    for wrong, message in (("INSERT INTO every (i) VALUES (1)", "duplicate key"),
                           ('INSERT INTO "Odd name/..\\x" (k) VALUES (13)', "check constraint"),
                           ('INSERT INTO "Odd name/..\\x" (k) VALUES (5)', "u1"),
                           ("INSERT INTO nothing VALUES (NULL)", "not-null"),
                           ("INSERT INTO every (i, m) VALUES (9, 'glad')", "mood")):
        check(message in run("e", "-c", wrong, status=1).stderr, wrong)
    check(run("e", "-c", 'INSERT INTO "Odd name/..\\x" (g) VALUES (DEFAULT); SELECT "Select", g, k FROM "Odd name/..\\x" WHERE k = 7',
              ).stdout.endswith("it's,8,7\n"), "defaults")


def test_an_export_may_be_moved_and_read_by_hand():
    run("d", "-f", "/dev/stdin", input=SCHEMA)
    before = answers("d")
    run("d", "-c", "EXPORT DATABASE 'sub dir''s' (FORMAT csv, DELIMITER '|', NULL 'nil', QUOTE '''')")
    with open("sub dir's/one.csv", encoding="utf-8") as file:
        check(file.read() == "nil\n\na\nNULL\nnil\n", "options")
    run("e", "-f", "sub dir's/schema.sql", "-f", "sub dir's/load.sql")
    check(answers("e") == before, "by hand")
    os.rename("sub dir's", "moved")
    run("f", "-c", "IMPORT DATABASE 'moved/'")
    check(answers("f") == before, "moved")
    # A database without a name.
    check(run("-c", "IMPORT DATABASE 'moved'; SELECT count(*) FROM every").stdout.endswith("4\n"), "temporary")
    run("-c", "CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (5); EXPORT DATABASE 'temporary'")
    check(run("g", "-c", "IMPORT DATABASE 'temporary'; SELECT * FROM t").stdout == "x\n5\n", "of a temporary one")


def test_all_or_nothing():
    run("d", "-f", "/dev/stdin", input=SCHEMA)
    run("d", "-c", "EXPORT DATABASE 'out'")
    check("already exists" in run("d", "-c", "EXPORT DATABASE 'out'", status=1).stderr, "it is there")
    check("already exists" in run("d", "-c", "EXPORT DATABASE 'd'", status=1).stderr, "a database")
    check("FORMAT" in run("d", "-c", "EXPORT DATABASE 'text' (FORMAT text)", status=1).stderr, "no CSV")
    check("No such file" in run("d", "-c", "EXPORT DATABASE 'no/where'", status=1).stderr, "no parent")
    check(sorted(os.listdir(".")) == ["d", "out"], os.listdir("."))
    # Two tables of the same name.
    run("e", "-c", "CREATE TABLE one (y INTEGER); INSERT INTO one VALUES (3)")
    message = run("e", "-c", "IMPORT DATABASE 'out'", status=1).stderr
    check('"out/schema.sql", line ' in message and 'table "one" already exists' in message, message)
    check(run("e", "-c", "SHOW TABLES; SELECT * FROM one").stdout == "name\none\ny\n3\n", "nothing of it is there")
    # A damaged file.
    with open("out/many.csv", "a", encoding="utf-8") as file:
        file.write("x,y,z\n")
    message = run("f", "-c", "IMPORT DATABASE 'out'", status=1).stderr
    check('"out/load.sql", line ' in message and 'many.csv", line 669' in message, message)
    check(run("f", "-c", "SHOW TABLES").stdout == "name\n", "nothing of it is there")
    check("cannot open" in run("f", "-c", "IMPORT DATABASE 'd'", status=1).stderr, "no export")
    # Such a directory may be a stranger's.
    with open("out/schema.sql", "a", encoding="utf-8") as file:
        file.write("COPY one TO 'stolen.csv';\n")
    check("does not run this statement" in run("f", "-c", "IMPORT DATABASE 'out'", status=1).stderr, "COPY TO")
    check(not os.path.exists("stolen.csv"), "it is written")


def test_within_a_transaction():
    run("d", "-f", "/dev/stdin", input=SCHEMA)
    run("d", "-c", "EXPORT DATABASE 'out'")
    rolled_back = "BEGIN; IMPORT DATABASE 'out'; SELECT count(*) FROM every; ROLLBACK; SHOW TABLES"
    check(run("e", "-c", rolled_back).stdout == "count(*)\n4\nname\n", "undone")
    inserted = "BEGIN; INSERT INTO one VALUES ('not yet there'); EXPORT DATABASE 'inner'; ROLLBACK; SELECT count(*) FROM one"
    check(run("d", "-c", inserted).stdout.endswith("5\n"), "undone")
    with open("inner/one.csv", encoding="utf-8") as file:
        check("not yet there" in file.read(), "an export has what its transaction sees")
    check("inside a transaction" in run("d", "-c", "BEGIN; VACUUM INTO 'copy'", status=1).stderr, "a copy has none")


def test_a_copy_is_a_database():
    run("d", "-f", "/dev/stdin", input=SCHEMA)
    before = answers("d")
    check(run("d", "-c", "VACUUM INTO 'copy'").stdout == "", "no output")
    check(run("d", "-c", ".backup 'a dir''s'", "-c", ".backup \"it's\"", status=1).stderr != "", "quotes")
    run("d", "-c", ".backup other")
    check(answers("copy") == before and answers("other") == before, "as it was")
    # Each goes its way.
    run("copy", "-c", "INSERT INTO one VALUES ('of the copy'); DELETE FROM every WHERE i = 1; VACUUM")
    check(answers("d") == before and answers("other") == before, "the others")
    run("d", "-c", "DELETE FROM every; INSERT INTO many VALUES (1, 'x'); DELETE FROM many WHERE k < 500; VACUUM")
    check(answers("other") == before, "the copy")
    check(run("copy", "-c", "SELECT count(*) FROM one").stdout == "count(*)\n6\n", "of the copy")
    # Of one that is open for reading alone, of one without a name, and of one that has never been written.
    run("-readonly", "other", "-c", "VACUUM main INTO 'read'")
    check(answers("read") == before, "read only")
    run("-c", "CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (5)", "-c", ".backup temporary")
    check(run("temporary", "-c", "SELECT * FROM t").stdout == "x\n5\n", "temporary")
    run("-c", ".backup empty")
    check(run("empty", "-c", "SHOW TABLES; CREATE TABLE t (x INTEGER)").stdout == "name\n", "empty")


def test_a_copy_takes_no_other_place():
    run("d", "-c", "CREATE TABLE t (x INTEGER)")
    os.mkdir("there")
    run("d", "-c", "VACUUM INTO 'there'")
    check(run("there", "-c", "SELECT count(*) FROM t").stdout == "count(*)\n0\n", "an empty directory")
    with open("file", "w", encoding="utf-8"):
        pass
    for place in ("there", "d", "file"):
        before = files(place) if os.path.isdir(place) else None
        check("already exists" in run("d", "-c", f"VACUUM INTO '{place}'", status=1).stderr, place)
        check(before is None or files(place) == before, place)
    for wrong, message in (("VACUUM INTO", "end of input"), ("VACUUM INTO there", '"there"'), ("VACUUM INTO 'a' 'b'", "'b'"),
                           ("VACUUM INTO ''", "empty"), ("EXPORT TABLE 'x'", '"TABLE"'), ("IMPORT DATABASE", "end of input"),
                           ("EXPORT DATABASE 'x' (HEADER", "end of input")):
        check(message in run("d", "-c", wrong, status=1).stderr, wrong)
    check(sorted(os.listdir(".")) == ["d", "file", "there"], os.listdir("."))


def test_a_copy_while_others_write():
    """Each change keeps the sum of both tables; a copy has all of a change or nothing of it."""
    run("d", "-c", "CREATE TABLE a (x BIGINT); CREATE TABLE b (x BIGINT) WITH (tablet_rows = 10); INSERT INTO a VALUES (1000)")
    change = "".join(f"BEGIN; UPDATE a SET x = x - 1; INSERT INTO b VALUES (1); DELETE FROM b WHERE random() < 0.02;"
                     f"UPDATE a SET x = 1000 - (SELECT count(*) FROM b); COMMIT;" for _ in range(150))
    writer = start("d", "-c", change)
    copies = 0
    while writer.poll() is None or copies == 0:
        run("d", "-c", f"VACUUM INTO 'copy{copies}'")
        total = run(f"copy{copies}", "-c", "SELECT (SELECT sum(x) FROM a) + (SELECT count(*) FROM b)").stdout
        check(total.endswith("\n1000\n"), total)
        shutil.rmtree(f"copy{copies}")
        copies += 1
    check(writer.wait() == 0, writer.stderr.read())
    print(f"       {copies} copies")


def test_a_copy_that_fails_leaves_nothing():
    run("d", "-c", "CREATE TABLE t (x INTEGER, y TEXT); SET compression = none;"
        "INSERT INTO t SELECT i, 'a longer text, number ' || i FROM generate_series(1, 100000) s(i)")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    done = subprocess.run([TESSERA, "d", "-c", "VACUUM INTO 'copy'"], capture_output=True, text=True, preexec_fn=limit,
                          check=False)
    check(done.returncode != 0, done)
    done = subprocess.run([TESSERA, "d", "-c", "EXPORT DATABASE 'copy'"], capture_output=True, text=True, preexec_fn=limit,
                          check=False)
    check(done.returncode != 0, done)
    check(os.listdir(".") == ["d"], os.listdir("."))


main(globals())
