#!/usr/bin/env python3
"""PRAGMA integrity_check of damaged files. (tests/session/broken_rows_test.cc has rows that break what their table asks.)

    tests/session/integrity_check_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed".
"""

import glob
import os
import shutil
import sqlite3
import subprocess

from command_tests import TESSERA, ask, equal, holds, main, run


def make():
    run("d", "-f", "/dev/stdin", input="""
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE SCHEMA s;
CREATE TABLE parent (a INTEGER, b TEXT, PRIMARY KEY (a, b));
CREATE TABLE s.t (id INTEGER PRIMARY KEY, v VARCHAR(10) NOT NULL, n INTEGER CHECK (n > 0), m mood, pa INTEGER, pb TEXT,
  g BIGINT GENERATED ALWAYS AS (n * 2 + id) STORED, u INTEGER UNIQUE, d DOUBLE PRECISION, FOREIGN KEY (pa, pb) REFERENCES parent)
  WITH (tablet_rows = 100);
INSERT INTO parent VALUES (1, 'x'), (2, 'y');
INSERT INTO s.t (id, v, n, m, pa, pb, u, d) SELECT i, 'v' || i, nullif(i % 5, 0), CASE WHEN i % 2 = 0 THEN 'sad'::mood END,
  CASE WHEN i % 3 = 0 THEN 1 END, CASE WHEN i % 2 = 0 THEN 'x' END, nullif(i, 7), i / 3.0 FROM generate_series(1, 250) s(i);
DELETE FROM s.t WHERE id % 10 = 3;
ALTER TABLE s.t ADD COLUMN later TEXT DEFAULT 'constant';
UPDATE s.t SET d = 'NaN' WHERE id = 9;
CREATE TABLE "Odd name" (x INTEGER);
INSERT INTO "Odd name" VALUES (1), (NULL);
CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM s.t;
CREATE MATERIALIZED VIEW nothing AS SELECT 1 AS n WITH NO DATA;
CREATE TEMP TABLE mine (x INTEGER NOT NULL);
""")


def damage(path, at, byte=None):
    with open(path, "r+b") as file:
        file.seek(at)
        was = file.read(1)[0]
        file.seek(at)
        file.write(bytes([was ^ 0x10 if byte is None else byte]))


def tablets(database="d"):
    return sorted(glob.glob(f"{database}/tablet-*.bin"))


def test_a_database_is_whole():
    make()
    equal(ask("PRAGMA integrity_check; PRAGMA quick_check; PRAGMA integrity_check('s.t'); PRAGMA integrity_check(parent); "
              "PRAGMA integrity_check = 3"), "ok\n" * 5)
    equal(run("d", "-c", "PRAGMA integrity_check").stdout, "integrity_check\nok\n")
    equal(run("-readonly", "d", "-noheader", "-c", "PRAGMA integrity_check;").stdout, "ok\n")
    equal(run(":memory:", "-noheader", "-c", "CREATE TABLE t (x INTEGER PRIMARY KEY); INSERT INTO t VALUES (1); PRAGMA integrity_check").stdout,
          "ok\n")
    equal(run("new", "-noheader", "-c", "PRAGMA integrity_check").stdout, "ok\n")
    equal(ask('PRAGMA integrity_check("Odd name")'), "ok\n")
    holds(run("d", "-c", "PRAGMA integrity_check('nowhere')", status=1).stderr, 'table "nowhere" does not exist')
    for wrong in ("PRAGMA integrity_check(0)", "PRAGMA integrity_check(", "PRAGMA integrity_check x", "PRAGMA integrity_check()"):
        holds(run("d", "-c", wrong, status=1).stderr, "syntax error")
    holds(run("d", "-c", "BEGIN; INSERT INTO \"Odd name\" VALUES (5); PRAGMA integrity_check", status=1).stderr, "has changed something")
    equal(ask("BEGIN; PRAGMA integrity_check; COMMIT"), "ok\n")


def test_every_damaged_file_is_named():
    make()
    shutil.copytree("d", "good")
    files = [os.path.basename(path) for path in tablets()]
    if len(files) < 6:
        raise AssertionError(files)
    for file in files:
        size = os.path.getsize(f"good/{file}")
        for at in {5, size // 3, size // 2, size - 9}:
            shutil.copyfile(f"good/{file}", f"d/{file}")
            damage(f"d/{file}", at)
            answer = ask("PRAGMA quick_check")
            if answer == "ok\n":  # between the streams there may be bytes that mean nothing
                equal(ask("SELECT count(*), min(d), max(v) FROM s.t"), ask("SELECT count(*), min(d), max(v) FROM s.t", "good"))
                continue
            holds(answer, file, "table ", ", tablet ", ", column ")
            equal(ask("PRAGMA integrity_check").splitlines()[0], answer.splitlines()[0])
        shutil.copyfile(f"good/{file}", f"d/{file}")
    # Several at once, and one that is not there: the others are read nevertheless.
    for file in files[:3]:
        damage(f"d/{file}", 5)
    os.unlink(f"d/{files[3]}")
    answer = ask("PRAGMA integrity_check")
    equal([file for file in files if file in answer], files[:4])
    equal(len(ask("PRAGMA integrity_check(2)").splitlines()), 2)
    equal(ask('PRAGMA integrity_check("Odd name")'), "ok\n")


def test_a_session_that_has_read_the_file_finds_the_damage():
    make()
    with subprocess.Popen([TESSERA, "-noheader", "d"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("SELECT count(v) + count(n) + count(d) FROM s.t; PRAGMA integrity_check; SELECT 'read';\n")
        process.stdin.flush()
        for line in iter(process.stdout.readline, "read\n"):
            last = line
        equal(last, "ok\n")
        for path in tablets():
            damage(path, 40)
        out, _ = process.communicate("PRAGMA integrity_check;\n", timeout=60)
    if len(out.splitlines()) < len(tablets()) // 2:
        raise AssertionError(out)


def test_a_damaged_catalog_is_found():
    make()
    with sqlite3.connect("d/catalog.sqlite") as catalog:
        catalog.execute("UPDATE tablets SET file_bytes = file_bytes + 1")
    catalog.close()
    with subprocess.Popen([TESSERA, "d", "-noheader", "-c", "PRAGMA integrity_check"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        out, err = process.communicate(timeout=60)
    holds(out + err, "catalog")


main(globals())
